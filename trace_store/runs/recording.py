"""Recording a run: the start of a step is one commit that adds its message, the end one commit that edits it.

One process owns a run, and its threads may write at the same time. The state is kept between writes; it is read again
if the run's tips are not what this process wrote last, as after a second start elsewhere.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import replace
from trace_store.base.ident import check_author, new_name
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit
from trace_store.contracts.protocols import RefReader
from trace_store.contracts.ref_names import RUNS, is_ref_name
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.message import store_message, store_parts
from trace_store.runs.steps import META, RunState, StepRecord, short
from trace_store.store.revision import resolve_address
from trace_store.store.store import Store
from trace_store.writer import Change, Writer

Operations = Sequence[Operation]
SESSION = "session"
"""The link from a run's first commit to the tip of its session, which it mentions and does not own."""
EARLIER = "earlier"
"""The link from the start of step n to that of step n & (n - 1), as text, so that a reader reaches any step quickly."""
PREFIX = "run_"


def run_ref(id: str) -> str:
    """Return the full name of a run's ref.

    Raises:
        InvalidInputError: the id is not valid.
    """
    name = id.removeprefix(RUNS)
    if "/" in name or not is_ref_name(RUNS + name):
        raise errors.InvalidInputError(f"not the id of a run: {id[:80]!r}", value=id)
    return RUNS + name


def new_id() -> str:
    """Return a new id, such as `run_4f0c9a2k7d1x`."""
    return PREFIX + new_name()


def address_of(store: Store, message: Address | str) -> str:
    """Return the full address of a message, given as an address or in words such as HEAD.0; "" for "".

    Raises:
        MessageNotFoundError: there is no such message.
        RevisionNotFoundError, AmbiguousRevisionError: as in `resolve_address`.
    """
    if isinstance(message, Address):
        return message.hex
    return resolve_address(store, message).hex if message else ""


