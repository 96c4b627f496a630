"""Completeness score of a trajectory.

Everything that the record lacks takes points off. The score judges the record, not the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.snippet import texts_of
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.objects.parts import Data
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.reading import Trajectory

BEST = 100
NO_DECISION, NO_RETROSPECTIVE, NO_COMMIT = "no-decision", "no-retrospective", "no-commit"
NO_QUESTION, NO_REASONING, NO_ALTERNATIVE = "no-question", "no-reasoning", "no-alternative"
AT_THE_END, LATE, HOME_PATH = "at-the-end", "late", "home-path"
_POINTS = {
    NO_DECISION: 30,
    NO_RETROSPECTIVE: 20,
    NO_COMMIT: 15,
    AT_THE_END: 15,
    LATE: 10,
    HOME_PATH: 10,
}
_DECISION_FIELDS = {
    NO_QUESTION: "question",
    NO_REASONING: "reasoning",
    NO_ALTERNATIVE: "alternatives",
}
_FIELD_POINTS = 10
"""Points for a field that all decisions lack; in proportion if only some do."""
_TENTH, _SHORT_MINUTES = 10, 10
_MINUTE, _PAUSE = 60_000, 60 * 60_000
_MAXIMUM_STEPS = 5_000
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^\s/\\\"']+")


@value
class Lack:
    """Something that a record lacks.

    Attributes:
        kind: such as `no-retrospective`.
        points: the points that it takes off.
        text: what is lacking, in words.
        events: the events that lack it.
    """

    JSON = "events=addresses"

    kind: str
    points: int
    text: str
    events: tuple[Event, ...] = ()

    @property
    def addresses(self) -> list[Address]:
        """The addresses of the events."""
        return [event.id for event in self.events]


@value
class Score:
    """The completeness of a trajectory.

    Attributes:
        trajectory: the trajectory.
        points: 0 to 100.
        lacks: what is lacking, in a fixed order.
    """

    JSON = "trajectory=trajectory.id"

    trajectory: Trajectory
    points: int
    lacks: tuple[Lack, ...]


def score_trajectory(store: Store, trajectory: Trajectory) -> Score:
    """Return the completeness of a trajectory.

    Raises:
        CorruptObjectError: an object is damaged.
    """
    lacks = [
        *_lacks_of_decisions(trajectory.decisions),
        *_lacks_of_result(trajectory),
        *_lacks_of_times(store, trajectory),
        *_lacks_of_paths(trajectory),
    ]
    return Score(trajectory, BEST - sum(each.points for each in lacks), tuple(lacks))


def _lacks_of_decisions(decisions: Sequence[Event]) -> Iterator[Lack]:
    if not decisions:
        yield _lack(NO_DECISION, "no decision")
    for kind, name in _DECISION_FIELDS.items():
        found = tuple(event for event in decisions if not event.data.get(name))
        if found:
            points = -(-_FIELD_POINTS * len(found) // len(decisions))
            text = f"{len(found)} of {len(decisions)} decisions without {name}"
            yield Lack(kind, points, text, found)


def _lacks_of_result(trajectory: Trajectory) -> Iterator[Lack]:
    if trajectory.retrospective is None:
        yield _lack(NO_RETROSPECTIVE, "no retrospective")
    if not trajectory.links:
        yield _lack(NO_COMMIT, "no linked commit of the code")


def _lacks_of_times(store: Store, trajectory: Trajectory) -> Iterator[Lack]:
    """Yield the lacks of a record that was not written during the work."""
    state = trajectory.state
    beginning = _beginning(store, trajectory.events[0]) if trajectory.events else state.started
    recorded = [event for event in trajectory.events if event.type in ev.IN_CHAPTER]
    end = trajectory.ended or state.updated
    if recorded and end - beginning > _SHORT_MINUTES * _MINUTE:
        last_tenth = end - (end - beginning) // _TENTH
        if min(event.time for event in recorded) >= last_tenth:
            yield _lack(AT_THE_END, "everything was recorded in the last tenth of the time")
    minutes = (state.started - beginning) // _MINUTE
    if minutes:
        yield _lack(LATE, f"the session began {minutes:,} min before the record")


def _beginning(store: Store, started: Event) -> int:
    """Return the beginning of the session in which a trajectory was started.

    The search goes back from the event `started`. It stops at a pause of an hour, or where commits are missing.
    """
    time, oid = started.time, started.session
    for _ in range(_MAXIMUM_STEPS):
        if oid is None:
            break
        try:
            commit = read_commit(oid, store.objects.read)
        except errors.ObjectNotFoundError:
            break
        if not time - _PAUSE < commit.time <= time:
            break
        time, oid = commit.time, _first(commit.parents)
    return time


def _first(parents: Sequence[ObjectId]) -> ObjectId | None:
    return parents[0] if parents else None


def _lacks_of_paths(trajectory: Trajectory) -> Iterator[Lack]:
    found = tuple(event for event in trajectory.events if _HOME.search(_text(event)))
    if found:
        yield _lack(HOME_PATH, f"{len(found)} events with paths of someone's home folder", found)


def _text(event: Event) -> str:
    return "\n".join(texts_of([Data(ev.SCHEMA, event.data)]))


def _lack(kind: str, text: str, events: tuple[Event, ...] = ()) -> Lack:
    return Lack(kind, _POINTS[kind], text, events)
