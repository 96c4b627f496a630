"""The sealed journals: ranges of numbers for each line.

    sealed 29,31-34 9c0e…32 hex digits…

Rule: the successor in a line has the next number. If a number between sealed ones is missing, that journal was removed
without a seal, and a process that has it open must not treat it as sealed. So a line has several spans of numbers,
written as `first-last`; a single number is the last of a span that begins with 1.
"""

from __future__ import annotations

from trace_store.journal.frames import LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int]

MAXIMUM_LINES = 64
"""Maximum number of lines. A line ends only if a journal is lost or damaged, so there are few."""
MAXIMUM_SPANS = 64
"""Number of newest spans to keep for a line; journals of older ones are no longer on disk."""


class Sealed:
    """The sealed journals, newest line last. Copy before changing."""

    __slots__ = ("_spans",)

    def __init__(self, spans: Mapping[bytes, tuple[Span, ...]] | None = None) -> None:
        """Use the given spans by line, lowest first."""
        self._spans = dict(spans) if spans else {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and list(self._spans.items()) == list(other._spans.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Sealed({self._spans!r})"

    def copy(self) -> Sealed:
        """Return an independent copy."""
        return Sealed(self._spans)

    def covers(self, line: bytes, number: int) -> bool:
        """Return True if a journal is sealed."""
        return any(first <= number <= last for first, last in self._spans.get(line, ()))

    @property
    def highest(self) -> int:
        """The highest number; 0 if empty."""
        return max((spans[-1][1] for spans in self._spans.values()), default=0)

    def add(self, line: bytes, first: int, last: int) -> None:
        """Add a range of numbers (inclusive) of a line, which becomes the newest line."""
        kept: list[Span] = []
        for span in self._spans.pop(line, ()):
            if span[1] + 1 < first or last + 1 < span[0]:
                kept.append(span)
            else:
                first, last = min(first, span[0]), max(last, span[1])
        self._spans[line] = tuple(sorted([*kept, (first, last)]))[-MAXIMUM_SPANS:]

    def add_all(self, other: Sealed) -> None:
        """Add all journals of another value."""
        for line, spans in other._spans.items():
            for first, last in spans:
                self.add(line, first, last)

    def lines(self) -> Iterator[str]:
        """Yield the lines of text for `parse`; only the newest lines of journals are kept."""
        for line, spans in list(self._spans.items())[-MAXIMUM_LINES:]:
            numbers = [f"{last}" if first == 1 else f"{first}-{last}" for first, last in spans]
            yield f"sealed {','.join(numbers)} {line.hex()}\n"

    def parse(self, text: str) -> bool:
        """Add the journals in a line of text; False if it is another kind of line.

        Raises:
            ValueError: the line is invalid.
        """
        if not text.startswith("sealed "):
            return False
        numbers, _, name = text[7:].partition(" ")
        line = bytes.fromhex(name)
        if len(line) != LINE_BYTES:
            raise ValueError("not the id of a line of journals")
        for span in numbers.split(","):
            first, _, last = span.rpartition("-")
            self.add(line, int(first or 1), int(last))
        return True
