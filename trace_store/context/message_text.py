"""Text of a message: one-line summaries and search snippets."""

from __future__ import annotations

import re

from trace_store import errors
from trace_store.frozen import value
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Reasoning, Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.objects.parts import Part


LINE_WIDTH = 300
"""Characters of what a message says that its line has at most."""


class Line:
    """A line: only what a message says may be cut, not what stands before and after it."""

    __slots__ = ("after", "before", "said")

    def __init__(self, before: str, said: str = "", after: str = "") -> None:
        self.before = before
        self.said = said
        self.after = after

    def cut(self, width: int) -> str:
        """Return the line with the first `width` characters of what is said, at most LINE_WIDTH.

        The last of them is an ellipsis where there are more.
        """
        said, width = self.said, min(width, LINE_WIDTH)
        if len(said) > width:
            said = said[: width - 1] + "…"
        return self.before + said + self.after


_MAIN = (
    *("command", "cmd", "script", "code", "file_path", "filePath", "path", "pattern", "query"),
    *("url", "prompt", "description", "input", "name"),
)
"""Arguments that say best what a call does, the most telling first."""


def call_line(name: str, arguments: str) -> str:
    """Return a call as `[Bash] pytest -q`: its tool and its main argument, or the beginning of all arguments.

    Args:
        name: of the tool.
        arguments: JSON or other text; it may be cut off anywhere.
    """
    said = " ".join(_main_argument(arguments).split())
    return f"[{name}] {said}" if said else f"[{name}]"


def result_line(text: str) -> str:
    """Return a result as `-> ` and its first line that is not blank."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"-> {first}" if first else "-> (nothing)"


def _main_argument(arguments: str) -> str:
    if not arguments.lstrip().startswith("{"):
        return arguments
    import json  # as dear as a command; only where calls are shown

    decoder = json.JSONDecoder()
    for key in _MAIN:
        _, mark, rest = arguments.partition(f'"{key}":')
        if not mark:
            continue
        value = rest.lstrip()
        try:
            found, _ = decoder.raw_decode(value)
        except (ValueError, RecursionError):
            # The text is cut off within this value.
            found = value.lstrip('"').replace("\\n", " ").replace('\\"', '"')
        if isinstance(found, list):
            found = " ".join(str(each) for each in found)
        if isinstance(found, str) and found.strip():
            return found
    return "" if arguments.strip() == "{}" else arguments


AROUND = 60
"""Characters before and behind what was found."""


@value
class Snippet:
    """A piece of a text, on one line.

    Attributes:
        text: the piece.
        start, end: where in it the hit is, in characters.
    """

    text: str
    start: int
    end: int


def snippet_at(text: str, start: int, end: int) -> Snippet:
    """Return the piece of a text around a hit, given in characters; a long hit is cut."""
    end = min(end, start + 4 * AROUND)
    before = ("…" if start > AROUND else "") + _flat(text[max(0, start - AROUND) : start])
    inside = _flat(text[start:end])
    behind = _flat(text[end : end + AROUND]) + ("…" if end + AROUND < len(text) else "")
    return Snippet(before + inside + behind, len(before), len(before) + len(inside))


def snippet_in(
    stored: Sequence[Mapping[str, Any]], wanted: str, read: Callable[[bytes], bytes]
) -> Snippet | None:
    """Return the piece around the first place where stored parts say something, in any case; None: nowhere here."""
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    try:
        for text in texts_of(load_parts(stored, read)):
            found = pattern.search(text)
            if found is not None:
                return snippet_at(text, *found.span())
    except (errors.NotFoundError, errors.FormatError):
        pass  # what is not here says nothing
    return None


def texts_of(parts: Sequence[Part]) -> Iterator[str]:
    """Yield what parts say: words, calls with their arguments, and results."""
    for part in parts:
        if isinstance(part, Text | Reasoning):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {part.arguments}"
        elif isinstance(part, ToolResult):
            yield from texts_of(part.content)


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")
