"""Transcript records: a JSON object, its place in the file, and its message parts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.objects.parts import Part


class Record:
    """One JSON object of a file.

    Attributes:
        line: line number.
        offset, length: byte range in the file.
        raw: its bytes as stored.
        data: the object.
        parts: the message parts that it added, set while a plan is built.
        filtered: True if `raw` differs from the file, because secrets were redacted.
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
