"""Recording: each event becomes one commit at the end of its trajectory.

The commit links the tip of the agent's branch at that time, and so the messages that led to a decision. Several
processes may write to one trajectory; the parent of an event is the event written before it. If git fetched the events
of another clone, the ref has two tips, and the next event has both as parents.
"""

from __future__ import annotations

from trace_store import errors, history, trajectories
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.ident import Randomness, check_author
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import store_message
from trace_store.objects.parts import Data
from trace_store.oid import ObjectId, hash_object
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import TRAJECTORIES, check_text
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import SCHEMA, Event, event_data, event_message
from trace_store.trajectories.state import META, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.contracts import RefReader
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store

SESSION = "session"
"""The link from an event to the tip of the agent's branch."""
PREFIX = "traj_"
_ID_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 12
_HASHES = frozenset(("commit", "patch_id", "event", "source"))
_FIELDS = _HASHES | {
    *("type", "content", "title", "description", "project", "tags", "task", "branch", "role"),
    *("system", "id", "url", "question", "reasoning", "alternatives", "option", "reason"),
    *("confidence", "significance", "summary", "approach", "challenges", "learnings"),
    *(
        "suggestions",
        "time_spent",
        "subject",
        "files",
        "authored",
        "changes",
        "to",
        "from",
        "block",
    ),
}
"""Field names that do not mark a secret, as `password` would; `_HASHES` hold hashes made by git or Trace."""


@value
class NewEvent:
    """An event to record.

    Attributes:
        data: as `event_data` returns it.
        agent: who did it.
        time: when it happened, in milliseconds since the epoch; None: now.
        session: the tip of the agent's branch; None: none.
    """

    data: Mapping[str, Any]
    agent: str
    time: int | None = None
    session: ObjectId | None = None


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
        data = event_data(ev.STARTED, "", {**facts, "branch": head.ref or ""})
        if not data.get("title"):
            raise errors.InvalidInputError("a trajectory needs a title", argument="title")
        ref = trajectory_ref(id or PREFIX + new_id())
        event = NewEvent(data, agent, time, head.oid)
        (_, state), *_ = self.record(ref, [event], is_new=True)
        return state

    def screened(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of an event as it would be stored, with secrets redacted; raises as `record`."""
        return _Draft(self._guard, NewEvent(data, ev.STARTED)).data

    def record(
        self,
        ref: str,
        new: Sequence[NewEvent],
        *,
        is_new: bool = False,
        replaces: tuple[ObjectId, ...] = (),
    ) -> list[tuple[Event, State]]:
        """Record events in one transaction; return each with the state after it.

        Args:
            ref: the full name of the trajectory's ref.
            new: the events, oldest first.
            is_new: whether they start the trajectory.
            replaces: the tips of the history that the new events replace; it moves to the trash. () to append.

        Raises:
            StateError: an event is not allowed, because the trajectory has ended, or is still active.
            RefNotFoundError: there is no such trajectory.
            AlreadyExistsError: `is_new` is given, but the trajectory exists.
            SecretFoundError: an event holds a secret, and the guard refuses secrets.
            RefChangedError: `replaces` are not the tips any more.
        """
        store = self._store
        drafts = [_Draft(self._guard, each) for each in new]
        said = f"trajectory: {drafts[-1].subject}" if drafts else ""
        made: list[tuple[Event, State]] = []

        def build(refs: RefReader) -> Transaction:
            made.clear()
            parents = tips = refs.tips(ref)
            if is_new and tips:
                raise errors.AlreadyExistsError(f"{name_of(ref)} exists already", ref=ref)
            if not (is_new or tips):
                raise not_found(name_of(ref))
            state = State(name_of(ref))
            if replaces:
                if tips != replaces:
                    raise errors.RefChangedError(f"{name_of(ref)} has new events", ref=ref)
                parents = ()
            elif tips:
                state = trajectories.reading.state_of(store, tips)
            objects: list[tuple[ObjectId, bytes]] = []
            for draft in drafts:
                oid, state = draft.commit(parents, state, store.clock.now(), objects)
                made.append((draft.event(oid), state))
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
        is_plain = guard is None or not _may_hold_secret(guard, new.data)
        gathering = ObjectCollector() if guard is None or is_plain else guard.gathering()
        self.data: Mapping[str, Any] = new.data
        if not is_plain:
            text = event_message(new.data).text
            kept = gathering.text(text)
            if kept != text:
                self.data = Data(SCHEMA, kept).value
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


def _may_hold_secret(guard: Guard, data: Mapping[str, Any]) -> bool:
    """Return True if an event must be scanned. Few events must, and the scanner is slow to load."""
    words: list[str] = []
    return not _gather(data, words) or bool(guard.meets("\n".join(words).encode()))


def _gather(data: object, words: list[str]) -> bool:
    """Collect the texts of an event; return False at an unknown field, whose name may mark a secret."""
    if isinstance(data, str):
        words.append(data)
    elif isinstance(data, dict):
        return data.keys() <= _FIELDS and all(
            _gather(each, words) for name, each in data.items() if name not in _HASHES
        )
    elif isinstance(data, list | tuple):
        return all(_gather(each, words) for each in data)
    return True


def state_at(store: Store, tip: ObjectId) -> State:
    """Return the state of a trajectory at one of its commits.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the commit is missing or damaged.
    """
    return State.read(read_commit(tip, store.objects.read).meta.get(META))


def new_id() -> str:
    """Return a random id, without the prefix."""
    digits = int.from_bytes(Randomness().take(8), "big")
    return "".join(_ID_CHARACTERS[digits >> 5 * n & 31] for n in range(_ID_LENGTH))


def trajectory_ref(id: str) -> str:
    """Return the full name of a trajectory's ref.

    Raises:
        InvalidInputError: the id is not valid.
    """
    check_text(id)
    name = id.removeprefix(TRAJECTORIES)
    if "/" in name or not is_ref_name(TRAJECTORIES + name):
        raise errors.InvalidInputError(f"not an id of a trajectory: {id[:80]!r}", value=id)
    return TRAJECTORIES + name


def name_of(ref: str) -> str:
    """Return the id of the trajectory with a ref."""
    return ref.removeprefix(TRAJECTORIES)


def not_found(id: str) -> errors.RefNotFoundError:
    """Return the error for a trajectory that does not exist."""
    return errors.RefNotFoundError(
        f"no trajectory {id[:80]!r}", code=errors.ErrorCode.TRAJECTORY_NOT_FOUND, name=id
    )
