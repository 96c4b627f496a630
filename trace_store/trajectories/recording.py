"""Recording: each event becomes one commit at the end of its trajectory.

The commit links the tip of the agent's branch at that time, and so the messages that led to a decision. Several
processes may write to one trajectory; the parent of an event is the event written before it. If git fetched the events
of another clone, the ref has two tips, and the next event has both as parents.
"""

from __future__ import annotations

from trace_store import errors, history
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.ident import check_author
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import store_message
from trace_store.objects.parts import Data
from trace_store.oid import ObjectId, hash_object
from trace_store.trajectories import events as ev
from trace_store.trajectories import waiting
from trace_store.trajectories.events import (
    SCHEMA,
    SESSION,
    Event,
    NewEvent,
    event_data,
    event_message,
)
from trace_store.trajectories.reading import (
    PREFIX,
    git_branch,
    new_id,
    not_found,
    state_of,
    trajectory_ref,
)
from trace_store.trajectories.state import META, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.contracts import RefReader
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


@value
class Recorded:
    """An event that was recorded.

    Attributes:
        event: the event.
        state: the state of its trajectory after the event.
    """

    event: Event
    state: State


class Recorder:
    """Records events in the trajectories of one store."""

    def __init__(self, store: Store, guard: Guard | None = None) -> None:
        self._store = store
        self._guard = guard

    def start(
        self, facts: Mapping[str, Any], agent: str, *, id: str = "", time: int | None = None
    ) -> State:
        """Start a trajectory and return its state.

        Args:
            facts: title, description, project, tags and task, as JSON values.
            agent: who starts it.
            id: its id; "" for a new one.
            time: when, in milliseconds since the epoch; None: now.

        Raises:
            InvalidInputError: it has no title, or a fact is not valid.
            AlreadyExistsError: the id is in use.
        """
        head = self._store.refs.head()
        places = {"branch": head.ref or "", "git_branch": git_branch(self._store)}
        data = event_data(ev.STARTED, "", {**facts, **places})
        if not data.get("title"):
            raise errors.InvalidInputError("a trajectory needs a title", argument="title")
        event = NewEvent(data, agent, time, head.oid)
        return self.record(id or PREFIX + new_id(), [event], is_new=True)[-1].state

    def screened(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of an event as it would be stored, with secrets redacted; raises as `record`."""
        return _Draft(self._guard, NewEvent(data, ev.STARTED)).data

    def record(
        self,
        id: str,
        new: Sequence[NewEvent],
        *,
        is_new: bool = False,
        replaces: tuple[ObjectId, ...] = (),
    ) -> list[Recorded]:
        """Record events in one transaction, and return them. Those that wait are recorded before, in one of their own.

        Args:
            id: the id of the trajectory.
            new: the events, oldest first.
            is_new: whether they start the trajectory.
            replaces: the tips of the history that the new events replace; it moves to the trash. () to append.

        Raises:
            InvalidInputError: the id is not valid.
            StateError: an event is not allowed, because the trajectory has ended, or is still active.
            RefNotFoundError: there is no such trajectory.
            AlreadyExistsError: `is_new` is given, but the trajectory exists.
            SecretFoundError: an event holds a secret, and the guard refuses secrets.
            RefChangedError: `replaces` are not the tips any more.
        """
        if not (is_new or replaces):
            self.record_waiting(id)
        return self._record(id, new, is_new=is_new, replaces=replaces)

    def record_waiting(self, id: str) -> None:
        """Record the events that wait for the next one; if one holds a secret that is refused, they go on waiting."""

        def record(events: Sequence[NewEvent]) -> list[str]:
            return [each.event.id.hex for each in self._record(id, events)]

        try:
            waiting.take(self._store, id, record)
        except errors.SecretFoundError:
            return

    def _record(
        self,
        id: str,
        new: Sequence[NewEvent],
        *,
        is_new: bool = False,
        replaces: tuple[ObjectId, ...] = (),
    ) -> list[Recorded]:
        store, ref = self._store, trajectory_ref(id)
        drafts = [_Draft(self._guard, each) for each in new]
        said = f"trajectory: {drafts[-1].subject}" if drafts else ""
        made: list[Recorded] = []

        def build(refs: RefReader) -> Transaction:
            made.clear()
            parents = tips = refs.tips(ref)
            if is_new and tips:
                raise errors.AlreadyExistsError(f"{id} exists already", ref=ref)
            if not (is_new or tips):
                raise not_found(id)
            state = State(id)
            if replaces:
                if tips != replaces:
                    raise errors.RefChangedError(f"{id} has new events", ref=ref)
                parents = ()
            elif tips:
                state = state_of(store, tips)
            objects: list[tuple[ObjectId, bytes]] = []
            for draft in drafts:
                oid, state = draft.commit(parents, state, store.clock.now(), objects)
                made.append(Recorded(draft.event(oid), state))
                parents = (oid,)
            edits = [RefEdit(ref, parents[0], tips[0] if tips else None)] if drafts else []
            if replaces:
                edits += [history.trash.keep_in_trash(ref, tip) for tip in tips]
            return Transaction(objects, edits, said)

        store.transact(build, author=drafts[-1].new.agent if drafts else "")
        return made


class _Draft:
    """An event whose content is encoded, ready to be committed on any tip."""

    def __init__(self, guard: Guard | None, new: NewEvent) -> None:
        self.new = new
        gathering = ObjectCollector() if guard is None else guard.gathering()
        text = event_message(new.data).text
        kept = gathering.text(text)
        self.data = new.data if kept == text else Data(SCHEMA, kept).value
        self._author = check_author(new.agent)
        self._operation = ops.add([store_message(event_message(self.data), gathering.put)])
        self._gathering = gathering
        self._time = 0

    @property
    def subject(self) -> str:
        """The event on one line."""
        data = self.data
        names = ("question", "title", "content", "subject")
        said = next((data[name] for name in names if data.get(name)), "")
        return f"{data['type']}: {' '.join(said.split())[:100]}" if said else str(data["type"])

    def commit(
        self,
        parents: tuple[ObjectId, ...],
        state: State,
        now: int,
        objects: list[tuple[ObjectId, bytes]],
    ) -> tuple[ObjectId, State]:
        """Add the objects of the event's commit; return its id and the state after it."""
        self._time = now if self.new.time is None else self.new.time
        state = state.after(self.data, self._author, self._time)
        session = self.new.session
        data = Commit(
            parents,
            self._author,
            self._time,
            [self._operation],
            self.subject,
            {**self._gathering.facts, META: state.as_map()},
            () if session is None else [(SESSION, session)],
        ).encode()
        oid = hash_object(data)
        objects += [*self._gathering.objects, (oid, data)]
        return oid, state

    def event(self, oid: ObjectId) -> Event:
        """Return the recorded event."""
        return Event(
            Address.of(oid, 0),
            self._time,
            self._author,
            self.data["type"],
            self.data.get("content", ""),
            self.data,
            self.new.session,
        )
