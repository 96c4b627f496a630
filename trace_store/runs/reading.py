"""Reading runs: lists, whole runs, and what is being done now.

The process of a run holds a lock as long as it lives, and writes a heartbeat into the lock's file. A run is interrupted
if the lock is free or the last heartbeat is too old. A new heartbeat ends that, for example after a laptop slept. A
clone has no such file, so it knows only the last commit.

Each commit of a run adds a step or holds a step's newest version whole, so the steps are what the commits wrote last.
If two clones wrote to one run, both histories count, sorted by time, and no merge is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.commit_table import graph
from trace_store.contracts.ref_names import RUNS
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, read_address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import load_parts
from trace_store.runs.recording import EARLIER, PREFIX, run_ref, state_at, states_at
from trace_store.runs.steps import INTERRUPTED, META, RunState, StepRecord
from trace_store.store.process_lock import RUN_LOCK, SILENT_SECONDS, ProcessLock, names_at_work
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time


@value
class RunInfo:
    """A run as this working copy sees it.

    Attributes:
        state: what its last commit says.
        status: as in `state`, or `interrupted` if its process is gone or silent.
        is_here: whether a process of this working copy runs or ran it, and it has not ended.
        beat: the last heartbeat of that process, in milliseconds since the epoch; 0 if unknown.
    """

    JSON = "*state status here=is_here seen -beat"

    state: RunState
    status: str
    is_here: bool = False
    beat: Time = 0

    @property
    def id(self) -> str:
        """Its id."""
        return self.state.id

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor been interrupted."""
        return self.status == self.state.status and self.state.is_running

    @property
    def seen(self) -> Time:
        """When its process was last seen at work, in milliseconds since the epoch."""
        return max(self.state.updated, self.beat)

    @property
    def activity(self) -> str:
        """What it does in a few words, such as `reviewer: thinking, step 4`."""
        state = self.state
        what = state.last_type.replace("_", " ") or "starting"
        return f"{state.agent or state.name}: {what}" + (
            f", step {state.last}" if state.last else ""
        )


@value
class RunRecord:
    """A run with its steps, or some of them.

    Attributes:
        info: its state, as a list shows it.
        steps: its steps by number.
        earlier: number of earlier steps, which are left out.
    """

    JSON = "*info"

    info: RunInfo
    steps: tuple[StepRecord, ...]
    earlier: int = 0

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id


def info_of(store: Store, state: RunState) -> RunInfo:
    """Return a run as this working copy sees it."""
    if not state.is_running:
        return RunInfo(state, state.status)
    lock = ProcessLock(store, RUN_LOCK, state.id)
    beat = lock.last_beat
    is_silent = store.clock.now() - beat >= 1000 * SILENT_SECONDS
    status = INTERRUPTED if beat and (is_silent or not lock.is_held) else state.status
    return RunInfo(state, status, is_here=beat > 0, beat=beat)


