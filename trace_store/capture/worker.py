"""The worker: it imports what grew, as `trace import` would.

Hooks start it when none runs. It reads the spool, imports the transcripts that its lines name, and exits once they have
stopped growing. It also checks the sessions of the last days, because an agent that is killed runs no hook, and retries
those that failed.
"""

from __future__ import annotations

from time import sleep

from trace_store.base.frozen import replace, value
from trace_store.capture.spool import AgentEvent, WorkerLock
from trace_store.capture.state import CapturedSession, CaptureState
from trace_store.capture.transcripts import session_files, transcript_of
from trace_store.checkpoints.checkpoints import Checkpoints
from trace_store.contracts.ref_names import BRANCHES
from trace_store.disk.files import TAKEN, take_lines
from trace_store.errors import AlreadyExistsError, LockedError, TraceError
from trace_store.importers.input_files import INNER
from trace_store.importers.report import FileReport
from trace_store.sessions.transcripts import Transcripts
from trace_store.writer import Writer

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 10.0
"""How long a worker waits for more."""
RECENT_MILLISECONDS = 7 * 86_400_000
_QUIET_MILLISECONDS = 60_000
"""After this time without events, a session has ended, or its agent was killed."""
COMPACTIONS = frozenset(("PreCompact", "PreCompress", "session.compacting"))
"""Events before a compaction."""
SUBAGENT = "SubagentStop"
CHECKPOINTS = "before-compaction/"
AUTHOR = "trace hooks"
"""The reflog author of these imports. `undo` skips them, because the user did not run them."""
_NAME_CHARACTERS = 12


@value
class CaptureRun:
    """What a run of the worker did.

    Attributes:
        events: how many events it read.
        sessions: the sessions that it imported from, as they are now.
        commits: how many commits it added.
        messages: how many messages.
        checkpoints: the checkpoints that it saved before compactions.
        failures: what failed.
        is_busy: whether another worker is running, so that nothing was done.
    """

    events: int = 0
    sessions: tuple[CapturedSession, ...] = ()
    commits: int = 0
    messages: int = 0
    checkpoints: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    is_busy: bool = False


def catch_up(writer: Writer, *, waits: bool = False, forget: str = "") -> CaptureRun:
    """Import what the hooks noted, and what grew of sessions of the last days.

    Args:
        writer: the repository.
        waits: whether to keep running until nothing has grown for some seconds.
        forget: a failed session to give up, by its transcript or the start of its id; it is imported again when its
            agent continues it. "" is none.

    Raises:
        NotFoundError: no failed session has this name.
        LockedError: another worker runs, so no session is given up.
        StorageError: the spool cannot be read, or the state cannot be written.
    """
    worker = _Worker(writer)
    store = writer.store
    lock = WorkerLock(store.disk, store.layout)
    own = store.import_author
    while True:
        if not lock.take():
            if forget and not worker.has_run:
                raise LockedError("another import of captured sessions is running; try again")
            return worker.result(is_busy=not worker.has_run)
        store.import_author = AUTHOR
        try:
            if forget and not worker.has_run:
                worker.forget(forget)
            worker.run(PATIENCE_SECONDS if waits else 0.0)
        finally:
            store.import_author = own
            lock.release()
        # A hook appends its line before it tries the lock. If it found the lock taken, its line is seen here.
        if not any(store.disk.exists(store.layout.spool_file + end) for end in ("", TAKEN)):
            return worker.result()


