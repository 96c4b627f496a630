"""What people and models write, cut where it changes from sentences to code.

Rule: a cut loses nothing but the fences themselves, and decides nothing about safety: whoever shows a piece keeps it
from breaking out, whatever it was taken for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trace_store.frozen import value

TEXT, CODE, TABLE = "text", "code", "table"

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)$")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,32}")


@value
class Piece:
    """A run of lines of one kind.

    Attributes:
        kind: TEXT, CODE (it stood between fences), or TABLE (lines that begin with a bar).
        text: the lines, joined; no line feed at the end.
        language: what the fence said, when it is a plain word; else "".
    """

    kind: str
    text: str
    language: str = ""


def pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text whose lines end in line feeds."""
    kind, language, fence, indent = TEXT, "", "", 0
    lines: list[str] = []

    def finished() -> Iterator[Piece]:
        if lines:
            yield Piece(kind, "\n".join(lines), language)
            lines.clear()

    for line in text.split("\n"):
        if fence:
            mark = _FENCE.match(line)
            if mark and mark[1].startswith(fence) and not mark[2].strip(" \t"):
                if not lines:
                    lines.append("")
                yield from finished()
                kind, language, fence = TEXT, "", ""
            else:
                lines.append(_without_indent(line, indent))
            continue
        mark = _FENCE.match(line)
        if mark:
            yield from finished()
            word = _LANGUAGE.match(mark[2])
            kind, language, fence = CODE, word[0] if word else "", mark[1]
            indent = len(line) - len(line.lstrip(" "))
            continue
        now = TABLE if line.startswith("|") else TEXT
        if now != kind:
            yield from finished()
            kind = now
        lines.append(line)
    yield from finished()


def _without_indent(line: str, indent: int) -> str:
    """Return a line of code without the indentation of its fence, which belongs to a list around it."""
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]
