"""The objects of a context, as one stream of bytes: what a program reads that wants them all.

For each message, in the order of the context: the commit that made it, unless it is that of the message before; of an
edited message the commit with its wording; then the content of its parts, each object that holds it. A list of chunks
is followed by its chunks. The placeholder of a removed message has no content. An object that several messages show
comes with each of them.

Rule: canonical bytes as they are stored, hash-checked, in large pieces. No text is decoded and no message built.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors
from trace_store.context.content import wording_at
from trace_store.context.index_records import (
    EDITED,
    GHOST,
    MARKER,
    MESSAGE_BYTES,
    MessageRecord,
    home_at,
    unpack_places,
)
from trace_store.objects.codec import links
from trace_store.objects.commit import Commit
from trace_store.objects.message import part_blobs
from trace_store.objects.operations import added_messages
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    ReadData: TypeAlias = Callable[[Iterable[bytes]], Iterator[bytes]]


PIECE_BYTES = 1024 * 1024
_LIST_HEAD = b"\x92\xa4list"


def object_stream(
    blocks: Iterable[tuple[bytes, Sequence[int]]],
    read_data: ReadData,
    purged: frozenset[bytes] = frozenset(),
) -> Iterator[bytes]:
    """Yield the stream in pieces of about 1 MiB, or as long as an object.

    Args:
        blocks: checked records of an index, with the offsets of the messages in them.
        read_data: gives objects in the order asked for, hash-checked.
        purged: ids of content that was purged, and is left out.

    Raises:
        ObjectNotFoundError, CorruptObjectError: an object is not here, or is damaged.
    """
    held: list[bytes] = []
    size = 0
    before = b""
    for block, places in blocks:
        for data in _objects(block, before, read_data, purged):
            held.append(data)
            size += len(data)
            if size >= PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
        before = home_at(block, places[-1])
    if held:
        yield b"".join(held)


def _objects(
    block: bytes, before: bytes, read_data: ReadData, purged: frozenset[bytes]
) -> Iterator[bytes]:
    """Yield the objects of a block's messages; one of the commit `before` stands before them."""
    commits = read_data(_commits_of(block))
    blobs: list[bytes] = []
    steps: list[tuple[tuple[bytes, ...], int]] = []
    current = b""
    added: list[Mapping[str, Any]] = []
    for at, (commit, number, flags, _) in enumerate(unpack_places(block)):
        if flags & MARKER:
            continue
        written: tuple[bytes, ...] = ()
        if commit != current:
            current = commit
            data = next(commits)
            added = [message for _, message in added_messages(Commit.decode(data), commit)]
            if steps or commit != before:
                written = (data,)
        if number >= len(added):
            raise errors.CorruptObjectError(f"commit {ObjectId(commit)} has no message {number}")
        parts = added[number]["parts"]
        if flags & EDITED:
            record = MessageRecord.unpack_from(block, at * MESSAGE_BYTES)
            edit = next(commits)
            written = (*written, edit)
            parts = wording_at(
                (record.place_commit, record.place_number),
                {record.place_commit: Commit.decode(edit)}.__getitem__,
            )
        found = [] if flags & GHOST else part_blobs(parts)
        found = [oid for oid in found if oid not in purged] if purged else found
        blobs += found
        steps.append((written, len(found)))
    contents = read_data(blobs)
    for written, count in steps:
        yield from written
        for content in islice(contents, count):
            yield content
            if content.startswith(_LIST_HEAD):
                yield from read_data(links(content))


def _commits_of(block: bytes) -> Iterator[bytes]:
    """Yield the commits to read, in the order in which they are wanted."""
    current = b""
    for at, (commit, _, flags, _) in enumerate(unpack_places(block)):
        if flags & MARKER:
            continue
        if commit != current:
            current = commit
            yield commit
        if flags & EDITED:
            yield MessageRecord.unpack_from(block, at * MESSAGE_BYTES).place_commit
