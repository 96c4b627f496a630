"""Watching a run from any process: each event once and in order, past events first.

The watcher subscribes before it reads the run, so it misses no step. A watcher that joins in the middle of a step gets
the text so far with the next whole frame. A slow watcher sees each step, but may miss progress.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.journal.tail import JournalEvent
from trace_store.runs.progress import EVENT, NOTE
from trace_store.runs.reading import find_id, info_of, steps_between
from trace_store.runs.recording import run_ref, state_at
from trace_store.runs.steps import INTERRUPTED, RUNNING, StepRecord, StepSource, Substep
from trace_store.store.store import Store

STARTED, ENDED, PROGRESS, SOURCE, SUBSTEP, STATE = (
    "started",
    "ended",
    "progress",
    "source",
    "substep",
    "state",
)
"""Kinds of events: a step began or ended; more text, a source or a part of a step; the state of the run changed."""
POLL_SECONDS = 1.0
"""How often a watcher looks whether the process of the run is still at work."""


@value
class RunEvent:
    """Something that happened in a run.

    Attributes:
        kind: `started`, `ended`, `progress`, `source`, `substep` or `state`.
        step: the number of the step; 0 for the run itself.
        value: the step, for `started` and `ended`.
        text: the new text, for `progress`.
        at: the number of characters before that text; for one that replaces all text so far, those left out.
        is_whole: whether the text replaces all text so far.
        number: the number of the source or substep in its step, from 1; a substep comes again when it ends.
        source: the source, for `source`.
        substep: the part of the step, for `substep`.
        status: of the run, for `state`; may be `interrupted`.
    """

    JSON = "status?"

    kind: str
    step: int = 0
    value: StepRecord | None = None
    text: str = ""
    at: int = 0
    is_whole: bool = False
    number: int = 0
    source: StepSource | None = None
    substep: Substep | None = None
    status: str = ""


class _Watch:
    """What one watcher knows of a run."""

    def __init__(self, store: Store, id: str) -> None:
        self.store = store
        self.id = id
        self.ref = run_ref(id)
        self.tips: tuple[ObjectId, ...] = ()
        self.running: set[int] = set()
        self.lengths: dict[int, int] = {}
        self.status = ""

    def catch_up(self) -> Iterator[RunEvent]:
        """Yield what the commits since the last call did."""
        tips = self.store.refs.tips(self.ref)
        for step in steps_between(self.store, tips, self.tips):
            yield self._step(step)
        self.tips = tips
        if tips and not (state := state_at(self.store, tips)).is_running:
            yield from self._state(state.status)

    def _step(self, step: StepRecord) -> RunEvent:
        if step.is_running:
            self.running.add(step.number)
            return RunEvent(STARTED, step.number, step)
        self.running.discard(step.number)
        self.lengths.pop(step.number, None)
        return RunEvent(ENDED, step.number, step)

    def take(self, event: JournalEvent) -> Iterator[RunEvent]:
        """Yield what an event says about the run, or about a running step of it."""
        data = event.data
        if event.ref == self.ref:
            yield from self.catch_up()
        elif event.kind in (EVENT, NOTE) and data.get("run") == self.id:
            try:
                if data["step"] in self.running:
                    yield from self._noted(data) if event.kind == NOTE else self._text(data)
            except (KeyError, TypeError):
                return  # another program emitted it

    def _noted(self, data: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield the event of a source or a substep."""
        step, number = data["step"], data["number"]
        if SOURCE in data:
            yield RunEvent(SOURCE, step, number=number, source=StepSource(**data[SOURCE]))
        else:
            yield RunEvent(SUBSTEP, step, number=number, substep=Substep(**data[SUBSTEP]))

    def _text(self, data: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield the new text of a step."""
        step, text, at, whole = data["step"], data["text"], data["at"], bool(data.get("whole"))
        known = self.lengths.get(step)
        if whole and known is not None and at <= known <= at + len(text):
            text, at, whole = text[known - at :], known, False  # what is new in it
        elif not whole and known != at:
            return  # the middle of a text: a whole frame follows
        self.lengths[step] = at + len(text)
        if text:
            yield RunEvent(PROGRESS, step, text=text, at=at, is_whole=whole)

    def look(self) -> Iterator[RunEvent]:
        """Yield what the commits since the last look did, and the state of the run if it changed."""
        yield from self.catch_up()
        if self.tips:
            yield from self._state(info_of(self.store, state_at(self.store, self.tips)).status)

    def _state(self, status: str) -> Iterator[RunEvent]:
        if status != self.status:
            self.status = status
            yield RunEvent(STATE, status=status)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status not in ("", RUNNING, INTERRUPTED)


def watch(store: Store, name: str, *, timeout: float | None = None) -> Iterator[RunEvent]:
    """Yield what a run did and does, until it ends; an interrupted one may go on.

    Args:
        store: the repository.
        name: the id of the run, or the beginning of it.
        timeout: end after this many seconds in which nothing happened; None waits for ever.

    Raises:
        As `reading.find_id`.
    """
    watched = _Watch(store, find_id(store, name))
    pause = POLL_SECONDS if timeout is None else min(timeout, POLL_SECONDS)
    with store.follow(containing=watched.id) as events:
        heard = looked = time.monotonic()
        yield from watched.look()
        while not watched.is_over:
            event = events.wait(pause)
            found = [] if event is None else list(watched.take(event))
            now = time.monotonic()
            if not found and now - max(heard, looked) >= pause:
                looked = now
                found = list(watched.look())
            if found:
                heard = now
                yield from found
            elif timeout is not None and now - heard >= timeout:
                return
