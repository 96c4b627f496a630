"""A record of a transcript: one JSON object, where it stands in the file, and what it added to a message."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.objects.parts import Part


class Record:
    """One JSON object of a file.

    Attributes:
        line: the number of its line.
        offset, length: where its bytes are in the file.
        raw: its bytes as they are kept.
        data: the object.
        parts: what it added to a message, filled while a plan is made.
        filtered: whether `raw` differs from what the file holds.
    """

    __slots__ = ("data", "filtered", "length", "line", "offset", "parts", "raw")

    def __init__(
        self,
        line: int,
        offset: int,
        length: int,
        raw: bytes,
        data: dict[str, Any],
        parts: tuple[Part, ...] = (),
        filtered: bool = False,
    ) -> None:
        self.line = line
        self.offset = offset
        self.length = length
        self.raw = raw
        self.data = data
        self.parts = parts
        self.filtered = filtered
