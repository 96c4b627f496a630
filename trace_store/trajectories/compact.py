"""Retention: trajectories that ended long ago are archived, summarised or deleted.

A summary is a new history of the same trajectory: start, end, decisions, findings, links and the last retrospective,
with their times, in their latest versions. The trash keeps what archiving and summarising remove.
"""

from __future__ import annotations

from collections.abc import Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import parse_duration
from trace_store.contracts import RefEdit
from trace_store.contracts.protocols import RefReader
from trace_store.contracts.ref_names import TRAJECTORIES
from trace_store.history.trash_refs import delete_refs
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading
from trace_store.trajectories.events import NewEvent
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.recording import Recorder
from trace_store.trajectories.state import FACTS, State
from trace_store.writer import Writer

ARCHIVE, SUMMARISE, DELETE = "archive", "summarise", "delete"
WAYS = (ARCHIVE, SUMMARISE, DELETE)
_KEPT_TYPES = (ev.DECISION, ev.FINDING)


@value
class Compacted:
    """A trajectory that was compacted, or would be.

    Attributes:
        state: its state before.
        event_count: number of its events before.
        kept_count: number of events that its summary keeps; 0 without a summary.
    """

    JSON = (
        "trajectory=state.id title=state.title status=state.status updated=state.updated "
        "events=event_count kept=kept_count"
    )

    state: State
    event_count: int
    kept_count: int


def compact(recorder: Recorder, older_than: str, how: str, *, apply: bool) -> list[Compacted]:
    """Compact the trajectories that ended long ago; return them, the oldest first.

    Args:
        recorder: writes the summaries.
        older_than: the minimum time since the last event, such as "90d".
        how: one of `WAYS`; `delete` leaves nothing in the trash.
        apply: False only returns what would be done.

    Raises:
        InvalidInputError: `older_than` is not a duration, or `how` is unknown.
        ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
        RefChangedError: another process recorded an event meanwhile.
    """
    age = parse_duration(older_than)
    if age is None:
        raise errors.InvalidInputError(
            f"not a duration: {older_than[:40]!r}", argument="older_than"
        )
    if how not in WAYS:
        raise errors.InvalidInputError(
            f"how is one of {', '.join(WAYS)}, not {how[:40]!r}", argument="how"
        )
    writer = recorder.writer
    store = writer.store
    cutoff = store.clock.now() - age
    due = [
        state
        for state in reversed(reading.list_trajectories(store))
        if not state.is_active and state.updated <= cutoff
    ]
    if how == SUMMARISE:
        return _summarise(store, recorder, due, apply=apply)
    if apply and due:
        refs = [TRAJECTORIES + state.id for state in due]
        if how == ARCHIVE:
            delete_refs(writer, refs, what="trajectory")
        else:
            _delete(writer, refs)
    return [Compacted(state, state.count(), 0) for state in due]


def _summarise(
    store: Store, recorder: Recorder, due: Sequence[State], *, apply: bool
) -> list[Compacted]:
    done = []
    for state in due:
        if apply:
            recorder.record_waiting(state.id)
        tips = store.refs.tips(TRAJECTORIES + state.id)
        trajectory = reading.read_trajectory(store, state.id)
        kept = summary_of(trajectory)
        if len(kept) < len(trajectory.events):
            if apply:
                recorder.record(state.id, kept, replaces=tips)
            done.append(Compacted(state, len(trajectory.events), len(kept)))
    return done


def summary_of(trajectory: Trajectory) -> list[NewEvent]:
    """Return the events that the summary of an ended trajectory keeps."""
    started, *later = trajectory.events
    facts = {name: found for name, found in trajectory.state.as_map().items() if name in FACTS}
    last = trajectory.of_type(ev.COMPLETED, ev.ABANDONED)[-1:]
    kept = {event.id for event in (*trajectory.of_type(*_KEPT_TYPES), *trajectory.links)}
    kept |= {event.id for event in [trajectory.retrospective] if event is not None}
    chosen = [event for event in later if event.id in kept]
    return [
        NewEvent({**started.data, **facts}, started.agent, started.time, started.session),
        *(NewEvent(each.data, each.agent, each.time, each.session) for each in (*chosen, *last)),
    ]


def _delete(writer: Writer, refs: Sequence[str]) -> None:
    def edits(reader: RefReader) -> list[RefEdit]:
        return [RefEdit(ref, None, tips[0]) for ref in refs if (tips := reader.tips(ref))]

    writer.begin().write(edits, f"trajectory: deleted {len(refs)}")
