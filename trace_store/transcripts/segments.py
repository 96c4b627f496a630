"""Segments: a file, cut into pieces of some records, each an object that says how its bytes come together.

Rule: pure; bytes in, object bytes out. A segment is `["list", {...}]` with

    type      "transcript"
    start     where in the file it begins, in bytes
    size      how many bytes of the file it holds
    hash      their blake3-256, in hex
    items     the id of its layout (a blob), then those of the commits that the layout names
    previous  the id of the segment before it, unless it is the first

The layout is the bytes of the file, in which something else stands for what a commit holds already:

    NUL i . r NUL     the raw record number r of the source of item i
    NUL i . n L NUL   the content number n of the messages of item i, spelled as the letter L says
    NUL NUL           a NUL byte of the file

Records, contents and letters are those of `sources`.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.codec import LIST, decode, encode_ordered, kind_of
from trace_store.oid import OID_BYTES, ObjectId
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TYPE = "transcript"
NUL = b"\x00"


@value
class Segment:
    """A piece of a file.

    Attributes:
        start, size: which bytes of the file it holds.
        hash: their blake3-256, in hex.
        layout: the blob that says how they come together.
        commits: what the layout names, by number from one.
        previous: the segment before it, or None.
    """

    start: int
    size: int
    hash: str
    layout: ObjectId
    commits: tuple[ObjectId, ...]
    previous: ObjectId | None

    @property
    def end(self) -> int:
        """Where in the file it ends."""
        return self.start + self.size

    def encode(self) -> bytes:
        """Return the canonical bytes of the object."""
        previous = {} if self.previous is None else {"previous": self.previous}
        fields: dict[str, object] = {
            "hash": self.hash,
            "items": [self.layout, *self.commits],
            **previous,
            "size": self.size,
            "start": self.start,
            "type": TYPE,
        }
        return encode_ordered([LIST, fields])

    @classmethod
    def decode(cls, data: bytes) -> Segment:
        """Return the segment whose canonical bytes these are.

        Raises:
            CorruptObjectError: they are not a segment.
        """
        fields = decode(data)[1] if kind_of(data) == LIST else None
        if not isinstance(fields, dict) or fields.get("type") != TYPE:
            raise errors.CorruptObjectError("not a segment of a transcript")
        try:
            items = [_oid(item) for item in fields["items"]]
            previous = fields.get("previous")
            return cls(
                start=_number(fields["start"]),
                size=_number(fields["size"]),
                hash=str(fields["hash"]),
                layout=items[0],
                commits=tuple(items[1:]),
                previous=None if previous is None else _oid(previous),
            )
        except (KeyError, TypeError, IndexError) as error:
            raise errors.CorruptObjectError(
                f"a damaged segment of a transcript: {error}"
            ) from error


def escape(data: bytes) -> bytes:
    """Return bytes of a file as they stand in a layout."""
    return data.replace(NUL, NUL + NUL)


def record_place(item: int, record: int) -> bytes:
    """Return what stands in a layout for a record of a commit."""
    return b"\x00%d.%d\x00" % (item, record)


def split_layout(layout: bytes) -> Sequence[bytes | tuple[int, int, str]]:
    """Return a layout as bytes of the file, and places: (item, number, letter), the letter empty for a record.

    Raises:
        CorruptObjectError: it is not a layout.
    """
    found: list[bytes | tuple[int, int, str]] = []
    at = 0
    while (begin := layout.find(NUL, at)) >= 0:
        found.append(layout[at:begin])
        end = layout.find(NUL, begin + 1)
        if end == begin + 1:
            found.append(NUL)
        else:
            found.append(_place(layout[begin + 1 : end] if end > 0 else b""))
        at = end + 1
    found.append(layout[at:])
    return found


def _place(text: bytes) -> tuple[int, int, str]:
    item, _, number = text.partition(b".")
    letter = number[-1:] if number[-1:].isalpha() else b""
    digits = number.removesuffix(letter)
    if not (item.isdigit() and digits.isdigit() and len(text) < 40):
        raise errors.CorruptObjectError("a damaged layout of a transcript")
    return int(item), int(digits), letter.decode("ascii")


def _oid(value: object) -> ObjectId:
    if not isinstance(value, bytes) or len(value) != OID_BYTES:
        raise TypeError("an object id has 32 bytes")
    return ObjectId(value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("a number expected")
    return value
