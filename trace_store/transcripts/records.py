"""Transcript records: a JSON object, its place in the file, and its message parts."""

from __future__ import annotations

from trace_store.frozen import mutable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.objects.parts import Part


@mutable
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

    line: int
    offset: int
    length: int
    raw: bytes
    data: dict[str, Any]
    parts: tuple[Part, ...] = ()
    filtered: bool = False