class _Worker:
    """A run of the worker."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store
        self._state = CaptureState()
        self._events = self._commits = self._messages = 0
        self._sessions: dict[str, CapturedSession] = {}
        self._checkpoints: list[str] = []
        self._failures: dict[str, None] = {}
        self.has_run = False

    def result(self, *, is_busy: bool = False) -> CaptureRun:
        """Return what was done."""
        return CaptureRun(
            self._events,
            tuple(self._sessions.values()),
            self._commits,
            self._messages,
            tuple(self._checkpoints),
            tuple(self._failures),
            is_busy,
        )

    def forget(self, name: str) -> None:
        """Drop a failed session from the state of the worker; raises as `catch_up`."""
        disk, layout = self._store.disk, self._store.layout
        state = CaptureState.load(disk, layout)
        state.forget(name)
        state.save(disk, layout)

    def run(self, patience: float) -> None:
        """Import until nothing has happened for some seconds."""
        disk, layout = self._store.disk, self._store.layout
        self._state = CaptureState.load(disk, layout)
        self._state.retry_failed()  # each run tries once; then only what grows
        quiet = 0.0
        while True:
            is_first, self.has_run = not self.has_run, True
            before = self._events, self._messages, self._commits
            take_lines(disk, layout.spool_file, self._read)
            self._import_grown(is_first=is_first)
            if before != (self._events, self._messages, self._commits):
                quiet = 0.0
            if quiet >= patience or not disk.exists(layout.root):
                break
            sleep(POLL_SECONDS)
            quiet += POLL_SECONDS

    def _read(self, lines: list[str]) -> None:
        """Import the sessions of some lines of the spool; lines that are damaged are counted."""
        latest: dict[str, AgentEvent] = {}
        for line in lines:
            event = AgentEvent.read(line)
            if event is None:
                self._state.damaged += bool(line.strip())
                continue
            self._events += 1
            self._state.note(event)
            transcript = transcript_of(event, self._writer.environment)
            if not transcript:
                continue
            known = self._state.sessions.get(transcript)
            named = CapturedSession(event.agent, event.session, transcript)
            self._state.put(replace(known or named, time=event.time))
            if event.event in COMPACTIONS:
                self._import(transcript, settled=True)
                self._save_checkpoint(transcript)
            latest[transcript] = event
        for transcript, event in latest.items():
            self._import(transcript, settled=event.event != SUBAGENT)
        if lines:
            self._state.save(self._store.disk, self._store.layout)

    def _import_grown(self, *, is_first: bool) -> None:
        """Import the sessions of the last days that grew without an event; databases are read the first time only."""
        now, saved = self._store.clock.now(), False
        for each in [*self._state.sessions.values()]:
            age = now - each.time
            if age > RECENT_MILLISECONDS or (INNER in each.transcript and not is_first):
                continue
            files = session_files(each.agent, each.session, each.transcript)
            if files.size not in (each.size, -1):
                saved |= self._import(each.transcript, settled=age > _QUIET_MILLISECONDS)
        if saved:
            self._state.save(self._store.disk, self._store.layout)

    def _import(self, transcript: str, *, settled: bool) -> bool:
        """Import a session as far as it has grown; return whether its state changed.

        A subagent's branch starts at the commit with the call. While the model still writes, that commit may be
        replaced, so subagents are imported when the turn is over: when the session is settled.
        """
        session = self._state.sessions[transcript]
        files = session_files(session.agent, session.session, transcript)
        if files.size in (-1, session.size):
            return False  # nothing yet, or nothing new
        paths = (files.transcript, *(files.subagents if settled else ()))
        size = files.size if settled or not files.subagents else session.size
        try:
            report = Transcripts(self._writer).import_(discovered=paths, format=session.agent)
        except TraceError as error:
            self._fail(session, error, size)
            return True
        self._commits += report.commits
        self._messages += report.messages
        own = report.files[0]
        problems = [each for each in report.files if each.error is not None]
        if problems:
            self._fail(session, problems[0].error, size)
            return True
        ref = own.branches[0].ref if own.branches else session.ref
        changed = replace(session, ref=ref, size=size, problem=_problem(own))
        self._state.put(changed)
        self._sessions[transcript] = changed
        return True

    def _fail(self, session: CapturedSession, error: Exception | None, size: int) -> None:
        what = f"{session.transcript}: {error}"
        self._failures[what] = None
        self._state.fail(self._store.clock.now(), what)
        self._state.put(replace(session, problem=str(error), size=size))

    def _save_checkpoint(self, transcript: str) -> None:
        """Save a session as it is before a compaction."""
        session = self._state.sessions[transcript]
        tip = self._store.refs.read(session.ref) if session.ref else None
        if tip is None:
            return
        name = f"{CHECKPOINTS}{session.agent}-{session.session[:_NAME_CHARACTERS]}-{tip.short()}"
        branch = session.ref.removeprefix(BRANCHES)
        try:
            saved = Checkpoints(self._writer).save(name, ref=branch, reason="before a compaction")
        except AlreadyExistsError:
            return
        except TraceError as error:
            self._fail(session, error, session.size)
            return
        self._checkpoints.append(saved.name)


def _problem(report: FileReport) -> str:
    """Return why nothing of a transcript is imported, or "", also if it has no messages yet."""
    return "" if report.branches or report.skipped in ("", "empty") else report.skipped
