"""SQLite's FTS5 over a table of texts, as in a program that only searches."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from benchmarks.model import Proof, Turn, Work, write_ids

NAME = "texts.db"
SCHEMA = """
CREATE TABLE texts (id INTEGER PRIMARY KEY, role TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='texts', content_rowid='id', tokenize="unicode61 remove_diacritics 2 tokenchars '_'"
);
"""
NEWEST = """
SELECT t.id, t.role, t.text FROM words JOIN texts t ON t.id = words.rowid
WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT 20
"""
AROUND = 60


class FullText:
    """A row a message, and an index of its words."""

    store = "fts5"
    packages = ("sqlite",)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Insert all in one transaction."""
        database = sqlite3.connect(folder / NAME)
        database.executescript(SCHEMA)
        for turn in turns:
            text = text_of(turn)
            row = database.execute(
                "INSERT INTO texts (role, text) VALUES (?, ?)", (turn["role"], text)
            )
            database.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row.lastrowid, text))
        database.commit()
        database.close()
        write_ids(folder, ())

    def search(self, folder: Path, words: str) -> Proof:
        """Return the newest 20 messages with each word, as snippets."""
        database = sqlite3.connect(folder / NAME)
        found = []
        for word in Path(words).read_text("utf-8").split():
            for _, role, text in database.execute(NEWEST, (f'"{word}"',)):
                match = re.search(re.escape(word), text, re.IGNORECASE)
                at = match.start() if match else 0
                found.append((role, text[max(0, at - AROUND) : at + len(word) + AROUND]))
        return lambda: Work(len(found), 0)


def text_of(turn: Turn) -> str:
    """Return a message's text, including calls with arguments, and results."""
    return "\n".join(_said(part) for part in turn["content"])


def _said(part: dict[str, str]) -> str:
    if part["type"] == "tool_call":
        return f"{part['name']} {part['arguments']}"
    return part.get("text") or part.get("content") or ""