def list_runs(store: Store) -> list[RunInfo]:
    """Return all runs, those that run first, then the most recently updated; one read a run.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    states = (state_at(store, tips) for _, tips in store.refs.iterate_tips(RUNS))
    found = [info_of(store, state) for state in states]
    return sorted(found, key=lambda each: (not each.is_running, -each.state.updated, each.id))


def running(store: Store) -> list[RunInfo]:
    """Return the runs that run in this working copy, the most recently updated first; ended ones cost nothing."""
    found = []
    for id in names_at_work(store, RUN_LOCK):
        tips = store.refs.tips(run_ref(id))
        if tips and (info := info_of(store, state_at(store, tips))).is_running:
            found.append(info)
    return sorted(found, key=lambda each: (-each.state.updated, each.id))


def find_id(store: Store, name: str) -> str:
    """Return the id of a run, given the id or a unique beginning of it.

    Raises:
        InvalidInputError: it cannot be an id.
        RefNotFoundError: there is none.
        AmbiguousRevisionError: several ids begin with it.
    """
    ref = run_ref(name)
    if store.refs.tips(ref):
        return ref.removeprefix(RUNS)
    ids = [ref.removeprefix(RUNS) for ref, _ in store.refs.iterate_tips(RUNS)]
    found = [id for id in ids if id.startswith((name, PREFIX + name))]
    if len(found) > 1:
        raise errors.AmbiguousRevisionError(
            f"several runs begin with {name[:80]!r}: {', '.join(found[:8])}", name=name
        )
    if not found:
        raise errors.RefNotFoundError(
            f"no run {name[:80]!r}", ref=ref, code=errors.ErrorCode.RUN_NOT_FOUND
        )
    return found[0]


def read_run(
    store: Store, name: str, *, start: int | None = None, limit: int | None = None
) -> RunRecord:
    """Return a run, given its id or a unique beginning of it; raises as `find_id` and `list_runs`.

    Its commits are read back to the first step that is returned.

    Args:
        store: the repository.
        name: the id of the run, or the beginning of it.
        start: the number of the first step; None returns the last steps.
        limit: at most so many steps; None has no limit.
    """
    tips = store.refs.tips(run_ref(find_id(store, name)))
    states = states_at(store, tips)
    count = max(state.step_count for state in states)
    if start is None:
        start = 1 if limit is None else count - limit + 1
    start = max(1, start)
    end = sys.maxsize if limit is None else start + limit
    steps = tuple(_steps_of(store, tips, start, end))
    return RunRecord(info_of(store, states[0]), steps, min(start - 1, count))


def _steps_of(store: Store, tips: Sequence[ObjectId], start: int, end: int) -> Iterator[StepRecord]:
    """Yield the steps whose numbers are in a range, as the last commit of each wrote them, by number.

    Commits are read from where step `end` began, and later ones only while one of the steps has not ended there.
    """

    def is_enough(commit: Commit) -> bool:
        return bool(ops.stored_messages(commit)) and _begun_in(commit) <= start

    ways = [_way_back(store, tip, end) for tip in tips]
    begun: dict[Address, tuple[int, int]] = {}
    steps: dict[Address, StepRecord] = {}
    before: list[ObjectId] = []
    while before != list(tips):
        starts = [way.pop() if len(way) > 1 else way[0] for way in ways]
        newest: dict[Address, Any] = {}
        for oid, commit in _commits_back(store, starts, before, is_enough):
            for address, parts in _parts_in(commit, oid):
                newest.setdefault(address, parts)
            for address, _ in ops.added_messages(commit, oid):
                if start <= (number := _begun_in(commit)) < end:
                    begun[address] = number, commit.time
        for address in begun.keys() & newest.keys():
            parts = load_parts(newest[address], store.objects.read)
            steps[address] = StepRecord.read(parts, address)
        if not any(step.is_running for step in steps.values()):
            break
        before = starts
    yield from (steps[address] for address in sorted(begun, key=lambda each: begun[each]))


def _way_back(store: Store, tip: ObjectId, number: int) -> list[ObjectId]:
    """Return some commits of a run from a tip back to one, if possible the first, at which a step has begun."""
    way, commit = [tip], read_commit(tip, store.objects.read)
    while (begun := _begun_in(commit)) >= number:
        target = begun & (begun - 1)
        found = _earlier(store, commit, target) if target >= number else None
        if found is None:
            if len(commit.parents) != 1:
                break
            found = commit.parents[0], read_commit(commit.parents[0], store.objects.read)
        oid, commit = found
        if _begun_in(commit) < number:
            break
        way.append(oid)
    return way


def _earlier(store: Store, commit: Commit, number: int) -> tuple[ObjectId, Commit] | None:
    """Return the start of a step that the start of a later one links; None if history was rewritten since."""
    text = dict(commit.links).get(EARLIER)
    try:
        oid = ObjectId.parse(str(text))
        found = read_commit(oid, store.objects.read)
        return (oid, found) if _begun_in(found) == number else None
    except (errors.InvalidInputError, errors.NotFoundError, errors.FormatError):
        return None


def steps_between(
    store: Store, tips: Sequence[ObjectId], before: Sequence[ObjectId] = ()
) -> Iterator[StepRecord]:
    """Yield the steps that began or ended in the commits of a run that `before` has not, the oldest first."""
    found = [
        each
        for oid, commit in _commits_back(store, tips, before)
        for each in _parts_in(commit, oid)  # at most one, without its content
    ]
    for address, parts in reversed(found):
        yield StepRecord.read(load_parts(parts, store.objects.read), address)


def _commits_back(
    store: Store,
    tips: Sequence[ObjectId],
    before: Sequence[ObjectId] = (),
    is_enough: Callable[[Commit], bool] = lambda _: False,
) -> Iterator[tuple[ObjectId, Commit]]:
    """Yield the commits of a run that `before` has not, the newest first; those before one that is enough are left out.

    No commit is older than its parents, so `before` and its ancestors are met in time.
    """
    waiting = graph.TopologicalQueue(lambda each: each[1].time)
    is_hidden: dict[ObjectId, bool] = {}
    shown = 0

    def add(oid: ObjectId, hidden: bool) -> None:
        nonlocal shown
        known = is_hidden.get(oid)
        if known is None:
            waiting.push((oid, read_commit(oid, store.objects.read)))
        shown += (known is None and not hidden) - (known is False and hidden)
        is_hidden[oid] = bool(known) or hidden

    for oid in before:
        add(oid, True)
    for oid in tips:
        add(oid, False)
    while shown:
        oid, commit = waiting.pop()
        hidden, is_hidden[oid] = is_hidden[oid], True
        if not hidden:
            shown -= 1
            yield oid, commit
        for parent in () if is_enough(commit) else commit.parents:
            add(parent, hidden)


def _begun_in(commit: Commit) -> int:
    """Return the number of the step that had begun last after a commit."""
    return RunState.read(commit.meta.get(META)).last


def _parts_in(commit: Commit, oid: ObjectId) -> Iterator[tuple[Address, Any]]:
    """Yield the address and the stored parts of each step that a commit of a run began or ended."""
    for address, stored in ops.added_messages(commit, oid):
        yield address, stored["parts"]
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            yield read_address(operation.fields["target"], oid), operation.fields["parts"]
