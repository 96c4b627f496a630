"""The state of the worker of a repository: how far each transcript is imported, and what failed.

It is one file in `local/`. If it is deleted, the worker checks a transcript only once a hook names it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trace_store.base.frozen import fields, replace, value
from trace_store.capture.spool import AgentEvent
from trace_store.disk.files import Disk, read_file, replace_file
from trace_store.disk.layout import Layout
from trace_store.errors import ErrorCode, NotFoundError, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time

VERSION = 1
MAXIMUM_TRANSCRIPTS = 200
MAXIMUM_FAILURES = 20


@value
class CapturedSession:
    """A session that a hook named, and how far its transcript is imported.

    Attributes:
        agent: the agent.
        session: its id.
        transcript: the path of its transcript.
        ref: its branch; "" if nothing is imported yet.
        size: how many bytes are imported, of the transcript and its subagents' transcripts.
        time: when it was last imported, or else named.
        problem: why it is not imported, or "".
    """

    JSON = "ref? problem?"

    agent: str
    session: str
    transcript: str
    ref: str = ""
    size: int = 0
    time: Time = 0
    problem: str = ""


@value
class CaptureFailure:
    """A failure of the worker."""

    time: Time
    what: str


@value
class LastEvent:
    """The last event of an agent, and how many there were."""

    agent: str
    event: str
    time: Time
    count: int


class CaptureState:
    """The file of the worker, in memory.

    Attributes:
        sessions: the sessions by transcript; the session of the latest event is last.
        events: the last event of each agent.
        failures: the last failures, oldest first.
        damaged: how many lines of the spool could not be read.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, CapturedSession] = {}
        self.events: dict[str, LastEvent] = {}
        self.failures: list[CaptureFailure] = []
        self.damaged = 0

    @classmethod
    def load(cls, disk: Disk, layout: Layout) -> CaptureState:
        """Return what was saved; an empty state if there is nothing, or if it is damaged."""
        state = cls()
        try:
            saved = json.loads(read_file(disk, layout.capture_file) or b"{}")
            if saved.get("version") != VERSION:
                return state
            sessions = [CapturedSession(*row) for row in saved["sessions"]]
            state.events = {row[0]: LastEvent(*row) for row in saved["events"]}
            state.failures = [CaptureFailure(*row) for row in saved["failures"]]
            state.damaged = int(saved["damaged"])
        except (StorageError, ValueError, TypeError, LookupError, AttributeError):
            return cls()
        state.sessions = {each.transcript: each for each in sessions}
        return state

    def retry_failed(self) -> None:
        """Treat sessions that could not be imported as if nothing of them were imported."""
        for each in [*self.sessions.values()]:
            if each.problem:
                self.sessions[each.transcript] = replace(each, size=0)

    def forget(self, name: str) -> None:
        """Remove the failed sessions of a transcript, or whose id begins so, with their failures.

        Raises:
            NotFoundError: there is none.
        """
        gone = [
            each.transcript
            for each in self.sessions.values()
            if each.problem and (each.transcript == name or each.session.startswith(name))
        ]
        if not gone:
            raise NotFoundError(
                f"no failed session {name[:120]!r}", code=ErrorCode.SESSION_NOT_FOUND, name=name
            )
        for each in gone:
            del self.sessions[each]
        self.failures = [
            each for each in self.failures if not each.what.startswith(tuple(f"{t}:" for t in gone))
        ]

    def save(self, disk: Disk, layout: Layout) -> None:
        """Write the file.

        Raises:
            StorageError: the disk failed.
        """
        rows: dict[str, Sequence[object]] = {
            "sessions": [*self.sessions.values()][-MAXIMUM_TRANSCRIPTS:],
            "events": [*self.events.values()],
            "failures": self.failures[-MAXIMUM_FAILURES:],
        }
        saved: dict[str, Any] = {name: [_row(each) for each in rows[name]] for name in rows}
        data = json.dumps({"version": VERSION, **saved, "damaged": self.damaged}).encode()
        scratch = layout.tmp_dir
        replace_file(disk, layout.capture_file, data, durable=False, scratch=scratch, private=True)

    def note(self, event: AgentEvent) -> None:
        """Count an event."""
        known = self.events.get(event.agent)
        count = known.count + 1 if known is not None else 1
        self.events[event.agent] = LastEvent(event.agent, event.event, event.time, count)

    def put(self, session: CapturedSession) -> None:
        """Add or replace a session, as the last one."""
        self.sessions.pop(session.transcript, None)
        self.sessions[session.transcript] = session

    def fail(self, time: Time, what: str) -> None:
        """Add a failure; one that repeats the last one replaces it."""
        if self.failures and self.failures[-1].what == what:
            self.failures.pop()
        self.failures.append(CaptureFailure(time, what))


def _row(each: object) -> list[Any]:
    return [getattr(each, name) for name in fields(each)]
