"""Content of many messages with few reads: one by one, or as a stream of objects.

What is read ahead equals the result of `load_message`. Special cases (ghosts, edits, chunked or damaged content) are
left to the slow path, which raises the right error. Nothing is read ahead until messages are accessed one after the
other.

The stream is for programs that read all objects of a context. For each message, in context order: its commit, unless
the message before has the same; for an edited message the commit with the current version; then each object of its
content, a list of chunks before its chunks. A ghost has no content. Objects that several messages share are repeated.
Objects come in canonical form, hash-checked and in large pieces; no text is decoded and no message is created.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors
from trace_store.base.gc_pause import paused
from trace_store.base.oid import ObjectId
from trace_store.context.compile_index import (
    EDITED,
    GHOST,
    MARKER,
    MESSAGE_BYTES,
    MessageRecord,
    home_at,
    ordinal_at,
    unpack_homes,
)
from trace_store.context.content import version_at
from trace_store.objects.address import Address, resolve_calls
from trace_store.objects.codec import links
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_message, load_parts, part_blobs
from trace_store.objects.operations import messages_in, stored_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.objects.message import Message
    from trace_store.objects.parts import Part

    Stored = Mapping[str, Any]
    """A message in stored form."""
    ReadData: TypeAlias = Callable[[Iterable[bytes]], Iterator[bytes]]
    Said: TypeAlias = tuple[str, str, str, tuple[Part, ...]]
    """Name, model, id and parts of a message."""

LONGEST_WINDOW = 2048
GROWTH = 8
MAXIMUM_BYTES = 8 * 1024 * 1024
"""Limit for content that is read ahead in bytes; the message that exceeds it is the last."""
_UNUSUAL = MARKER | GHOST | EDITED
PIECE_BYTES = 1024 * 1024
_LIST_HEAD = b"\x92\xa4list"
_MALFORMED = (TypeError, LookupError, AttributeError, ValueError)
"""Errors of a commit that only a forged index can name: see `messages_in`."""


class Loader:
    """Loads messages of one context, in larger batches as long as access is sequential."""

    __slots__ = ("_block", "_decoded", "_last", "_loaded", "_read_data", "_size")

    def __init__(self, read_data: ReadData) -> None:
        self._read_data = read_data
        self._decoded: tuple[bytes, Sequence[Stored]] = (b"", ())
        self._block = b""
        self._loaded: dict[int, Said | None] = {}
        """Contents by the offsets of their records in the block."""
        self._last = -1
        self._size = 1

    def load(self, block: bytes, at: int) -> Said | None:
        """Return the content of a message; None if the slow path must read it.

        Args:
            block: records of the index; those after the message's may be read ahead.
            at: the offset of its record.
        """
        if block is not self._block or at not in self._loaded:
            self._read_ahead(block, at)
        self._last = at
        return self._loaded.pop(at, None)

    def _read_ahead(self, block: bytes, at: int) -> None:
        """Load messages from this one on, if access is sequential."""
        self._loaded = {}
        before = ordinal_at(self._block, self._last) if self._last >= 0 else -1
        if ordinal_at(block, at) == before + 1:
            self._size = min(self._size * GROWTH, LONGEST_WINDOW)
            stop = min(at + self._size * MESSAGE_BYTES, len(block))
            self._loaded = self._window(block[at:stop], at)
        else:
            self._size = 1
        self._block = block

    def _window(self, records: bytes, start: int) -> dict[int, Said | None]:
        """Return contents by offset, up to the first message that cannot be read."""
        found: dict[int, Said | None] = {}
        wanted: list[tuple[int, bytes, int]] = []
        for n, (commit, number, flags, _) in enumerate(unpack_homes(records)):
            at = start + n * MESSAGE_BYTES
            if not flags & _UNUSUAL:
                wanted.append((at, commit, number))
            elif not flags & MARKER:
                found[at] = None
        try:
            with paused:
                self._load_contents(found, wanted)
        except (errors.TraceError, *_MALFORMED):
            return found  # the slow path raises the error
        return found

    def _load_contents(
        self, found: dict[int, Said | None], wanted: Sequence[tuple[int, bytes, int]]
    ) -> None:
        """Add the contents of messages without special cases, up to the size limit."""
        stored = self._read_stored(wanted)
        blobs = [part_blobs(message["parts"]) for message in stored]
        # Without duplicates, in message order.
        contents = self._read_data(dict.fromkeys(oid for oids in blobs for oid in oids))
        objects: dict[bytes, bytes] = {}
        held = 0
        for (at, _, _), message, oids in zip(wanted, stored, blobs, strict=False):
            for oid in oids:
                if oid not in objects:
                    objects[oid] = content = next(contents)
                    held += len(content)
            try:
                found[at] = _content_of(message, objects)
            except (UnicodeDecodeError, errors.TraceError):
                found[at] = None
            if held > MAXIMUM_BYTES:
                return

    def _read_stored(self, wanted: Sequence[tuple[int, bytes, int]]) -> list[Stored]:
        """Return stored messages, up to the first missing one; each commit is decoded once."""
        current, added = self._decoded
        oids: list[bytes] = []
        for _, commit, _ in wanted:
            if commit != (oids[-1] if oids else current):
                oids.append(commit)
        commits = self._read_data(oids)
        found: list[Stored] = []
        for _, commit, number in wanted:
            if commit != current:
                current, added = commit, messages_in(next(commits))
            if number >= len(added):
                break
            message = added[number]
            parts = resolve_calls(message["parts"], commit)
            found.append(message if parts is message["parts"] else {**message, "parts": parts})
        self._decoded = current, added
        return found


def _content_of(stored: Stored, objects: Mapping[bytes, bytes]) -> Said:
    parts = load_parts(stored["parts"], objects.__getitem__)
    return stored.get("name", ""), stored.get("model", ""), stored.get("id", ""), parts


def messages_at(
    addresses: Sequence[Address],
    find: Callable[[str], Sequence[ObjectId]],
    read_data: ReadData,
) -> list[Message]:
    """Return messages as they were born: each commit and each content is read once, without a fold.

    Args:
        addresses: their addresses.
        find: returns the ids of objects that begin with some hex digits.
        read_data: returns objects in the order asked for.

    Raises:
        MessageNotFoundError: a commit of birth is missing, or adds no such message.
        ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
    """
    births = {each.birth: find(each.birth.hex()) for each in addresses}
    oids = [oid for found in births.values() for oid in found]
    added: dict[Address, Stored] = {}
    for oid, data in zip(oids, read_data(oids), strict=True):
        for number, stored in enumerate(stored_messages(Commit.decode(data))):
            parts = resolve_calls(stored["parts"], oid)
            added[Address.of(oid, number)] = {**stored, "parts": parts}
    missing = next((each for each in addresses if each not in added), None)
    if missing is not None:
        raise errors.MessageNotFoundError(f"no commit adds the message {missing}", address=missing)
    blobs = dict.fromkeys(oid for each in addresses for oid in part_blobs(added[each]["parts"]))
    contents = dict(zip(blobs, read_data(blobs), strict=True))

    def read(oid: bytes) -> bytes:
        return contents[oid] if oid in contents else next(read_data([oid]))

    return [load_message(added[each], read) for each in addresses]


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
    for block, offsets in blocks:
        try:
            for data in _objects(block, before, read_data, purged):
                buffer.append(data)
                size += len(data)
                if size >= PIECE_BYTES:
                    yield b"".join(buffer)
                    buffer, size = [], 0
        except errors.TraceError:
            raise
        except _MALFORMED as error:
            raise errors.CorruptObjectError(f"not a valid commit: {error}") from error
        before = home_at(block, offsets[-1])
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
    for at, (commit, number, flags, _) in enumerate(unpack_homes(block)):
        if flags & MARKER:
            continue
        written: tuple[bytes, ...] = ()
        if commit != current:
            current = commit
            data = next(commits)
            added = messages_in(data)
            if steps or commit != before:
                written = (data,)
        if number >= len(added):
            raise errors.CorruptObjectError(f"commit {ObjectId(commit)} has no message {number}")
        parts = added[number]["parts"]
        if flags & EDITED:
            record = MessageRecord.unpack_from(block, at * MESSAGE_BYTES)
            edit = next(commits)
            written = (*written, edit)
            parts = version_at(
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
    for at, (commit, _, flags, _) in enumerate(unpack_homes(block)):
        if flags & MARKER:
            continue
        if commit != current:
            current = commit
            yield commit
        if flags & EDITED:
            yield MessageRecord.unpack_from(block, at * MESSAGE_BYTES).place_commit
