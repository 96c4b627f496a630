"""Reading runs: lists, whole runs, and what is being done now.

Each commit of a run adds a step or holds a step's newest version whole, so the steps are what the commits wrote last.
If two clones wrote to one run, both histories count, sorted by time, and no merge is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.commit_table import graph
from trace_store.contracts.ref_names import RUNS
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, read_address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import load_parts
from trace_store.runs.presence import Presence, presence_of
from trace_store.runs.recording import PREFIX, run_ref, state_at
from trace_store.runs.steps import INTERRUPTED, RunState, StepRecord
from trace_store.store.process_lock import RUN_LOCK, names_at_work
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time


@value
class RunInfo:
    """A run as this working copy sees it.

    Attributes:
        state: what its last commit says.
        presence: what is known of its process.
        status: as in `state`, or `interrupted` if its process is gone or silent.
    """

    JSON = "*state status here=presence.is_here seen -presence"

    state: RunState
    presence: Presence
    status: str

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
        return max(self.state.updated, self.presence.beat)

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
    """A whole run.

    Attributes:
        info: its state, as a list shows it.
        steps: its steps by number.
        tips: the commits that it was read at.
    """

    JSON = "*info -tips"

    info: RunInfo
    steps: tuple[StepRecord, ...]
    tips: tuple[ObjectId, ...]

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id


def info_of(store: Store, state: RunState) -> RunInfo:
    """Return a run as this working copy sees it."""
    presence = presence_of(store, state.id) if state.is_running else Presence()
    lost = presence.is_here and not presence.is_at_work(store.clock.now())
    return RunInfo(state, presence, INTERRUPTED if lost and state.is_running else state.status)


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
    for id in names_at_work(store, RUN_LOCK) if store.local else ():
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


def read_run(store: Store, name: str, known: RunRecord | None = None) -> RunRecord:
    """Return a whole run, given its id or a unique beginning of it; raises as `find_id` and `list_runs`.

    If it was read before, only the commits since then are read.
    """
    id = find_id(store, name)
    tips = store.refs.tips(run_ref(id))
    before = known if known is not None and known.id == id else None
    steps: dict[Address, StepRecord] = {}
    for step in before.steps if before is not None else ():
        assert step.address is not None
        steps[step.address] = step
    for step in steps_between(store, tips, before.tips if before is not None else ()):
        assert step.address is not None
        steps[step.address] = step
    in_order = sorted(steps.values(), key=lambda step: (step.number, step.started))
    return RunRecord(info_of(store, state_at(store, tips)), tuple(in_order), tips)


def steps_between(
    store: Store, tips: Sequence[ObjectId], before: Sequence[ObjectId] = ()
) -> Iterator[StepRecord]:
    """Yield the steps that began or ended in the commits of a run that `before` has not.

    They come by time, but each commit after its parents.
    """
    known = set(before)
    read: dict[ObjectId, tuple[tuple[ObjectId, ...], int, tuple[StepRecord, ...]]] = {}

    def parents(oid: ObjectId) -> Sequence[ObjectId]:
        if oid not in read:  # whole commits of a long run would fill the memory
            commit = read_commit(oid, store.objects.read)
            above = tuple(parent for parent in commit.parents if parent not in known)
            read[oid] = above, commit.time, tuple(_steps_in(store, oid, commit))
        return read[oid][0]

    new = [tip for tip in tips if tip not in known]
    for _ in graph.ancestors(new, parents):
        pass
    newest_first = graph.topological(new, parents, time_of=lambda oid: read[oid][1])
    for oid in reversed(list(newest_first)):
        yield from read[oid][2]


def _steps_in(store: Store, oid: ObjectId, commit: Commit) -> Iterator[StepRecord]:
    """Yield the steps that a commit of a run began or ended."""
    for address, stored in ops.added_messages(commit, oid):
        yield StepRecord.read(load_parts(stored["parts"], store.objects.read), address)
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            address = read_address(operation.fields["target"], oid)
            yield StepRecord.read(
                load_parts(operation.fields["parts"], store.objects.read), address
            )
