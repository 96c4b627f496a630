"""Server-sent events, by which open pages hear of changes.

A page first hears `hello` with a position, then fetches what it shows, then applies what came later. After a broken
connection the browser sends the last position that it saw, and gets what it missed. If that is no longer known, or a
page is too slow to take its events, it hears `reset` and fetches again. Writers never wait for a page.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from trace_store.errors import TraceError
from trace_store.journal.tail import REF, JournalEvent
from trace_store.runs.progress import EVENT, NOTE
from trace_store.store.store import Store

QUEUED = 1_000
"""Number of events that wait for one page, and that are kept for pages that come back."""
PING_SECONDS = 15.0
RETRY = b"retry: 2000\n\n"
HELLO, RESET, MOVED, CLOSED = "hello", "reset", "moved", "closed"
PROGRESS, NOTED = "progress", "noted"


class Hub:
    """Events of one repository, for any number of pages; used from the event loop, except for `start`."""

    def __init__(self) -> None:
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=QUEUED)
        self._pages: set[asyncio.Queue[bytes | None]] = set()

    @property
    def position(self) -> str:
        """The position of the last event."""
        return f"{self._boot}-{self._number}"

    def pass_on(self, kind: str, data: Mapping[str, Any]) -> None:
        """Send an event that is not kept: pages with many waiting events do not get it, and it has no position."""
        event = _encoded(kind, data)
        for page in self._pages:
            if page.qsize() < QUEUED // 2:
                page.put_nowait(event)

    def publish(self, kind: str, **data: object) -> None:
        """Tell all pages; one that has too many events waiting starts over."""
        self._number += 1
        event = self._encoded(kind, data)
        self._kept.append((self._number, event))
        for page in self._pages:
            if page.qsize() >= QUEUED:
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(self._encoded(RESET, {}))
            else:
                page.put_nowait(event)

    async def events(self, last: str = "") -> AsyncIterator[bytes]:
        """Yield the stream of one page; `last` is the position that it saw last."""
        page: asyncio.Queue[bytes | None] = asyncio.Queue()
        missed = self._since(last) if last else []
        self._pages.add(page)
        try:
            yield RETRY + self._encoded(HELLO, {"position": self.position})
            for event in [self._encoded(RESET, {})] if missed is None else missed:
                yield event
            while True:
                try:
                    event_or_end = await asyncio.wait_for(page.get(), PING_SECONDS)
                except TimeoutError:
                    yield b": ping\n\n"
                    continue
                if event_or_end is None:
                    return
                yield event_or_end
        finally:
            self._pages.discard(page)

    def close(self) -> None:
        """End all streams."""
        for page in self._pages:
            page.put_nowait(None)

    def _since(self, last: str) -> list[bytes] | None:
        """Return the events after a position; None if they are not all known."""
        boot, _, number = last.partition("-")
        if boot != self._boot or not number.isdecimal() or int(number) > self._number:
            return None
        missed = [event for at, event in self._kept if at > int(number)]
        return missed if len(missed) == self._number - int(number) else None

    def _encoded(self, kind: str, data: dict[str, object]) -> bytes:
        return f"id: {self.position}\n".encode() + _encoded(kind, data)


def _encoded(kind: str, data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return f"event: {kind}\ndata: {text}\n\n".encode()


class Watch:
    """Follows a repository in a thread, and publishes its ref moves; `close` ends it."""

    def __init__(self, store: Store, hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
        self._hub, self._loop = hub, loop
        self._follower = store.follow()
        thread = threading.Thread(target=self._run, name="trace-web-follow", daemon=True)
        thread.start()

    def close(self) -> None:
        """Stop following."""
        self._follower.close()

    def _run(self) -> None:
        try:
            for event in self._follower:
                self._tell(event)
        except TraceError as error:
            self._publish(CLOSED, reason=error.message)

    def _tell(self, event: JournalEvent) -> None:
        if event.kind == REF:
            self._publish(
                MOVED, ref=event.ref, commit=None if event.new is None else event.new.hex()
            )
        elif event.kind in (EVENT, NOTE) and not self._loop.is_closed():
            kind = PROGRESS if event.kind == EVENT else NOTED
            self._loop.call_soon_threadsafe(lambda: self._hub.pass_on(kind, event.data))

    def _publish(self, kind: str, **data: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._hub.publish(kind, **data))
