"""Recording a run: the start of a step is one commit that adds its message, the end one commit that edits it.

One process owns a run, and its threads may write at the same time. The state is kept between writes; it is read again
if the run's tips are not what this process wrote last, as after a second start elsewhere.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Sequence

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


def state_at(store: Store, tips: Sequence[ObjectId]) -> RunState:
    """Return the state of a run at its tips, of several the one that was written last.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    states = [RunState.read(read_commit(tip, store.objects.read).meta.get(META)) for tip in tips]
    return max(states, key=lambda state: (not state.is_running, state.updated))


class RunRecorder:
    """Writes one run.

    Attributes:
        ref: the full name of its ref.
        state: the state after the last write.
        mutex: held while this process writes the run.
    """

    def __init__(self, writer: Writer, state: RunState) -> None:
        self.ref = run_ref(state.id)
        self.state = state
        self._writer = writer
        self._tips: tuple[ObjectId, ...] = ()
        self.mutex = RLock()

    def start(self, session: ObjectId | None) -> None:
        """Write the first commit, which links the tip of the session.

        Raises:
            AlreadyExistsError: the id is in use.
            SecretFoundError: a text holds a secret, and the repository refuses secrets.
        """
        change = self._writer.begin()
        self.state = replace(
            self.state, name=change.text(self.state.name), agent=change.text(self.state.agent)
        )
        links = () if session is None else [(SESSION, session.hex())]

        def commit(state: RunState, time: int) -> tuple[Commit, RunState]:
            state = replace(state, started=time, updated=time)
            return self._commit((), state, [], f"run: {short(state.name, 100)}", links), state

        self._write(change, commit, is_new=True)

    def begin(self, step: StepRecord) -> StepRecord:
        """Write the start of a step, which gets its number, address and time, and return it.

        Raises:
            StateError: the run has ended, or another process superseded it.
            SecretFoundError: as in `start`.
        """
        change = self._writer.begin()
        step = _screened(step, change)

        def commit(state: RunState, time: int) -> tuple[Commit, RunState]:
            nonlocal step
            step = replace(step, number=state.step_count + 1, started=max(time, state.started))
            state = state.after_start(step)
            operation = ops.add([store_message(step.as_message(), change.put)])
            return self._commit(self._tips, state, [operation], _subject(step)), state

        oid = self._write(change, commit)
        return replace(step, address=Address.of(oid, 0))

    def end(self, step: StepRecord) -> StepRecord:
        """Write the end of a step, and return it with its time; raises as `begin`."""
        change = self._writer.begin()
        step, address = _screened(step, change), step.address
        assert address is not None

        def commit(state: RunState, time: int) -> tuple[Commit, RunState]:
            nonlocal step
            step = replace(step, completed=max(time, step.started))
            state = state.after_end(step)
            operation = ops.edit(address, store_parts(step.as_message().parts, change.put))
            return self._commit(self._tips, state, [operation], _subject(step)), state

        self._write(change, commit)
        return step

    def close(self, status: str, *, error: str = "", by: str = "") -> None:
        """Write the end of the run; raises as `begin`."""
        change = self._writer.begin()
        error = change.text(error)

        def commit(state: RunState, time: int) -> tuple[Commit, RunState]:
            state = state.ending(status, time, error=error, by=by)
            return self._commit(self._tips, state, [], f"run {status}"), state

        self._write(change, commit)

    def _write(
        self,
        change: Change,
        make: Callable[[RunState, int], tuple[Commit, RunState]],
        *,
        is_new: bool = False,
    ) -> ObjectId:
        """Write one commit on the run's tips, and return its id."""
        store = self._writer.store
        made: list[tuple[ObjectId, RunState]] = []

        def edits(refs: RefReader) -> Sequence[RefEdit]:
            made.clear()
            tips = refs.tips(self.ref)
            if is_new and tips:
                raise errors.AlreadyExistsError(
                    f"the run {self.state.id} exists already", ref=self.ref
                )
            if not is_new:
                self._catch_up(tips)
            commit, state = make(self.state, store.clock.now())
            oid = change.add(commit)
            made.append((oid, state))
            return [RefEdit(self.ref, oid, tips[0] if tips else None)]

        with self.mutex:
            change.write(edits, "run")
            oid, self.state = made[0]
            self._tips = (oid,)
            return oid

    def _catch_up(self, tips: tuple[ObjectId, ...]) -> None:
        """Read the state that another process wrote, and refuse to go on if the run has ended."""
        if tips != self._tips:
            if not tips:
                raise errors.RefNotFoundError(f"the run {self.state.id} was deleted", ref=self.ref)
            self.state = state_at(self._writer.store, tips)
            self._tips = tips
        if not self.state.is_running:
            raise run_ended(self.state)

    def _commit(
        self,
        parents: tuple[ObjectId, ...],
        state: RunState,
        operations: Operations,
        subject: str,
        links: Sequence[tuple[str, str]] = (),
    ) -> Commit:
        author, time = check_author(state.agent), state.updated
        return Commit(parents, author, time, operations, subject, {META: state.as_map()}, links)


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


def _screened(step: StepRecord, change: Change) -> StepRecord:
    """Redact the title and the error, which are also in metadata and commit messages."""
    return replace(step, title=change.text(step.title), error=change.text(step.error))
