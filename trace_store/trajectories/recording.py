"""Recording: each event becomes one commit at the end of its trajectory.

The commit links the tip of the agent's branch at that time, and so the messages that led to a decision. Several
processes may write to one trajectory; the parent of an event is the event written before it. If git fetched the events
of another clone, the ref has two tips, and the next event has both as parents.
"""

from __future__ import annotations

from contextlib import suppress

from trace_store import errors, history, trajectories
from trace_store.base.frozen import value
from trace_store.base.ident import check_author, new_name
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.objects.message import store_message
from trace_store.objects.parts import Data
from trace_store.trajectories import events as ev
from trace_store.trajectories import hook_log, waiting
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
    not_found,
    state_of,
    trajectory_ref,
    worktree_of,
)
from trace_store.trajectories.state import META, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.contracts.protocols import RefReader
    from trace_store.writer import Change, Writer


@value
class Recorded:
    """An event that was recorded.

    Attributes:
        event: the event.
        state: the state of its trajectory after the event.
        changed: whether it was recorded; False if it would have changed nothing.
    """

    JSON = "trajectory=state.id status=state.status changed *event"

    event: Event
    state: State
    changed: bool = True


class Recorder:
    """Records events in the trajectories of one repository.

    Attributes:
        writer: writes them; events link the tip of its branch.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._store = writer.store

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
        places = {
            "branch": head.ref or "",
            "git_branch": git_branch(self._store),
            "worktree": worktree_of(self._store, self._store.folder),
        }
        data = event_data(ev.STARTED, "", {**facts, **places})
        if not data.get("title"):
            raise errors.InvalidInputError("a trajectory needs a title", argument="title")
        event = NewEvent(data, agent, time, head.oid)
        return self.record(id or PREFIX + new_name(), [event], is_new=True)[-1].state

    def screened(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of an event as it would be stored, with secrets redacted; raises as `record`."""
        return _Draft(self.writer.begin(), NewEvent(data, ev.STARTED)).data

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
            SecretFoundError: an event holds a secret, and the repository refuses secrets.
            RefChangedError: `replaces` are not the tips any more.
        """
        if is_new:
            self.settle()  # commits from before it are not its own
        elif not replaces:
            self.record_waiting(id)
        return self._record(id, new, is_new=is_new, replaces=replaces)

    def record_replacement(
        self, id: str, new: NewEvent, replaced: Sequence[tuple[str, Event]]
    ) -> Recorded:
        """Record a decision and, in the same transaction, that it replaces others.

        Args:
            id: the id of its trajectory.
            new: the decision.
            replaced: the decisions that it replaces, each with the id of its trajectory.

        Raises:
            As `record`.
        """
        for each in dict.fromkeys((id, *(other for other, _ in replaced))):
            self.record_waiting(each)
        return self._record(id, [new], replaced=replaced)[0]

    def settle(self) -> None:
        """Link the commits that git's hooks noted."""
        if hook_log.has_lines(self._store):
            trajectories.settle.settle(self._store, self.writer.author)

    def record_waiting(self, id: str) -> None:
        """Record the events that wait for the next one; if one holds a secret that is refused, they go on waiting."""

        def record(events: Sequence[NewEvent]) -> list[str]:
            return [each.event.id.hex for each in self._record(id, events)]

        self.settle()
        try:
            waiting.take(self._store, id, record)
        except errors.SecretFoundError:
            return

    def record_all_waiting(self) -> None:
        """Record the events that wait in all trajectories."""
        self.settle()
        for id in sorted(waiting.trajectories_with_events(self._store)):
            with suppress(errors.RefNotFoundError):  # it was moved to the trash
                self.record_waiting(id)

    def _record(
        self,
        id: str,
        new: Sequence[NewEvent],
        *,
        is_new: bool = False,
        replaces: tuple[ObjectId, ...] = (),
        replaced: Sequence[tuple[str, Event]] = (),
    ) -> list[Recorded]:
        ref = trajectory_ref(id)
        change = self.writer.begin()
        drafts = [_Draft(change, each) for each in new]
        reason = f"trajectory: {drafts[-1].subject}" if drafts else ""
        made: list[Recorded] = []

        def edits(refs: RefReader) -> list[RefEdit]:
            made.clear()
            tips = refs.tips(ref)
            if is_new and tips:
                raise errors.AlreadyExistsError(f"{id} exists already", ref=ref)
            if not (is_new or tips):
                raise not_found(id)
            if replaces and tips != replaces:
                raise errors.RefChangedError(f"{id} has new events", ref=ref)
            ends = {id: _End((), State(id))} if is_new or replaces else {}
            for draft in drafts:
                made.append(self._append(ends, id, draft, refs))
            for other, decision in replaced:
                by, session = {ev.REPLACED_BY: made[0].event.id.hex}, new[0].session
                more = {"event": decision.id.hex, "changes": by}
                data = event_data(ev.AMENDED, more=more)
                amendment = NewEvent(data, new[0].agent, new[0].time, session)
                self._append(ends, other, _Draft(change, amendment), refs)
            moves = [
                RefEdit(name, end.tips[0], next(iter(refs.tips(name)), None))
                for each, end in ends.items()
                if end.tips
                for name in [trajectory_ref(each)]
            ]
            if replaces:
                moves += [history.trash_refs.keep_in_trash(ref, tip) for tip in tips]
            return moves

        change.write(edits, reason)
        return made

    def _append(self, ends: dict[str, _End], id: str, draft: _Draft, refs: RefReader) -> Recorded:
        """Add the commit of an event to the end of a trajectory, which then has it."""
        if id not in ends:
            tips = refs.tips(trajectory_ref(id))
            if not tips:
                raise not_found(id)
            ends[id] = _End(tips, state_of(self._store, tips))
        before = ends[id]
        oid, state = draft.commit(before.tips, before.state, self._store.clock.now())
        ends[id] = _End((oid,), state)
        return Recorded(draft.event(oid), state)


@value
class _End:
    """The end of a trajectory: its tips, and the state at them."""

    tips: tuple[ObjectId, ...]
    state: State


class _Draft:
    """An event whose content is encoded, ready to be committed on any tip."""

    def __init__(self, change: Change, new: NewEvent) -> None:
        self.new = new
        self._change = change
        before = sum(change.secrets.values())
        text = event_message(new.data).text
        kept = change.text(text)
        self.data = new.data if kept == text else Data(SCHEMA, kept).value
        self._author = check_author(new.agent)
        self._operation = ops.add([store_message(event_message(self.data), change.put)])
        has_secrets = sum(change.secrets.values()) > before
        self._facts = change.gathering.facts if has_secrets else {}
        self._time = 0

    @property
    def subject(self) -> str:
        """The event on one line."""
        data = self.data
        names = ("question", "title", "content", "subject")
        said = next((data[name] for name in names if data.get(name)), "")
        return f"{data['type']}: {' '.join(said.split())[:100]}" if said else str(data["type"])

    def commit(
        self, parents: tuple[ObjectId, ...], state: State, now: int
    ) -> tuple[ObjectId, State]:
        """Add the event's commit to the change; return its id and the state after it."""
        self._time = now if self.new.time is None else self.new.time
        state = state.after(self.data, self._author, self._time)
        session = self.new.session
        commit = Commit(
            parents,
            self._author,
            self._time,
            [self._operation],
            self.subject,
            {**self._facts, META: state.as_map()},
            () if session is None else [(SESSION, session.hex())],
        )
        return self._change.add(commit), state

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
