"""Sessions of agents: which there are, what each is called, and where it is."""

from trace_store.sessions.listing import (
    SessionInfo,
    known_names,
    list_sessions,
    revision_of,
    session_named,
)
from trace_store.sessions.titles import TITLES, read_title, rename_session

__all__ = [
    "TITLES",
    "SessionInfo",
    "known_names",
    "list_sessions",
    "read_title",
    "rename_session",
    "revision_of",
    "session_named",
]
