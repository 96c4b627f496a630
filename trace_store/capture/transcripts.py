"""Where agents keep the transcripts that their hooks refer to."""

from __future__ import annotations

import os
import re

from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.capture.spool import CLAUDE_CODE, COPILOT, GEMINI, OPENCODE, AgentEvent
from trace_store.disk.files import Disk
from trace_store.errors import TraceError
from trace_store.importers.formats.opencode.database import database_sessions
from trace_store.importers.input_files import INNER, files_in

_DATABASE = re.compile(r"opencode(-[^/\\]*)?\.db")
_SUFFIX = ".jsonl"


@value
class SessionFiles:
    """The transcripts of a session.

    Attributes:
        transcript: its own, which need not exist.
        subagents: the transcripts of its subagents.
        size: their total size in bytes, or for a database the time of its last change; -1 if there is none yet.
    """

    transcript: str
    subagents: tuple[str, ...]
    size: int


def transcript_of(event: AgentEvent, environment: Environment) -> str:
    """Return the path of the transcript of an event, which need not exist; "" if it is not known."""
    if event.transcript or not event.session or os.sep in event.session:
        return event.transcript
    if event.agent == COPILOT and environment.copilot_dir:
        folder = os.path.join(environment.copilot_dir, "session-state", event.session)
        return os.path.join(folder, f"events{_SUFFIX}")
    if event.agent == OPENCODE:
        database = _newest_database(environment)
        return f"{database}{INNER}{event.session}" if database else ""
    return ""


def session_files(agent: str, session: str, transcript: str) -> SessionFiles:
    """Return the transcripts of a session with their size, given its own."""
    if agent == OPENCODE:
        return _of_database(session, transcript)
    folder, name = os.path.split(transcript)
    subagents: list[str] = []
    if agent == CLAUDE_CODE:
        subagents = files_in(os.path.join(folder, name.removesuffix(_SUFFIX)), Disk(), (_SUFFIX,))
    elif agent == GEMINI and session and os.sep not in session:
        subagents = files_in(os.path.join(folder, session), Disk(), (_SUFFIX,))
    subagents = [path for path in subagents if os.path.isfile(path)]
    try:
        size = sum(os.stat(path).st_size for path in (transcript, *subagents))
    except (OSError, ValueError):
        size = -1
    return SessionFiles(transcript, tuple(subagents), size)


def _of_database(session: str, transcript: str) -> SessionFiles:
    """Return a session inside a database; for a subagent, the session that started it."""
    database = transcript.rpartition(INNER)[0]
    size = _changed(database) or -1
    try:
        known = {each.id: each.parent for each in database_sessions(database, Disk())}
    except TraceError:
        return SessionFiles(transcript, (), size)  # the import says what is wrong
    while known.get(session):
        session = known[session]
    family = [session]
    for each in family:
        family += [id_ for id_, parent in known.items() if parent == each and id_ not in family]
    paths = [f"{database}{INNER}{id_}" for id_ in family]
    return SessionFiles(paths[0], tuple(paths[1:]), size)


def _newest_database(environment: Environment) -> str:
    """Return the database that opencode wrote last, or ""."""
    if environment.opencode_database or not environment.data_dir:
        return environment.opencode_database
    folder = os.path.join(environment.data_dir, "opencode")
    names = [name for name in Disk().scan(folder)[1] if _DATABASE.fullmatch(name)]
    return max((os.path.join(folder, name) for name in names), key=_changed, default="")


def _changed(database: str) -> int:
    """Return when a database last changed, in nanoseconds; recent writes are in its write-ahead log."""
    times = [status.st_mtime_ns for end in ("", "-wal") if (status := Disk().stat(database + end))]
    return max(times, default=0)
