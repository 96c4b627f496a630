"""Which journals are sealed: for each line of them, from which number to which.

    sealed 29,31-34 9c0e…32 hex digits…

Rule: a line goes on in the next number. Where one is missing between others that are sealed, it was removed before, and
whoever holds it open must not take it for sealed. So a line has spans of numbers, written as `first-last`; one number
alone is the last of a span that begins with 1.
"""

from __future__ import annotations

from trace_store.journal.frames import LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int]

MAXIMUM_LINES = 64
"""A line of journals ends only when one goes missing or is damaged, so there are few."""
MAXIMUM_SPANS = 64
"""The newest of a line that are kept; journals of older ones are not on the disk any more."""


class Sealed:
    """The sealed journals, the newest line last. Whoever changes one takes a copy before."""

    __slots__ = ("_spans",)

    def __init__(self, spans: Mapping[bytes, tuple[Span, ...]] | None = None) -> None:
        """Take over spans by line, lowest first."""
        self._spans = dict(spans) if spans else {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and list(self._spans.items()) == list(other._spans.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Sealed({self._spans!r})"

    def copy(self) -> Sealed:
        """Return one that changes independently."""
        return Sealed(self._spans)

    def covers(self, line: bytes, number: int) -> bool:
        """Tell whether a journal is among them."""
        return any(first <= number <= last for first, last in self._spans.get(line, ()))

    @property
    def highest(self) -> int:
        """The highest number; 0 when there is none."""
        return max((spans[-1][1] for spans in self._spans.values()), default=0)

    def add(self, line: bytes, first: int, last: int) -> None:
        """Add those of a line between two numbers, both included; the line becomes the newest."""
        kept: list[Span] = []
        for span in self._spans.pop(line, ()):
            if span[1] + 1 < first or last + 1 < span[0]:
                kept.append(span)
            else:
                first, last = min(first, span[0]), max(last, span[1])
        self._spans[line] = tuple(sorted([*kept, (first, last)]))[-MAXIMUM_SPANS:]

    def add_all(self, other: Sealed) -> None:
        """Add those of another."""
        for line, spans in other._spans.items():
            for first, last in spans:
                self.add(line, first, last)

    def lines(self) -> Iterator[str]:
        """Yield the lines of text that `parse` reads, of the newest lines of journals."""
        for line, spans in list(self._spans.items())[-MAXIMUM_LINES:]:
            numbers = [f"{last}" if first == 1 else f"{first}-{last}" for first, last in spans]
            yield f"sealed {','.join(numbers)} {line.hex()}\n"

    def parse(self, text: str) -> bool:
        """Add what a line of text says; False when it is no such line.

        Raises:
            ValueError: it is one, and says nothing that is valid.
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
