"""The spool: one line for each event of an agent, which its hook leaves for the worker.

A line says which transcript grew: agent, event, session, path, size and time. It never holds prompts or outputs. An
event that cannot be captured goes into a log in the user's data folder, which `read_missed` reads.

Rule: an agent waits for its hook at every turn, so this module imports little.
"""

from __future__ import annotations

import json
import os

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import SystemClock
from trace_store.disk.files import PRIVATE, WRITE, Disk, append_line, read_file
from trace_store.disk.layout import DIRECTORY_NAME, Layout
from trace_store.store.discovery import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_store.base.environment import Environment
    from trace_store.base.ident import Clock, Time

CLAUDE_CODE, CODEX, GEMINI, OPENCODE, COPILOT = (
    "claude-code",
    "codex",
    "gemini",
    "opencode",
    "copilot",
)
AGENTS = (CLAUDE_CODE, CODEX, GEMINI, OPENCODE, COPILOT)
"""The agents whose sessions are captured, by the names of their import formats."""
BRIEFED = (CLAUDE_CODE, CODEX)
"""The agents that read what a hook prints when a session begins."""
PERSONAL_OPTION, BRIEF_OPTION = "--personal", "--brief"
"""Options of the command of a hook."""
SESSION_START = "SessionStart"
_CONTINUED = ("resume", "fork")

NO_REPOSITORY = "no-repository"
UNREADABLE = "unreadable-input"
UNKNOWN_AGENT = "unknown-agent"
SPOOL_FULL = "spool-full"
MAXIMUM_SPOOL_BYTES = 16 << 20
MAXIMUM_MISSED_BYTES = 256 << 10
OLD = ".old"
"""Suffix of the earlier part of the log of missed events."""
LOCK = "capture"
PERSONAL = "personal"
_PROJECT_VARIABLES = {CLAUDE_CODE: "CLAUDE_PROJECT_DIR", GEMINI: "GEMINI_PROJECT_DIR"}
"""Variables that hold the folder where a session began, which may differ from its current one."""
_EVENT = ("hook_event_name", "event")
_SESSION = ("session_id", "sessionId", "sessionID")
_FOLDER = ("cwd", "directory")
_LONGEST = 4096


@value
class AgentEvent:
    """An event of an agent, as its hook saw it.

    Attributes:
        agent: one of `AGENTS`.
        event: the agent's name of the event.
        session: the id of the session.
        transcript: the path of its transcript, or "" if the agent named none.
        subagent: the path of the transcript of a subagent that ended, or "".
        size: the size of the transcript in bytes; 0 if there is none yet.
        time: when the hook ran.
    """

    agent: str
    event: str = ""
    session: str = ""
    transcript: str = ""
    subagent: str = ""
    size: int = 0
    time: Time = 0

    def line(self) -> bytes:
        """Return its line in the spool."""
        fields = {name: getattr(self, name) for name in self.__match_args__}
        return _line({name: each for name, each in fields.items() if each})

    @classmethod
    def read(cls, line: str) -> AgentEvent | None:
        """Return the event of a line; None if it is damaged."""
        try:
            given = json.loads(line)
            event = cls(**given)
        except (ValueError, TypeError, RecursionError):
            return None
        texts = (event.agent, event.event, event.session, event.transcript, event.subagent)
        is_valid = all(isinstance(each, str) for each in texts) and event.agent in AGENTS
        return event if is_valid and isinstance(event.time, int) else None


@value
class MissedEvent:
    """An event that was not captured.

    Attributes:
        agent: the agent, as its hook named it.
        session: the id of the session, or "".
        folder: where it worked, or "".
        reason: `no-repository`, `unreadable-input`, `unknown-agent`, `spool-full`, or the code of an error.
        time: when.
    """

    JSON = "session? folder?"

    agent: str
    session: str
    folder: str
    reason: str
    time: Time


class WorkerLock:
    """The lock that the worker of a repository holds while it runs."""

    __slots__ = ("_disk", "_fd", "_path")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._path = layout.lock_file(LOCK)
        self._fd: int | None = None

    def take(self) -> bool:
        """Take the lock and return True, or return False if another process has it."""
        disk = self._disk
        fd = disk.open(self._path, WRITE)
        if fd is None:
            disk.make_directory(os.path.dirname(self._path))
            created = disk.open(self._path, PRIVATE)
            if created is not None:
                disk.close(created)
            fd = disk.open(self._path, WRITE)
        if fd is None or not disk.lock(fd, blocking=False):
            if fd is not None:
                disk.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Release the lock; the file stays."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)


