"""opencode: sessions from its `export`, its database, or an SQL dump.

Invariant: detection uses only the head of a file, and databases are opened only by `database`.
"""

from __future__ import annotations

import os
import re

from trace_store.base.environment import Environment
from trace_store.base.lazy_import import submodules
from trace_store.disk.files import Disk
from trace_store.errors import TraceError
from trace_store.importers.formats.opencode.rows import is_dump
from trace_store.importers.formats.opencode.sessions import NAME, OpencodeReader
from trace_store.importers.input_files import INNER, Inner
from trace_store.importers.sniff import is_below
from trace_store.importers.turn_plan import TurnFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.importers.formats.opencode.database import DatabaseSession

SUFFIXES = (".json", ".sql", ".db")
MAGIC = b"SQLite format 3\0"
"""Magic bytes of an SQLite file."""
_module = submodules("trace_store.importers.formats.opencode")  # SQLite is slow to import
_EXPORT = re.compile(rb'\{\s*"info"\s*:\s*\{')
_SESSION_KEY = re.compile(rb'"sessionID"\s*:|"id"\s*:\s*"ses_|"parts"\s*:\s*\[')
_DATABASE = re.compile(r"opencode(-[^/\\]*)?\.db")


def recognises(head: bytes) -> bool:
    """Return True if a file starts like a database, SQL dump or JSON export."""
    return is_database(head) or is_dump(head) or _is_export(head)


def reads_document(head: bytes) -> bool:
    """Return True: every file is one document."""
    return True


def is_database(head: bytes) -> bool:
    """Return True if a file is an SQLite database."""
    return head.startswith(MAGIC)


def inside(path: str, disk: Disk) -> list[Inner]:
    """Return the sessions in a database, parents before their subagents.

    Raises:
        UnreadableInputError: it is not an opencode database, is damaged, or cannot be read.
    """
    return [_inner(path, session) for session in _database_sessions(path, disk)]


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the paths of the sessions that ran in a project's folder or below it.

    For a database that cannot be read, its own path is returned.
    """
    if environment.opencode_database:
        places = [environment.opencode_database]
    elif environment.data_dir:
        folder = os.path.join(environment.data_dir, "opencode")
        places = [
            os.path.join(folder, name) for name in disk.scan(folder)[1] if _DATABASE.fullmatch(name)
        ]
    else:
        return []
    paths: list[str] = []
    for path in places:
        try:
            sessions = _database_sessions(path, disk)
        except TraceError:
            # Possibly of a newer version: the import reports why it cannot be read.
            paths.append(path)
            continue
        for session in sessions:
            if is_below(session.directory, project_dir):
                paths.append(_inner(path, session).path)
    return paths


def _database_sessions(path: str, disk: Disk) -> list[DatabaseSession]:
    sessions: list[DatabaseSession] = _module("database").database_sessions(path, disk)
    return sessions


def _inner(path: str, session: DatabaseSession) -> Inner:
    return Inner(f"{path}{INNER}{session.id}", session.id, session.export)


def _is_export(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return _EXPORT.match(start) is not None and _SESSION_KEY.search(start) is not None


FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, OpencodeReader, reads_document, finds, is_database, inside
)
