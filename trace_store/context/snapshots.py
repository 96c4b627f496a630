"""Snapshots: cached folds, from which later commits, edits and merges continue.

A file starts with a header of 60 bytes, little-endian:

     0   4  "TRFD"                              44   4  number of entries
     4   2  version                             48   4  number of links
     6   2  zero                                52   4  bytes of the facts
     8   4  CRC-32 of all that follows          56   4  zero
    12  32  commit

Then come the facts (msgpack: tools, tools_commit, measured), a record of 97 bytes for each entry (key, flags, and where
its content ends), one of 40 for each link (a message with results, and a message with calls that it answers), and the
contents of the entries in msgpack.

The last folds are cached in memory; folds of many commits are cached in `.trace/cache/folds/`, which is local and can
be deleted. A file that is missing, damaged or of another version is ignored.
"""

from __future__ import annotations

import os
import struct
import zlib
from functools import partial
from itertools import repeat

from trace_store import errors
from trace_store.base.gc_pause import paused
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.context.fold import (
    STATES,
    Entry,
    Fold,
    Place,
    Version,
    apply_commits,
    by_state,
    commits_since,
)
from trace_store.disk.files import read_file, replace_file
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.context.fold import ReadCommit
    from trace_store.store.store import Store

VERSION = 1
_MAGIC = b"TRFD"
_HEAD = struct.Struct("<4sHHI32sIIII")
_ENTRY = struct.Struct("<92sBI")
_KEY = struct.Struct("<16sI32sI32sI")
_LINK = struct.Struct("<16sI16sI")
_CHECKED_FROM = 12
_ADDRESS_OF_ENTRY = struct.Struct("<16sI77x")
_ADDRESSES_OF_LINK = struct.Struct("<16sI20x"), struct.Struct("<20x16sI")
_ANSWERS = 8
"""The flag of entries with `answers`; the other flags are the entry's `state`."""
_STATE_OF_FLAGS = bytes(flags & ~_ANSWERS for flags in range(256))
_VISIBLE = by_state(lambda entry: entry.visible)
_LAZY = ("message", "versions", "current", "labels", "keep")


