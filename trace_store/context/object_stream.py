"""The objects of a context as one stream of bytes, for programs that read all of them.

For each message, in context order: its commit, unless the message before has the same; for an edited message the commit
with the current version; then each object of its content, a list of chunks before its chunks. A ghost has no content.
Objects that several messages share are repeated. Objects come in canonical form, hash-checked and in large pieces; no
text is decoded and no message is created.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors
from trace_store.context.compile_index import (
    EDITED,
    GHOST,
    MARKER,
    MESSAGE_BYTES,
    MessageRecord,
    home_at,
    unpack_places,
)
from trace_store.context.content import wording_at
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
    """Yield the stream in pieces of at least about 1 MiB.

    Args:
        blocks: checked records of an index, with the offsets of their messages.
        read_data: returns objects in the order asked for, hash-checked.
        purged: ids of purged content to leave out.

    Raises:
        ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
    """
    buffer: list[bytes] = []
    size = 0
    before = b""
    for block, places in blocks:
        for data in _objects(block, before, read_data, purged):
            buffer.append(data)
            size += len(data)
            if size >= PIECE_BYTES:
                yield b"".join(buffer)
                buffer, size = [], 0
        before = home_at(block, places[-1])
    if buffer:
        yield b"".join(buffer)


def _objects(
    block: bytes, before: bytes, read_data: ReadData, purged: frozenset[bytes]
) -> Iterator[bytes]:
    """Yield the objects of a block's messages; the commit `before` was yielded last."""
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
    """Yield the commits to read, in order."""
    current = b""
    for at, (commit, _, flags, _) in enumerate(unpack_places(block)):
        if flags & MARKER:
            continue
        if commit != current:
            current = commit
            yield commit
        if flags & EDITED:
            yield MessageRecord.unpack_from(block, at * MESSAGE_BYTES).place_commit
