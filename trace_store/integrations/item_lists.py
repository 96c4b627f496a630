"""Lists of items that a framework appends to: one record each, of which an append writes only what is new.

A list is a value of its record: a sequence with one piece for each item. The messages among the items are the context.
Each commit that changes a list names in its metadata the first item that it adds, and the number of items, so a list
can be cut after any item: the cut list follows an earlier commit, whose context is right already.

    lists = ItemLists(store.records, "items")
    draft = store.records.draft(name, expect=state.commit, values=state.values)
    meta = lists.fill(draft, state, [b'{"role": "user", "content": "Hello"}'])
    draft.messages.append("user", "Hello")
    draft.write(meta={"example": meta})
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from threading import Lock, RLock
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.history.records import RecordDraft, Records, RecordState, RecordValue
from trace_store.integrations.framework_store import MAXIMUM_ATTEMPTS
from trace_store.objects.sequences import ContentSequence
from trace_store.repo.repository import Repo

_AT, _COUNT = "at", "count"
_CACHED_BYTES = 64 << 20
_ID_BYTES = 128
"""The approximate size of an item's id in memory."""

_guard = Lock()
_locks: WeakKeyDictionary[Repo, RLock] = WeakKeyDictionary()
T = TypeVar("T")
P = ParamSpec("P")


@value
class Cut:
    """Where a list that ends after one of its items begins.

    Attributes:
        start: the commit that it follows, or None.
        at: the number of items at that commit.
        rest: the items that it adds to them.
    """

    start: ObjectId | None
    at: int
    rest: Sequence[bytes]


class _Items:
    """A cached list; its pieces are read when they are first needed.

    Attributes:
        size_bytes: its approximate size in memory.
    """

    __slots__ = ("pieces", "sequence", "size_bytes")

    def __init__(
        self, sequence: ContentSequence, pieces: list[bytes] | None, size_bytes: int
    ) -> None:
        self.sequence = sequence
        self.pieces = pieces
        self.size_bytes = size_bytes


class ItemLists:
    """The lists of the records of a framework. Threads may share it."""

    def __init__(self, records: Records, name: str) -> None:
        """Prepare the lists.

        Args:
            records: the records.
            name: the name of the value that is the list.
        """
        self._records = records
        self._name = name
        self._mutex = RLock()
        self._known: OrderedDict[ObjectId, _Items] = OrderedDict()
        self._bytes = 0

    def count(self, state: RecordState | None) -> int:
        """Return the number of items; errors as in `Records.read`."""
        found = self._value(state)
        return 0 if found is None else len(self._items(found).sequence.items)

    def pieces(self, state: RecordState | None) -> list[bytes]:
        """Return the items; errors as in `Records.read`."""
        found = self._value(state)
        if found is None:
            return []
        items = self._items(found)
        if items.pieces is None:
            pieces = self._read(items.sequence)
            items = self._remember(_Items(items.sequence, pieces, _size(pieces)), None)
        return items.pieces or []

    def fill(
        self,
        draft: RecordDraft,
        state: RecordState | None,
        pieces: Sequence[bytes],
        *,
        keep: int | None = None,
    ) -> dict[str, int]:
        """Add items to a list; the caller adds their messages.

        Args:
            draft: of the new commit; its context must show just the items that stay.
            state: the state that has the list.
            pieces: the new items.
            keep: how many items stay; None is all.

        Returns:
            What the metadata of the commit has to hold for `cut`.
        """
        found = self._value(state)
        before = None if found is None else self._items(found)
        count = 0 if before is None else len(before.sequence.items)
        keep = count if keep is None else keep
        old_sequence = None if before is None else before.sequence
        sequence = draft.set_sequence(self._name, "json", pieces, before=old_sequence, keep=keep)
        old = [] if before is None else before.pieces
        new = None
        if old is not None:
            new = [*old]
            new[keep:] = pieces
        size = _size(pieces) + (0 if before is None else before.size_bytes)
        self._remember(_Items(sequence, new, size), found)
        return {_AT: keep, _COUNT: keep + len(pieces)}

    def cut(self, state: RecordState, meta: str, keep: int) -> Cut:
        """Return where the first items of a list come from.

        Args:
            state: the state that has the list.
            meta: the field of the commits' metadata with what `fill` returned.
            keep: the number of items.
        """
        if keep:
            for oid, commit in self._records.lines([state.commit]):
                said: Mapping[str, Any] = commit.meta.get(meta) or {}
                if said.get(_AT, keep) >= keep:
                    continue
                if said[_COUNT] == keep:
                    return Cut(oid, keep, ())
                start = commit.parents[0] if commit.parents else None
                return Cut(start, said[_AT], self.pieces(state)[said[_AT] : keep])
        return Cut(None, 0, ())

    def forget(self) -> None:
        """Clear the cache."""
        with self._mutex:
            self._known.clear()
            self._bytes = 0

    def _value(self, state: RecordState | None) -> RecordValue | None:
        return None if state is None else state.values.get(self._name)

    def _items(self, found: RecordValue) -> _Items:
        with self._mutex:
            items = self._known.get(found.content)
            if items is not None:
                self._known.move_to_end(found.content)
                return items
        sequence = self._records.sequence(found)
        return self._remember(_Items(sequence, None, len(sequence.items) * _ID_BYTES), None)

    def _read(self, sequence: ContentSequence) -> list[bytes]:
        """Return the pieces of a list; if it extends a cached list, only the new ones are read."""
        items = sequence.items
        with self._mutex:
            known = [*self._known.values()]
        for other in reversed(known):
            old = other.sequence.items
            if other.pieces and len(old) <= len(items) and [*items[: len(old)]] == [*old]:
                return [*other.pieces, *self._records.contents(items[len(old) :])]
        return self._records.contents(items)

    def _remember(self, items: _Items, replaces: RecordValue | None) -> _Items:
        with self._mutex:
            if replaces is not None:
                self._drop(replaces.content)
            self._drop(items.sequence.oid)
            self._known[items.sequence.oid] = items
            self._bytes += items.size_bytes
            self._shrink()
        return items

    def _shrink(self) -> None:
        while self._bytes > _CACHED_BYTES and len(self._known) > 1:
            self._drop(next(iter(self._known)))

    def _drop(self, oid: ObjectId) -> None:
        old = self._known.pop(oid, None)
        if old is not None:
            self._bytes -= old.size_bytes


def _size(pieces: Sequence[bytes]) -> int:
    return sum(map(len, pieces)) + len(pieces) * _ID_BYTES


def write_lock(repo: Repo) -> RLock:
    """Return the lock of the threads that write to a repository, so that they do not race each other."""
    with _guard:
        return _locks.setdefault(repo, RLock())


def retried(attempt: Callable[[], T]) -> T:
    """Retry a compare and swap until it wins the race, and return its result.

    Raises:
        RefChangedError: other processes won the race at every attempt.
    """
    for _ in range(MAXIMUM_ATTEMPTS - 1):
        try:
            return attempt()
        except errors.RefChangedError:
            continue
    return attempt()


async def finished(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run a function in a thread and wait for its end, even if the caller is cancelled meanwhile."""
    run = partial(copy_context().run, function, *args, **named)
    future = asyncio.get_running_loop().run_in_executor(None, run)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        future.exception()
        raise cancelled
    return future.result()


def encode_json(item: object) -> bytes:
    """Return an item of a framework as JSON.

    Raises:
        InvalidInputError: it is not a JSON value.
    """
    try:
        return json.dumps(item, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidInputError(f"the item is not a JSON value: {error}") from None
