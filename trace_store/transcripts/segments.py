"""Segments: a file cut into objects, and given back byte for byte.

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

Rule: reads, never writes; yields no byte of a segment that is not as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trace_store import errors
from trace_store.frozen import value
from trace_store.objects.codec import LIST, decode, encode_ordered, kind_of
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content
from trace_store.oid import OID_BYTES, ObjectId, digest
from trace_store.transcripts.sources import content_ids, source_records, spelled_content

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


Read = Callable[[bytes], bytes]
Held = dict[ObjectId, tuple[list[bytes], list[bytes]]]
"""The raw records and the ids of the contents that commits hold."""


def segments_of(tip: bytes, read: Read) -> list[Segment]:
    """Return the segments of a file, first to last.

    Raises:
        ObjectNotFoundError: a segment is not here.
        CorruptObjectError: one is damaged, or they do not follow each other.
    """
    found: list[Segment] = []
    oid: ObjectId | None = ObjectId(tip)
    while oid is not None:
        segment = Segment.decode(read(oid))
        if found and segment.start >= found[-1].start:
            raise errors.CorruptObjectError(
                f"segment {oid.short()} does not come before its follower"
            )
        found.append(segment)
        oid = segment.previous
    return found[::-1]


def restore(tip: bytes, read: Read) -> Iterator[bytes]:
    """Yield a file's bytes, segment by segment.

    Raises:
        ObjectNotFoundError: something that the file was kept with is not here.
        CorruptObjectError: what comes together is not what the file held.
    """
    held: Held = {}
    for segment in segments_of(tip, read):
        yield restore_segment(segment, read, held)
        # A commit may hold records of many segments; what it holds is put together once.
        held = {oid: found for oid, found in held.items() if oid in segment.commits}


def restore_segment(segment: Segment, read: Read, held: Held | None = None) -> bytes:
    """Return the bytes of a segment; errors as in `restore`.

    Args:
        segment: the segment.
        read: reads objects.
        held: what commits hold, as far as it was looked up; it is added to.
    """
    pieces: list[bytes] = []
    held = {} if held is None else held
    for piece in split_layout(read_content(segment.layout, read)):
        if isinstance(piece, bytes):
            pieces.append(piece)
            continue
        item, number, letter = piece
        try:
            oid = segment.commits[item - 1]
            if oid not in held:
                commit = read_commit(oid, read)
                held[oid] = (source_records(commit, read), content_ids(commit))
            records, contents = held[oid]
            if letter:
                pieces.append(spelled_content(contents[number], letter, read))
            else:
                pieces.append(records[number])
        except (IndexError, ValueError) as error:
            raise errors.CorruptObjectError(f"a damaged layout of a transcript: {error}") from error
    data = b"".join(pieces)
    if digest(data).hex() != segment.hash:
        raise errors.CorruptObjectError("a piece of a transcript is not what the file held")
    return data


def file_size(tip: bytes, read: Read) -> int:
    """Return how many bytes a file has; errors as in `segments_of`, of its last segment alone."""
    return Segment.decode(read(tip)).end
