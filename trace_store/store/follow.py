"""Followers: iterators over the events of a repository, in any process that has it open.

Rule: a follower polls, so it needs no system support, and writers do no extra work. It polls most often right after an
event, and up to fifty times a second when idle.
"""

from __future__ import annotations

import time
from _thread import RLock
from collections import deque
from itertools import takewhile

from trace_store import errors
from trace_store.base import check
from trace_store.journal.tail import REF, JournalEvent, JournalTail
from trace_store.refs.head import NAME
from trace_store.store.reflogs import all_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.store import Store


SHORTEST_PAUSE = 0.001
LONGEST_PAUSE = 0.02
"""Seconds between two polls: right after an event, and when idle."""
_GROWTH = 1.5
_REMEMBERED_MOVES = 16_384
"""Number of recent moves to deduplicate: restoring a removed journal writes them again."""


class Follower:
    """An iterator over events; ends when it or the store is closed, or on timeout."""

    def __init__(self, store: Store, source: _Events, timeout: float | None) -> None:
        self._store = store
        self._source: _Events | None = source
        self._timeout = timeout
        self._pending: deque[JournalEvent] = deque()
        self._mutex = RLock()

    def __iter__(self) -> Follower:
        return self

    def __next__(self) -> JournalEvent:
        """Wait for the next event.

        Raises:
            StopIteration: there are no more events.
            StorageError: the disk failed.
        """
        event = self.wait(self._timeout)
        if event is None:
            self.close()
            raise StopIteration
        return event

    def wait(self, timeout: float | None) -> JournalEvent | None:
        """Return the next event; None after a timeout in seconds, or at the end of the iteration.

        Raises:
            StorageError: the disk failed.
        """
        pause = SHORTEST_PAUSE
        end = None if timeout is None else time.monotonic() + timeout
        while not self._pending:
            with self._mutex:
                if self._source is None or not self._is_open():
                    return None
                self._pending.extend(self._source.read())
            if not self._pending:
                left = pause if end is None else min(pause, end - time.monotonic())
                if left <= 0:
                    return None
                time.sleep(left)
                pause = min(pause * _GROWTH, LONGEST_PAUSE)
        return self._pending.popleft()

    def close(self) -> None:
        """End the iteration, even for a waiting thread; closing twice is harmless."""
        with self._mutex:
            source, self._source = self._source, None
            self._pending.clear()
            if source is not None:
                source.close()

    def _is_open(self) -> bool:
        try:
            self._store.check_open()
        except errors.ClosedError:
            return False
        return True

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_source", None) is not None:
            self.close()


class _Events:
    """The events of a repository, from its journals, or reflogs for gaps."""

    def __init__(self, store: Store, since: int | None, containing: str) -> None:
        self._store = store
        self._since = since
        self._containing = containing
        self._moves: dict[tuple[str, bytes | None, bytes | None, int], None] = {}
        self._last_move = store.clock.now() if since is None else since
        self._tail = JournalTail(
            store.disk,
            store.layout,
            everything=since is not None,
            containing=containing.encode(),
        )

    def read(self) -> list[JournalEvent]:
        found = self._tail.read()
        if self._tail.has_gap:
            self._tail.has_gap = False
            logged = _logged(self._store, self._last_move, self._containing)
            found = _in_order(logged, found)
        return [event for event in found if self._is_new(event)]

    def close(self) -> None:
        self._tail.close()

    def _is_new(self, event: JournalEvent) -> bool:
        if self._since is not None and event.moment <= self._since:
            return False
        move = event.move
        if move is None:
            return True
        if move in self._moves:
            return False
        self._moves[move] = None
        if len(self._moves) > _REMEMBERED_MOVES:
            del self._moves[next(iter(self._moves))]
        self._last_move = max(self._last_move, event.moment)
        return True


def follow(
    store: Store, since: int | None, timeout: float | None, containing: str = ""
) -> Follower:
    """Return a follower of a repository; see `Store.follow`."""
    for name, given in (("since", since), ("timeout", timeout)):
        if given is not None and (isinstance(given, bool) or not isinstance(given, int | float)):
            raise errors.InvalidInputError(f"{name} is a number, not {type(given).__name__}")
    check.text(containing=containing)
    check.storable(containing=containing)
    return Follower(store, _Events(store, since, containing), timeout)


def _logged(store: Store, since: int, containing: str) -> list[JournalEvent]:
    """Return the ref moves in the reflogs after a time whose name or message contains a text, oldest first."""
    found = [
        JournalEvent(
            REF, {"message": entry.message}, entry.time, entry.author, name, entry.old, entry.new
        )
        for name, log in all_logs(store).items()
        if name != NAME
        for entry in reversed([*takewhile(lambda entry: entry.time > since, log)])
        if containing in name or containing in entry.message
    ]
    return sorted(found, key=lambda event: event.moment)


def _in_order(logged: list[JournalEvent], written: list[JournalEvent]) -> list[JournalEvent]:
    """Return events of the reflogs that journals lack, then those of the journals."""
    known = {event.move for event in written}
    return [event for event in logged if event.move not in known] + written
