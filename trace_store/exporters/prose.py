"""Text of people and models, split into prose, code and tables.

Invariant: splitting drops only the fences, and decides nothing about safety: the caller escapes every piece,
whatever its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trace_store.frozen import value

TEXT, CODE, TABLE = "text", "code", "table"

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)$")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,32}")


@value
class ProsePiece:
    """A run of lines of one kind.

    Attributes:
        kind: TEXT, CODE (from a fence), or TABLE (lines that start with a bar).
        text: the lines; no final line feed.
        language: the language of the fence if it is a plain word, else "".
    """

    kind: str
    text: str
    language: str = ""


def split_prose(text: str) -> Iterator[ProsePiece]:
    """Yield the pieces of a text with line feed line ends."""
    kind, language, fence, indent = TEXT, "", "", 0
    lines: list[str] = []

    def take_lines() -> Iterator[ProsePiece]:
        if lines:
            yield ProsePiece(kind, "\n".join(lines), language)
            lines.clear()

    for line in text.split("\n"):
        if fence:
            mark = _FENCE.match(line)
            if mark and mark[1].startswith(fence) and not mark[2].strip(" \t"):
                if not lines:
                    lines.append("")
                yield from take_lines()
                kind, language, fence = TEXT, "", ""
            else:
                lines.append(_remove_indent(line, indent))
            continue
        mark = _FENCE.match(line)
        if mark:
            yield from take_lines()
            word = _LANGUAGE.match(mark[2])
            kind, language, fence = CODE, word[0] if word else "", mark[1]
            indent = len(line) - len(line.lstrip(" "))
            continue
        now = TABLE if line.startswith("|") else TEXT
        if now != kind:
            yield from take_lines()
            kind = now
        lines.append(line)
    yield from take_lines()


def _remove_indent(line: str, indent: int) -> str:
    """Remove a fence's own indentation from a line of code."""
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]
