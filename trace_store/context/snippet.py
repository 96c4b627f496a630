"""Snippets: the text around a search hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Data, Part, Reasoning, Text, ToolCall, ToolResult

AROUND = 60
"""Characters before and after the hit."""


@value
class Snippet:
    """A snippet of text on one line.

    Attributes:
        text: the snippet.
        start, end: the hit, in characters.
    """

    text: str
    start: int
    end: int


def snippet_at(text: str, start: int, end: int) -> Snippet:
    """Return the snippet around a hit, given in characters; a long hit is cut."""
    end = min(end, start + 4 * AROUND)
    before = ("…" if start > AROUND else "") + _flat(text[max(0, start - AROUND) : start])
    inside = _flat(text[start:end])
    after = _flat(text[end : end + AROUND]) + ("…" if end + AROUND < len(text) else "")
    return Snippet(before + inside + after, len(before), len(before) + len(inside))


def snippet_in(
    stored: Sequence[Mapping[str, Any]], wanted: str, read: Callable[[bytes], bytes]
) -> Snippet | None:
    """Return the snippet around the first occurrence of a text in stored parts, ignoring case, or None."""
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    try:
        for text in texts_of(load_parts(stored, read)):
            found = pattern.search(text)
            if found is not None:
                return snippet_at(text, *found.span())
    except (errors.NotFoundError, errors.FormatError):
        pass  # missing content does not match
    return None


def texts_of(parts: Sequence[Part]) -> Iterator[str]:
    """Yield the texts of parts: text, texts in data, calls with their arguments, and results."""
    for part in parts:
        if isinstance(part, Data):
            yield from _texts_of_data(part)
        elif isinstance(part, Text | Reasoning):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {part.arguments}"
        elif isinstance(part, ToolResult):
            yield from texts_of(part.content)


def _texts_of_data(part: Data) -> Iterator[str]:
    """Yield the texts in an object, without names of fields and of its type."""
    try:
        waiting: list[object] = [part.value]
    except errors.CorruptObjectError:
        waiting = [part.text]  # it was purged
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += [found[name] for name in reversed(found) if name != "type"]
        elif isinstance(found, list):
            waiting += reversed(found)


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")