def states_at(store: Store, tips: Sequence[ObjectId]) -> list[RunState]:
    """Return the state of a run at each of its tips; the first one counts: one that ended, else the newest.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    states = [RunState.read(read_commit(tip, store.objects.read).meta.get(META)) for tip in tips]
    return sorted(states, key=lambda state: (state.is_running, -state.updated))


def state_at(store: Store, tips: Sequence[ObjectId]) -> RunState:
    """Return the state of a run that counts; raises as `states_at`."""
    return states_at(store, tips)[0]


class RunRecorder:
    """Writes one run.

    Attributes:
        ref: the full name of its ref.
        state: the state after the last write.
        mutex: held while this process writes the run.
    """

    def __init__(self, writer: Writer, state: RunState, tips: tuple[ObjectId, ...] = ()) -> None:
        """Create the recorder of a new run, or of one that has these tips and this state."""
        self.ref = run_ref(state.id)
        self.state = state
        self.mutex = RLock()
        self._writer = writer
        self._tips = tips
        self._starts: list[tuple[int, ObjectId]] = []
        """The steps that the next one may link: the last one, and those that it and its targets link."""

    def start(self, session: ObjectId | None) -> None:
        """Write the first commit, which links the tip of the session.

        Raises:
            AlreadyExistsError: the id is in use.
            SecretFoundError: a text holds a secret, and the repository refuses secrets.
        """
        links = () if session is None else [(SESSION, session.hex())]

        def make(change: Change, state: RunState, time: int) -> tuple[Commit, RunState]:
            name, agent = change.text(state.name), change.text(state.agent)
            state = replace(state, name=name, agent=agent, started=time, updated=time)
            return self._commit(state, [], f"run: {short(name, 100)}", links), state

        self._write(make)

    def begin(self, step: StepRecord) -> StepRecord:
        """Write the start of a step, which gets its number, address and time, and return it.

        Raises:
            StateError: the run has ended, or another process superseded it.
            SecretFoundError: as in `start`.
        """

        def make(change: Change, state: RunState, time: int) -> tuple[Commit, RunState]:
            nonlocal step
            title, began = change.text(step.title), max(time, state.started)
            step = replace(step, title=title, number=state.step_count + 1, started=began)
            state = state.after_start(step)
            operation = ops.add([store_message(step.as_message(), change.put)])
            return self._commit(state, [operation], _subject(step), self._earlier(step)), state

        oid = self._write(make)
        self._starts.append((step.number, oid))
        return replace(step, address=Address.of(oid, 0))

    def end(self, step: StepRecord, **changes: Any) -> StepRecord:
        """Write the end of a step with some changes, and return it with its time; raises as `begin`."""
        assert step.address is not None
        address = step.address

        def make(change: Change, state: RunState, time: int) -> tuple[Commit, RunState]:
            nonlocal step
            step = replace(step, **changes, completed=max(time, step.started))
            for name in ("title", "error"):  # also in metadata and commit messages
                text = getattr(step, name)
                if (screened := change.text(text)) is not text:
                    step = replace(step, **{name: screened})
            state = state.after_end(step)
            operation = ops.edit(address, store_parts(step.as_message().parts, change.put))
            return self._commit(state, [operation], _subject(step)), state

        self._write(make)
        return step

    def close(self, status: str, *, error: str = "", by: str = "") -> None:
        """Write the end of the run; raises as `begin`."""

        def make(change: Change, state: RunState, time: int) -> tuple[Commit, RunState]:
            state = state.ending(status, time, error=change.text(error), by=by)
            return self._commit(state, [], f"run {status}"), state

        self._write(make)

    def _write(self, make: Callable[[Change, RunState, int], tuple[Commit, RunState]]) -> ObjectId:
        """Write one commit on the run's tips, and return its id.

        It is made before the journal is locked, so that other writers do not wait for that, and made again if another
        process has written the run meanwhile.
        """
        store = self._writer.store

        def edits(refs: RefReader) -> Sequence[RefEdit] | None:
            if refs.tips(self.ref) != self._tips:
                return None
            return [RefEdit(self.ref, oid, self._tips[0] if self._tips else None)]

        with self.mutex:
            while True:
                if not self.state.is_running:
                    raise run_ended(self.state)
                change = self._writer.begin()
                commit, state = make(change, self.state, store.clock.now())
                oid = change.add(commit)
                if change.write(edits, "run"):
                    self.state, self._tips = state, (oid,)
                    return oid
                self._catch_up()

    def _catch_up(self) -> None:
        """Read the state that another process wrote."""
        tips = self._writer.store.refs.tips(self.ref)
        if not tips:
            raise errors.RefNotFoundError(f"the run {self.state.id} was deleted", ref=self.ref)
        if not self._tips:
            raise errors.AlreadyExistsError(f"the run {self.state.id} exists already", ref=self.ref)
        self.state, self._tips = state_at(self._writer.store, tips), tips
        self._starts = []

    def _earlier(self, step: StepRecord) -> list[tuple[str, str]]:
        """Return the link of the start of a step to an earlier one, if this process wrote that."""
        target = step.number & (step.number - 1)
        while self._starts and self._starts[-1][0] > target:
            self._starts.pop()
        found = self._starts[-1:]
        return [(EARLIER, oid.hex()) for number, oid in found if number == target]

    def _commit(
        self,
        state: RunState,
        operations: Operations,
        subject: str,
        links: Sequence[tuple[str, str]] = (),
    ) -> Commit:
        author, time, meta = check_author(state.agent), state.updated, {META: state.as_map()}
        return Commit(self._tips, author, time, operations, subject, meta, links)


def run_ended(state: RunState) -> errors.StateError:
    """Return the error of a change of a run that has ended."""
    by = f" by {state.superseded_by}" if state.superseded_by else ""
    return errors.StateError(
        f"the run {state.id} is {state.status}{by}",
        code=errors.ErrorCode.RUN_ENDED,
        name=state.id,
        status=state.status,
    )


def _subject(step: StepRecord) -> str:
    """Return a step on one line, for logs."""
    ended = "" if step.is_running else f" {step.status}"
    return f"step {step.number}{ended}: {short(step.name, 100)}"
