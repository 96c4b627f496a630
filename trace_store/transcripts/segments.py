"""Segments: stored pieces of a source file, restored byte for byte.

Invariant: pure, no writes. A segment is `["list", {...}]` with

    type      "transcript"
    start     byte offset in the file
    size      number of bytes
    hash      blake3-256 of these bytes, in hex
    items     id of its layout (a blob), then ids of the commits that the layout refers to
    previous  id of the segment before it; absent for the first

The layout is the bytes of the file, with references to what commits already hold:

    NUL i.r NUL     raw record r of commit i
    NUL i.nL NUL    content n of the messages of commit i, in encoding L
    NUL NUL         a NUL byte of the file

Commit i is item i of the segment, since item 0 is the layout. The module `sources` defines records, contents and
encodings; an encoding is one letter.

Invariant: no byte of a segment is returned unless its hash matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, checked_id, digest
from trace_store.objects.codec import LIST, decode, encode_ordered, kind_of
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content
from trace_store.transcripts.sources import content_ids, encode_content, source_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


TYPE = "transcript"
NUL = b"\x00"


@value
class Segment:
    """A stored piece of a file.

    Attributes:
        start, size: byte range in the file.
        hash: blake3-256 of these bytes, in hex.
        layout: id of the layout blob.
        commits: commits that the layout refers to, numbered from one.
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
        """Byte offset of its end in the file."""
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
        """Return the segment that canonical bytes encode.

        Raises:
            CorruptObjectError: they are not a segment.
        """
        fields = decode(data)[1] if kind_of(data) == LIST else None
        if not isinstance(fields, dict) or fields.get("type") != TYPE:
            raise errors.CorruptObjectError("not a transcript segment")
        try:
            items = [checked_id(item) for item in fields["items"]]
            previous = fields.get("previous")
            return cls(
                start=_number(fields["start"]),
                size=_number(fields["size"]),
                hash=str(fields["hash"]),
                layout=items[0],
                commits=tuple(items[1:]),
                previous=None if previous is None else checked_id(previous),
            )
        except (KeyError, TypeError, IndexError) as error:
            raise errors.CorruptObjectError(f"damaged transcript segment: {error}") from error


def escape(data: bytes) -> bytes:
    """Escape file bytes for a layout."""
    return data.replace(NUL, NUL + NUL)


def record_entry(item: int, record: int) -> bytes:
    """Return the layout entry of a record of a commit."""
    return b"\x00%d.%d\x00" % (item, record)


def split_layout(layout: bytes) -> Sequence[bytes | tuple[int, int, str]]:
    """Split a layout into file bytes and entries (item, number, encoding).

    The encoding is empty for a record.

    Raises:
        CorruptObjectError: the layout is damaged.
    """
    pieces: list[bytes | tuple[int, int, str]] = []
    at = 0
    while (begin := layout.find(NUL, at)) >= 0:
        pieces.append(layout[at:begin])
        end = layout.find(NUL, begin + 1)
        if end == begin + 1:
            pieces.append(NUL)
        else:
            pieces.append(_parse_entry(layout[begin + 1 : end] if end > 0 else b""))
        at = end + 1
    pieces.append(layout[at:])
    return pieces


def _parse_entry(text: bytes) -> tuple[int, int, str]:
    item, _, number = text.partition(b".")
    encoding = number[-1:] if number[-1:].isalpha() else b""
    digits = number.removesuffix(encoding)
    if not (item.isdigit() and digits.isdigit() and len(text) < 40):
        raise errors.CorruptObjectError("damaged transcript layout")
    return int(item), int(digits), encoding.decode("ascii")


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a count")
    return value


Read = Callable[[bytes], bytes]
CommitCache = dict[ObjectId, tuple[list[bytes], list[bytes]]]
"""Raw records and content ids of commits."""


def segments_of(tip: bytes, read: Read) -> list[Segment]:
    """Return the segments of a file in order.

    Raises:
        ObjectNotFoundError: a segment is missing.
        CorruptObjectError: one is damaged, or they are out of order.
    """
    segments: list[Segment] = []
    oid: ObjectId | None = ObjectId(tip)
    while oid is not None:
        segment = Segment.decode(read(oid))
        if segments and segment.start >= segments[-1].start:
            raise errors.CorruptObjectError(
                f"segment {oid.short()} does not start before the segment that follows it"
            )
        segments.append(segment)
        oid = segment.previous
    return segments[::-1]


def restore(tip: bytes, read: Read) -> Iterator[bytes]:
    """Yield the bytes of a file, one segment at a time.

    Raises:
        ObjectNotFoundError: a stored object is missing.
        CorruptObjectError: the restored bytes do not match the hash.
    """
    cache: CommitCache = {}
    for segment in segments_of(tip, read):
        yield restore_segment(segment, read, cache)
        # Keep the commits of this segment, since the next segment often refers to the same ones.
        cache = {oid: contents for oid, contents in cache.items() if oid in segment.commits}


def restore_segment(segment: Segment, read: Read, cache: CommitCache | None = None) -> bytes:
    """Return the bytes of a segment; errors as in `restore`.

    Args:
        segment: the segment.
        read: reads objects.
        cache: cache of commit contents, which this fills.
    """
    pieces: list[bytes] = []
    cache = {} if cache is None else cache
    for piece in split_layout(read_content(segment.layout, read)):
        if isinstance(piece, bytes):
            pieces.append(piece)
            continue
        item, number, encoding = piece
        try:
            oid = segment.commits[item - 1]
            if oid not in cache:
                commit = read_commit(oid, read)
                cache[oid] = (source_records(commit, read), content_ids(commit))
            records, contents = cache[oid]
            if encoding:
                pieces.append(encode_content(contents[number], encoding, read))
            else:
                pieces.append(records[number])
        except (IndexError, ValueError) as error:
            raise errors.CorruptObjectError(f"damaged transcript layout: {error}") from error
    data = b"".join(pieces)
    if digest(data).hex() != segment.hash:
        raise errors.CorruptObjectError("transcript segment hash mismatch")
    return data


def file_size(tip: bytes, read: Read) -> int:
    """Return the size of a file in bytes, from its last segment.

    Errors as in `segments_of`.
    """
    return Segment.decode(read(tip)).end
