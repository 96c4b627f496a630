"""The objects of a context, as one stream of bytes: what a program reads that wants them all.

For each message, in the order of the context: the commit that made it, unless it is that of the message before; of an
edited message the commit with its wording; then the content of its parts, each object that holds it. A list of chunks
is followed by its chunks. The placeholder of a removed message has no content. An object that several messages show
comes with each of them.

Rule: canonical bytes as they are stored, hash-checked, in large pieces. No text is decoded and no message built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from trace_store.context.index_records import EDITED, GHOST, MessageRecord
from trace_store.context.wording import created_messages, wording_of
from trace_store.errors import CorruptObjectError
from trace_store.objects.codec import links
from trace_store.objects.commit import Commit
from trace_store.objects.message import part_blobs
from trace_store.objects.moulds import Moulds
from trace_store.oid import ObjectId

ReadMany = Callable[[Iterable[bytes]], Iterator[tuple[ObjectId, bytes]]]

PIECE_BYTES = 1024 * 1024
_LIST_HEAD = b"\x92\xa4list"


def object_stream(
    blocks: Iterable[tuple[bytes, Sequence[int]]], read_many: ReadMany
) -> Iterator[bytes]:
    """Yield the stream in pieces of about 1 MiB, or as long as one object.

    Args:
        blocks: checked records of an index, with the offsets of the messages in them.
        read_many: gives objects in the order asked for, hash-checked.

    Raises:
        ObjectNotFoundError, CorruptObjectError: an object is not here, or is damaged.
    """
    moulds = Moulds()
    held: list[bytes] = []
    size = 0
    before = b""
    for block, places in blocks:
        records = [MessageRecord.unpack_from(block, at) for at in places]
        for data in _objects(records, before, moulds, read_many):
            held.append(data)
            size += len(data)
            if size >= PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
        before = records[-1].commit
    if held:
        yield b"".join(held)


def _objects(
    records: list[MessageRecord], before: bytes, moulds: Moulds, read_many: ReadMany
) -> Iterator[bytes]:
    """Yield the objects of some messages, the first of which follows one of the commit `before`."""
    commits = read_many(_commits_of(records))
    blobs: list[bytes] = []
    steps: list[tuple[list[bytes], int]] = []
    reading: _Commit | None = None
    for record in records:
        written: list[bytes] = []
        if reading is None or reading.oid != record.commit:
            reading = _Commit(*next(commits), moulds)
            if steps or record.commit != before:
                written.append(reading.data)
        if record.flags & EDITED:
            _, edit = next(commits)
            written.append(edit)
            found = part_blobs(wording_of(Commit.decode(edit), record.place_number))
        else:
            found = reading.blobs(record.number)
        if record.flags & GHOST:
            found = []
        blobs += found
        steps.append((written, len(found)))
    contents = read_many(blobs)
    for written, count in steps:
        yield from written
        for _, content in islice(contents, count):
            yield content
            if content.startswith(_LIST_HEAD):
                for _, chunk in read_many(links(content)):
                    yield chunk


def _commits_of(records: list[MessageRecord]) -> Iterator[bytes]:
    """Yield the commits to read, in the order in which they are wanted."""
    made = b""
    for record in records:
        if record.commit != made:
            made = record.commit
            yield made
        if record.flags & EDITED:
            yield record.place_commit


class _Commit:
    """A commit that was read, and what the messages that it makes hold."""

    __slots__ = ("_created", "_mould", "data", "oid")

    def __init__(self, oid: ObjectId, data: bytes, moulds: Moulds) -> None:
        self.oid = oid
        self.data = data
        self._mould = moulds.find(data)
        self._created = [] if self._mould else created_messages(Commit.decode(data))

    def blobs(self, number: int) -> list[bytes]:
        """Return the ids of the content of a message."""
        if self._mould is not None and number < len(self._mould.messages):
            return [self.data[blob] for blob in self._mould.messages[number].blobs]
        if self._mould is None and number < len(self._created):
            return part_blobs(self._created[number]["parts"])
        raise CorruptObjectError(f"commit {self.oid} has no message {number}")