class SnapshotEntry(Entry):
    """An entry of a snapshot, whose content is unpacked on first use.

    It never changes: a fold copies entries before changing them, and a copy is a plain entry.
    """

    __slots__ = ("_answers", "_content", "key", "state")

    def __init__(
        self, address: Address, key: bytes, state: int, answers: int, content: bytes
    ) -> None:
        self.address = address
        self.key = key  # type: ignore[misc]
        self.state = state  # type: ignore[misc]
        self._answers = answers
        self._content = content

    def __getattr__(self, name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(name)
        message, versions, self.current, labels, keep = _unpack_msgpack(self._content)
        self.versions = [Version(parts, (commit, n)) for parts, commit, n in versions]
        self.message = {**message, "parts": self.versions[0].parts}
        self.labels = frozenset(labels)
        self.keep = tuple(keep)
        return object.__getattribute__(self, name)

    @property
    def home(self) -> Place:  # type: ignore[override]
        """As in `Entry`."""
        return _KEY.unpack(self.key)[2:4]

    @property
    def place(self) -> Place:
        """As in `Entry`."""
        return _KEY.unpack(self.key)[4:]

    @property
    def answers(self) -> tuple[Address, ...]:
        """As in `Entry`."""
        return super().answers if self._answers else ()

    @property
    def hidden(self) -> str:  # type: ignore[override]
        """As in `Entry`."""
        return STATES[self.state][0]

    @property
    def ghost(self) -> bool:  # type: ignore[override]
        """As in `Entry`."""
        return STATES[self.state][1]

    @property
    def priority(self) -> str:  # type: ignore[override]
        """As in `Entry`."""
        return STATES[self.state][2]

    @property
    def visible(self) -> bool:
        """As in `Entry`."""
        return _VISIBLE[self.state]

    def same_state(self, other: Entry) -> bool:
        """As in `Entry`; entries with equal bytes are not unpacked."""
        if self is other:
            return True
        if isinstance(other, SnapshotEntry) and self._content == other._content:
            return self.state == other.state
        return super().same_state(other)


def pack(tip: bytes, state: Fold) -> bytes:
    """Return the bytes of a snapshot file."""
    import msgpack

    entries, links, said = bytearray(), bytearray(), bytearray()
    count = 0
    for entry in state.entries:
        answers = entry.answers if entry.address in state.links else ()
        said += _pack_content(entry, msgpack.packb)
        entries += _ENTRY.pack(entry.key, entry.state | (_ANSWERS if answers else 0), len(said))
        for call in answers:
            links += _LINK.pack(*entry.address, *call)
            count += 1
    facts = msgpack.packb([list(state.tools), state.tools_commit, state.measured])
    body = b"".join((facts, entries, links, said))
    head = _HEAD.pack(_MAGIC, VERSION, 0, 0, tip, len(state.entries), count, len(facts), 0)
    check = zlib.crc32(body, zlib.crc32(head[_CHECKED_FROM:]))
    return b"".join((head[:8], check.to_bytes(4, "little"), head[_CHECKED_FROM:], body))


def unpack(tip: bytes, data: bytes) -> Fold:
    """Return the fold in a snapshot file.

    Raises:
        CorruptIndexError: it is damaged, or of another version or commit.
    """
    if len(data) < _HEAD.size or zlib.crc32(data[_CHECKED_FROM:]) != int.from_bytes(
        data[8:_CHECKED_FROM], "little"
    ):
        raise errors.CorruptIndexError("a snapshot is damaged")
    magic, version, _, _, oid, count, links, facts, _ = _HEAD.unpack_from(data)
    if (magic, version, oid) != (_MAGIC, VERSION, tip):
        raise errors.CorruptIndexError("a snapshot is of another version or commit")
    at = _HEAD.size
    try:
        tools, tools_commit, measured = _unpack_msgpack(data[at : at + facts])
        at += facts
        entries = data[at : at + count * _ENTRY.size]
        at += len(entries)
        linked = data[at : at + links * _LINK.size]
        at += len(linked)
        state = Fold.of(_entries(entries, data, at), _links(linked))
        state.tools, state.tools_commit = tuple(tools), tools_commit
        state.measured = None if measured is None else (measured[0], measured[1])
    except (ValueError, TypeError, LookupError, struct.error) as error:
        raise errors.CorruptIndexError("a snapshot is damaged") from error
    return state


def _unpack_msgpack(data: bytes) -> Any:
    import msgpack

    return msgpack.unpackb(data)


def _addresses(records: bytes, form: struct.Struct) -> list[Address]:
    return list(map(tuple.__new__, repeat(Address), form.iter_unpack(records)))


def _entries(records: bytes, data: bytes, start: int) -> list[Entry]:
    """Return the entries of records; `start` is where their contents start in `data`."""
    keys, flags, ends = zip(*_ENTRY.iter_unpack(records), strict=True) if records else ((), (), ())
    states = bytes(flags).translate(_STATE_OF_FLAGS)
    if not STATES.keys() >= {*states}:
        raise ValueError("an entry has an unknown state")
    answers = [each & _ANSWERS for each in flags]
    stops = [start + end for end in ends]
    contents = [data[at:stop] for at, stop in zip([start, *stops], stops, strict=False)]
    addresses = _addresses(records, _ADDRESS_OF_ENTRY)
    with paused:
        return list(map(SnapshotEntry, addresses, keys, states, answers, contents))


def _links(records: bytes) -> dict[Address, tuple[Address, ...]]:
    found: dict[Address, tuple[Address, ...]] = {}
    results, calls = (_addresses(records, form) for form in _ADDRESSES_OF_LINK)
    for one, other in zip(results, calls, strict=True):
        found[one] = (*found[one], other) if one in found else (other,)
        found[other] = (*found[other], one) if other in found else (one,)
    return found


def _pack_content(entry: Entry, packb: Any) -> bytes:
    if isinstance(entry, SnapshotEntry):
        return entry._content
    message = {key: entry.message[key] for key in entry.message if key != "parts"}
    versions = [[each.parts, *each.place] for each in entry.versions]
    packed: bytes = packb(
        [message, versions, entry.current, sorted(entry.labels), list(entry.keep)]
    )
    return packed


WORTH = 400
"""A fold is saved if it took more commits and messages than this, and than a share of its size."""
_SHARE = 32
FOLDS_IN_MEMORY = 3
"""How many folds are cached in memory: a merge computes those of its base and both tips."""
KEPT = 8
"""Maximum number of files; the oldest are deleted."""
MAXIMUM_BYTES = 1 << 30


def fold_of(
    store: Store, tip: bytes, known: Mapping[bytes, Fold] = {}, *, keep: bool = True
) -> Fold:
    """Return the fold of a commit, which must not be changed; use `copy` to change it.

    Args:
        store: has the commits.
        tip: the commit.
        known: folds by commit, from which to continue; the result shares their entries.
        keep: whether the fold of a long history is saved in a file.

    Raises:
        ObjectNotFoundError: a commit is missing.
        InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `Fold.apply`.
    """
    last = store.last_folds
    state = last.get(tip)
    if state is None:
        with paused:
            state = _compute(store, tip, {**last, **known}, keep=keep)
        others = list(last.items())[1 - FOLDS_IN_MEMORY :]
        store.last_folds = {**dict(others), bytes(tip): state}
    return state


def _compute(store: Store, tip: bytes, known: Mapping[bytes, Fold], *, keep: bool) -> Fold:
    files = _SnapshotFiles(store)

    read = partial(read_commit, read=store.objects.read)
    line, at, state = _since_known_fold(tip, read, known)
    while state is None:  # repeats if a file was damaged
        older, at = commits_since(at, read, known.keys() | files.names.keys())
        line[:0] = older
        state = Fold() if at is None else known[at] if at in known else files.load(at)
    if line:
        state = state.copy()
        costs = [1 + ops.added_by(commit) for _, commit in line]
        limit = max(WORTH, (len(state) + sum(costs)) // _SHARE)
        if keep and sum(costs) > limit:
            # Some commits before the tip: that also serves a merge, whose base is earlier.
            end = _before_last(costs, limit // 2)
            files.write(line[end - 1][0], apply_commits(state, line[:end]))
            line = line[end:]
        apply_commits(state, line)
    return state


def _before_last(costs: Sequence[int], limit: int) -> int:
    """Return the position after which all costs together are within a limit."""
    end = len(costs)
    while end and limit >= costs[end - 1]:
        end -= 1
        limit -= costs[end]
    return end


def _since_known_fold(
    tip: bytes, read: ReadCommit, known: Mapping[bytes, Fold]
) -> tuple[list[tuple[bytes, Commit]], bytes | None, Fold | None]:
    """Return the commits since a known fold, its commit, and the fold, if that is cheaper than reading a file.

    Otherwise return no commits, the tip and None.
    """
    line: list[tuple[bytes, Commit]] = []
    oid: bytes | None = tip
    left = max(map(len, known.values()), default=0) // _SHARE
    while oid is not None and oid not in known and left > 0:
        commit = read(oid)
        left -= 1 + ops.added_by(commit)
        line.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    if oid is None or oid not in known:
        return [], tip, None
    return line[::-1], oid, known[oid]


class _SnapshotFiles:
    """The snapshot files of a store: their names, of a rising number and the commit's id, by the id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.layout.folds_dir
        self.names: dict[bytes, str] = {}
        self._newest = 0
        try:
            names = store.disk.names(self._folder)
        except errors.StorageError:  # not a folder
            names, self._folder = [], ""
        for name in names:
            number, _, oid = name.partition("-")
            if number.isdigit() and is_full_id(oid):
                self._newest = max(self._newest, int(number))
                self.names[bytes.fromhex(oid)] = name

    def load(self, oid: bytes) -> Fold | None:
        """Return a fold; None if the file is damaged or gone, and then it is dropped."""
        path = os.path.join(self._folder, self.names[oid])
        try:
            data = read_file(self._store.disk, path, limit=MAXIMUM_BYTES)
            if data is not None:
                return unpack(oid, data)
        except (errors.CorruptIndexError, errors.StorageError):
            pass
        del self.names[oid]
        return None

    def write(self, oid: bytes, state: Fold) -> None:
        """Save a fold and delete the oldest files; errors are ignored, since they only cost time."""
        if not self._folder:
            return
        disk = self._store.disk
        name = f"{self._newest + 1:06}-{ObjectId(oid)}"
        try:
            path = os.path.join(self._folder, name)
            replace_file(disk, path, pack(oid, state), durable=False)
            for old in sorted(self.names.values())[: -KEPT + 1]:
                disk.remove(os.path.join(self._folder, old))
                del self.names[bytes.fromhex(old.partition("-")[2])]
        except errors.StorageError:
            return
        self._newest += 1
        self.names[bytes(oid)] = name
