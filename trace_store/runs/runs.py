"""`Runs`, the subject `repo.runs`: what agents do while they do it."""

from __future__ import annotations

from builtins import list as List  # noqa: N812
from collections.abc import Iterator

from trace_store import errors
from trace_store.base import check
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import full_name
from trace_store.objects.address import Address
from trace_store.runs import reading, watch
from trace_store.runs.reading import RunInfo, RunRecord
from trace_store.runs.recording import RunRecorder, address_of, new_id, run_ref, state_at
from trace_store.runs.run import Run
from trace_store.runs.steps import STATES, SUPERSEDED, RunState, short, storable
from trace_store.runs.watch import RunEvent
from trace_store.store.process_lock import RUN_LOCK, ProcessLock, put_aside
from trace_store.writer import Writer

AGENT = "TRACE_AGENT"
"""The environment variable with the agent's name."""


class Runs:
    """Runs of agents: start one, list them, read one, watch one.

    A run is the history of a ref under `refs/runs/`. Each step is a message; its start and its end are one commit each,
    on stable storage when the call returns. ProgressSender is shown to watchers and not stored.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def start(
        self,
        name: str,
        *,
        session: str = "",
        agent: str = "",
        message: Address | str = "",
        id: str = "",
        supersede: bool = False,
    ) -> Run:
        """Start a run in this process and return it.

        Args:
            name: what it is about.
            session: the branch that it works for; "" is HEAD's if `message` is shown there, and otherwise none.
            agent: who runs; "" is TRACE_AGENT, else the author.
            message: the address of the message that started it, or "".
            id: its id; "" is a new one.
            supersede: if the id exists, mark that run as superseded if it still runs, and start one with the next free
                number, such as `nightly-2`.

        Raises:
            InvalidInputError: it has no name, or an argument is not valid.
            AlreadyExistsError: there is a run with this id.
            RefNotFoundError: there is no such session.
            MessageNotFoundError: there is no such message.
            StorageError: the disk failed.
        """
        check.text(name=name, session=session, agent=agent, id=id)
        check.flag(supersede=supersede)
        if not name.strip():
            raise errors.InvalidInputError("a run needs a name", argument="name")
        address = address_of(self._store, message)
        branch, tip = self._session(session, address)
        variables = self._writer.environment.variables(AGENT)
        agent = agent or variables.get(AGENT, "") or self._writer.author
        new = self._supersede(id) if id and supersede else id
        self._put_locks_aside()
        state = RunState(
            new or new_id(), short(storable(name)), agent, session=branch, message=address
        )
        return Run(self._writer, state, tip)

    def list(
        self,
        *,
        status: str = "",
        session: str = "",
        agent: str = "",
        message: Address | str = "",
        limit: int | None = None,
    ) -> List[RunInfo]:
        """Return runs, those that run first, then the most recently updated; one read a run.

        Args:
            status: only these: running, completed, failed, interrupted or superseded.
            session: only those of this branch.
            agent: only those of this agent.
            message: only those that this message started.
            limit: at most so many.

        Raises:
            InvalidInputError: there is no such status.
            MessageNotFoundError: there is no such message.
        """
        check.text(status=status, session=session, agent=agent)
        if status and status not in STATES:
            raise errors.InvalidInputError(
                f"a run is {', '.join(STATES)}, not {status[:40]!r}", argument="status"
            )
        branch = full_name(session) if session else ""
        address = address_of(self._store, message)
        found = [
            each
            for each in reading.list_runs(self._store)
            if (not status or each.status == status)
            and (not branch or each.state.session == branch)
            and (not agent or each.state.agent == agent)
            and (not address or each.state.message == address)
        ]
        return found[:limit]

    def running(self) -> List[RunInfo]:
        """Return the runs that run in this working copy now; those that ended cost nothing."""
        return reading.running(self._store)

    def read(self, name: str, *, start: int | None = None, limit: int | None = None) -> RunRecord:
        """Return a run with its steps, given its id or the beginning of it.

        Args:
            name: its id or the beginning of it.
            start: the number of the first step to return; None returns the last ones.
            limit: at most so many steps; None returns all.

        Raises:
            InvalidInputError: `start` or `limit` is not a count.
            RefNotFoundError: there is none.
            AmbiguousRevisionError: several ids begin like this.
        """
        check.text(name=name)
        check.count(start=start, limit=limit)
        return reading.read_run(self._store, name, start=start, limit=limit)

    def watch(self, name: str, *, timeout: float | None = None) -> Iterator[RunEvent]:
        """Yield what a run did so far and does, each thing once and in order, until it ends.

        Args:
            name: its id or the beginning of it.
            timeout: end after so many seconds in which nothing happens; None waits for ever.

        Raises:
            As `read`.
        """
        check.text(name=name)
        return watch.watch(self._store, name, timeout=timeout)

    def _session(self, name: str, message: str) -> tuple[str, ObjectId | None]:
        """Return the full name of a session's branch, and its tip; both are empty for a run without a session."""
        if not name:
            head = self._store.refs.head()
            if not (message and head.ref and head.oid):
                return "", None
            context = self._writer.contexts.compile(head.oid)
            is_there = context.view.find(Address.parse(message)) is not None
            return (head.ref, head.oid) if is_there else ("", None)
        ref = full_name(name)
        tip = self._store.refs.read(ref)
        if tip is None:
            raise errors.RefNotFoundError(f"no branch {name[:80]!r}", ref=ref)
        return ref, tip

    def _supersede(self, id: str) -> str:
        """Mark a run as superseded, if it has not ended, and return the id of the one that replaces it."""
        tips = self._store.refs.tips(run_ref(id))
        if not tips:
            return id
        number = 2
        while self._store.refs.tips(run_ref(f"{id}-{number}")):
            number += 1
        new, old = f"{id}-{number}", f"{id}-{number - 1}" if number > 2 else id
        tips = self._store.refs.tips(run_ref(old))
        state = state_at(self._store, tips)
        if state.is_running:
            RunRecorder(self._writer, state, tips).close(SUPERSEDED, by=new)
            ProcessLock(self._store, RUN_LOCK, old).forget()
        return new

    def _put_locks_aside(self) -> None:
        """Put the locks of crashed runs aside, so that lists of running agents do not read them."""

        def is_running(id: str) -> bool:
            tips = self._store.refs.tips(run_ref(id))
            return bool(tips) and state_at(self._store, tips).is_running

        try:
            put_aside(self._store, RUN_LOCK, is_running)
        except errors.TraceError:
            return  # the run starts all the same