def note_event(
    environment: Environment,
    agent: str,
    data: bytes,
    *,
    personal: bool = False,
    clock: Clock | None = None,
) -> str:
    """Append a line for the input of a hook; return the `.trace` directory, or "" if the event was missed.

    Args:
        environment: the environment of the hook.
        agent: the name of the agent.
        data: what the agent wrote to the hook.
        personal: whether sessions outside of repositories go to the user's own.
        clock: tells the time.
    """
    disk, now = Disk(), (clock or SystemClock()).now()
    try:
        event, folder = _event_of(agent, data, now)
    except (ValueError, RecursionError):
        return _miss(disk, environment, MissedEvent(agent[:80], "", "", UNREADABLE, now))
    missed = MissedEvent(agent[:80], event.session, folder, "", now)
    if agent not in AGENTS:
        return _miss(disk, environment, missed, UNKNOWN_AGENT)
    try:
        variable = _PROJECT_VARIABLES.get(agent, "")
        began = environment.variables(variable).get(variable, "")
        layout = Layout(_repository(environment, (began, folder), personal=personal))
        status = disk.stat(layout.spool_file)
        if status is not None and status.st_size > MAXIMUM_SPOOL_BYTES:
            return _miss(disk, environment, missed, SPOOL_FULL)
        append_line(disk, layout.spool_file, event.line())
    except errors.RepositoryNotFoundError:
        return _miss(disk, environment, missed, NO_REPOSITORY)
    except errors.TraceError as error:
        return _miss(disk, environment, missed, str(error.code))
    return layout.root


def begins_session(agent: str, data: bytes) -> bool:
    """Return True if the input of a hook says that a session begins whose agent reads a brief."""
    try:
        given = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    is_start = isinstance(given, dict) and _text(given, *_EVENT) == SESSION_START
    return agent in BRIEFED and is_start and _text(given, "source") not in _CONTINUED


def personal_folder(environment: Environment) -> str:
    """Return the folder of the user's own repository, which need not exist.

    Raises:
        StateError: the user has no data folder.
    """
    return environment.data_file(PERSONAL)


def read_missed(environment: Environment) -> list[MissedEvent]:
    """Return the events that were not captured, oldest first; the log keeps the newest thousands."""
    disk = Disk()
    try:
        path = environment.data_file("missed")
        texts = [read_file(disk, each) or b"" for each in (path + OLD, path)]
    except (errors.StateError, errors.StorageError):
        return []
    found = []
    for line in b"".join(texts).decode("utf-8", "replace").splitlines():
        try:
            found.append(MissedEvent(**json.loads(line)))
        except (ValueError, TypeError, RecursionError):
            continue  # a torn line
    return found


def unread_lines(disk: Disk, layout: Layout) -> list[str]:
    """Return the lines that wait for the worker."""
    data = read_file(disk, layout.spool_file) or b""
    return data.decode("utf-8", "replace").splitlines()


def _event_of(agent: str, data: bytes, now: int) -> tuple[AgentEvent, str]:
    """Return the event in the input of a hook, and its folder; raises ValueError if it is not a JSON object."""
    given = json.loads(data.decode("utf-8", "replace"))
    if not isinstance(given, dict):
        raise ValueError("not an object")
    transcript = _text(given, "transcript_path")
    size = 0
    if transcript:
        try:
            size = os.stat(transcript).st_size
        except (OSError, ValueError):
            size = 0  # it is written later
    names = (_text(given, *_EVENT), _text(given, *_SESSION), transcript)
    event = AgentEvent(agent, *names, _text(given, "agent_transcript_path"), size, now)
    return event, _text(given, *_FOLDER)


def _text(given: Mapping[str, Any], *names: str) -> str:
    """Return the first of some fields that is a text without control characters."""
    for name in names:
        text = given.get(name)
        if isinstance(text, str) and text and len(text) < _LONGEST and text.isprintable():
            return text
    return ""


def _repository(environment: Environment, folders: tuple[str, ...], *, personal: bool) -> str:
    """Return the `.trace` directory of the first folder that has one.

    Raises:
        RepositoryNotFoundError: none has one.
        As `find`.
    """
    for folder in dict.fromkeys(each for each in folders if os.path.isabs(each)):
        try:
            return find(folder, environment)
        except errors.NotFoundError:
            continue
    own = os.path.join(personal_folder(environment), DIRECTORY_NAME) if personal else ""
    if own and os.path.isdir(own):
        return own
    raise errors.RepositoryNotFoundError("there is no repository where the agent works")


def _miss(disk: Disk, environment: Environment, missed: MissedEvent, reason: str = "") -> str:
    """Log an event that is not captured, and return ""; without a data folder it is lost."""
    fields: dict[str, Any] = {name: getattr(missed, name) for name in missed.__match_args__}
    fields["reason"] = reason or missed.reason
    try:
        path = environment.data_file("missed")
        status = disk.stat(path)
        if status is not None and status.st_size > MAXIMUM_MISSED_BYTES:
            disk.rename(path, path + OLD)
        append_line(disk, path, _line(fields))
    except errors.TraceError:
        return ""
    return ""


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
