"""Which files hold sessions of opencode, and which sessions are a project's.

Rule: looks at the first bytes of a file; databases are looked into by `database` alone.
"""

from __future__ import annotations

import os
import re

from trace_store.environment import Environment
from trace_store.errors import TraceError
from trace_store.files import Disk
from trace_store.importers.file_head import is_below
from trace_store.importers.files import INNER, Inner
from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.importers.formats.opencode.database import DatabaseSession

MAGIC = b"SQLite format 3\0"
"""How a file of SQLite begins."""
TABLES = ("session", "message", "part")
"""The tables of which a dump is read."""

_module = submodules("trace_store.importers.formats.opencode")  # of the database: SQLite is dear
_EXPORT = re.compile(rb'\{\s*"info"\s*:\s*\{')
_OF_SESSION = re.compile(rb'"sessionID"\s*:|"id"\s*:\s*"ses_|"parts"\s*:\s*\[')
_SQL = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:pragma|begin|create|insert|drop)\b",
    re.I | re.S,
)
_OF_DUMP = re.compile(
    rb"(?:create\s+table\s+(?:if\s+not\s+exists\s+)?|insert\s+into\s+)"
    rb"""["`\[]?(?:message|part)["`\]]?\s*(?:\(|values\b)""",
    re.I,
)
_DATABASE = re.compile(r"opencode(-[^/\\]*)?\.db")


def recognises(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it holds sessions."""
    return is_database(head) or is_dump(head) or _is_export(head)


def reads_document(head: bytes) -> bool:
    """Tell whether a file is one document; all are."""
    return True


def is_dump(head: bytes) -> bool:
    """Tell whether a file is a dump of a database as SQL."""
    return _SQL.match(head) is not None and _OF_DUMP.search(head) is not None


def is_database(head: bytes) -> bool:
    """Tell whether a file is a database, which holds any number of sessions."""
    return head.startswith(MAGIC)


def inside(path: str, disk: Disk) -> list[Inner]:
    """Return the sessions in a database, parents before their subagents.

    Raises:
        UnreadableInputError: it is not a database of opencode, is damaged, or cannot be read.
    """
    return [_inner(path, session) for session in _database_sessions(path, disk)]


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the sessions of a project: those whose folder is its folder or lies in it, each named in its database."""
    if environment.opencode_database:
        places = [environment.opencode_database]
    elif environment.data_dir:
        folder = os.path.join(environment.data_dir, "opencode")
        places = [
            os.path.join(folder, name) for name in disk.scan(folder)[1] if _DATABASE.fullmatch(name)
        ]
    else:
        return []
    found: list[str] = []
    for path in places:
        try:
            sessions = _database_sessions(path, disk)
        except TraceError:
            # Of a newer version perhaps: who imports it says why it cannot be read.
            found.append(path)
            continue
        for session in sessions:
            if is_below(session.directory, project_dir):
                found.append(_inner(path, session).path)
    return found


def _database_sessions(path: str, disk: Disk) -> list[DatabaseSession]:
    found: list[DatabaseSession] = _module("database").database_sessions(path, disk)
    return found


def _inner(path: str, session: DatabaseSession) -> Inner:
    return Inner(f"{path}{INNER}{session.id}", session.id, session.export)


def _is_export(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return _EXPORT.match(start) is not None and _OF_SESSION.search(start) is not None
