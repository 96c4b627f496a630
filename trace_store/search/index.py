"""The full-text index: an SQLite file under `cache/`, which knows the words of every message of every branch.

    commits    the ids of commits that are indexed
    messages   one row for each wording of a message: its commit, number, branch, time, role, kind, tools, files
    words      FTS5 (sqlite.org/fts5.html) over these, without the text itself: that stays in the objects

Rule: the index is derived data. A search adds the commits that are new, and reads each commit once. A damaged index, or
one of another version or repository, is rebuilt. Row numbers follow time, so newest-first order is free.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trace_store.context.wording import created_messages
from trace_store.errors import StateError, TraceError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES
from trace_store.store import Store

VERSION = 1
BATCH_COMMITS = 2_000
"""So many commits are made durable together: an interrupted build goes on from there."""
MAXIMUM_TEXT = 1 << 20
"""Characters of one message that are indexed."""
_WAIT_SECONDS = 30
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE commits (oid BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, oid BLOB, number INTEGER, source BLOB, ref TEXT, time INTEGER,
  role TEXT, kind TEXT, tool TEXT, path TEXT
);
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', tokenize="unicode61 remove_diacritics 2 tokenchars '_'"
);
"""

Progress = Callable[[int, int], None]


class SearchIndex:
    """The index of one repository, open; use it as a context manager."""

    def __init__(self, store: Store) -> None:
        """Open it, or begin it.

        Raises:
            StateError: the SQLite at hand has no FTS5.
        """
        self._store = store
        self.base = self._opened()

    def __enter__(self) -> SearchIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.base.close()

    def catch_up(self, progress: Progress | None = None) -> int:
        """Index the commits that came since the last time, and return how many these were.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit is damaged or not here.
        """
        tips = list(self._store.refs.iterate(BRANCHES))
        fresh: dict[ObjectId, tuple[str, Commit]] = {}
        for ref, tip in tips:
            waiting = [tip]
            while waiting:
                oid = waiting.pop()
                if oid in fresh or self._knows(oid):
                    continue
                commit = read_commit(oid, self._store.objects.read)
                fresh[oid] = ref, commit
                waiting += commit.parents
        # Children come before their parents here; of commits of the same time that order is turned round.
        oldest_first = list(fresh.items())[::-1]
        ordered = sorted(oldest_first, key=lambda each: each[1][1].time)
        for start in range(0, len(ordered), BATCH_COMMITS):
            with self.base:
                self.base.execute("BEGIN IMMEDIATE")
                for oid, (ref, commit) in ordered[start : start + BATCH_COMMITS]:
                    self._add(oid, ref, commit)
            if progress is not None:
                progress(min(start + BATCH_COMMITS, len(ordered)), len(ordered))
        return len(ordered)

    def _knows(self, oid: bytes) -> bool:
        found = self.base.execute("SELECT 1 FROM commits WHERE oid = ?", (bytes(oid),))
        return found.fetchone() is not None

    def _add(self, oid: ObjectId, ref: str, commit: Commit) -> None:
        if self._knows(oid):
            return  # another process was faster
        self.base.execute("INSERT INTO commits VALUES (?)", (bytes(oid),))
        for number, stored in enumerate(created_messages(commit)):
            self._add_wording(oid, number, oid, ref, commit.time, stored, stored["parts"])
        for operation in commit.operations:
            if operation.name == ops.EDIT:
                target, number = operation.fields["target"]
                target = ObjectId(target) if target else oid
                self._add_wording(
                    target, number, oid, ref, commit.time, {}, operation.fields["parts"]
                )

    def _add_wording(
        self,
        oid: bytes,
        number: int,
        source: bytes,
        ref: str,
        time: int,
        stored: Mapping[str, Any],
        parts: list[dict[str, Any]],
    ) -> None:
        loaded = load_parts(parts, self._store.objects.read)
        text = text_of_parts(loaded)
        if not text.strip():
            return
        calls = [part for part in loaded if isinstance(part, ToolCall)]
        row = (
            *(bytes(oid), number, bytes(source), ref, time),
            *(str(stored.get("role", "")), str(stored.get("kind", ""))),
            " ".join(sorted({call.name for call in calls})),
            "\n".join(call.arguments[:4_000] for call in calls),
        )
        columns = "oid, number, source, ref, time, role, kind, tool, path"
        found = self.base.execute(
            f"INSERT INTO messages ({columns}) VALUES ({', '.join('?' * len(row))})", row
        )
        self.base.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)", (found.lastrowid, text[:MAXIMUM_TEXT])
        )

    def _opened(self) -> sqlite3.Connection:
        store = self._store
        if not store.local:
            return self._begun(sqlite3.connect(":memory:", isolation_level=None))
        path = store.layout.search_files()[0]
        try:
            store.disk.make_directory(store.layout.cache_dir)
            base = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                return self._begun(base)
            except sqlite3.DatabaseError as error:
                base.close()
                if isinstance(error, sqlite3.OperationalError):
                    raise
            remove_index(store)
            return self._begun(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None))
        except (sqlite3.OperationalError, TraceError):
            # A repository that can only be read: the index lasts as long as the process.
            return self._begun(sqlite3.connect(":memory:", isolation_level=None))

    def _begun(self, base: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection whose tables are there."""
        base.execute("PRAGMA secure_delete = ON")
        wanted = f"{VERSION} {self._store.config.store_id}"
        there = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]
        if there:
            found = base.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
            if found != (wanted,):
                raise sqlite3.DatabaseError("of another version or repository")
            return base
        with base:
            base.execute("BEGIN IMMEDIATE")
            try:
                for statement in _SCHEMA.split(";\n"):
                    base.execute(statement)
            except sqlite3.OperationalError as error:
                if "fts5" in str(error):
                    raise StateError(
                        "the SQLite of this Python has no full-text search (FTS5)",
                        hint="`trace search --regex` needs none",
                    ) from error
                if "already exists" not in str(error):
                    raise
            base.execute("INSERT OR REPLACE INTO meta VALUES ('version', ?)", (wanted,))
        return base


def remove_index(store: Store) -> None:
    """Remove the index: the next search makes it anew."""
    for path in store.layout.search_files():
        store.disk.remove(path)


def text_of_parts(parts: tuple[Part, ...]) -> str:
    """Return what parts say, as one text: words, calls with their arguments, and results."""
    return "\n".join(_said(parts))


def _said(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text | Reasoning):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {part.arguments}"
        elif isinstance(part, ToolResult):
            yield from _said(tuple(part.content))
