"""Reader of opencode's database that returns what `export` would write.

Invariant: the file is untrusted, so nothing in it is executed. It is opened read-only; only plain tables with known
names are read, no functions are called, and work is limited. SQLite accesses the file itself; nothing is written.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from trace_store.errors import UnreadableInputError
from trace_store.files import Disk
from trace_store.frozen import value
from trace_store.importers.formats.opencode.rows import (
    in_order,
    message_info,
    message_of_v2,
    part_of,
    session_info,
)

MAXIMUM_VALUE_BYTES = 256 << 20
"""Maximum size of a value."""
MAXIMUM_STEPS = 4_000_000_000
"""Maximum number of SQLite VM instructions per read."""
STEPS_AT_ONCE = 1_000_000
MAXIMUM_ATTEMPTS = 3
"""How often to reread a session if the database changes meanwhile."""

_TABLES = ("session", "message", "part")
_TABLES_V2 = ("session_v2", "session_message")
"""Tables of version 2; a migrated database has both sets."""
_SCHEMA = "sqlite_master"
_READABLE = frozenset({*_TABLES, *_TABLES_V2, _SCHEMA})
_LOGS = ("-wal", "-journal")
_SAFE = ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0")

Row = dict[str, Any]
Read = TypeVar("Read")


@value
class DatabaseSession:
    """A session in a database.

    Attributes:
        id: session id.
        directory: its working folder.
    """

    id: str
    directory: str
    _path: str
    _disk: Disk

    def export(self) -> bytes:
        """Return the document that `opencode export` would write.

        Raises:
            UnreadableInputError: the database changed or is damaged.
        """
        return _stable(self._path, self._disk, lambda base: _export(base, self.id))


def database_sessions(path: str, disk: Disk) -> list[DatabaseSession]:
    """Return the sessions of a database, oldest first.

    Args:
        path: path of the database.
        disk: detects changes meanwhile.

    Raises:
        UnreadableInputError: it is not an opencode database, is damaged, or cannot be read.
    """
    rows = _stable(path, disk, _all_sessions)
    by_id = {row["id"]: row for row in in_order(rows) if isinstance(row.get("id"), str)}
    return [
        DatabaseSession(id_, _text(row.get("directory")), path, disk)
        for id_, row in by_id.items()
        if id_
    ]


def _all_sessions(base: sqlite3.Connection) -> list[Row]:
    tables_present = _tables(base)
    tables = [name for name in ("session", "session_v2") if name in tables_present]
    return [row for name in tables for row in _rows(base, f"SELECT * FROM {name}")]


def _tables(base: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the plain tables."""
    query = f"SELECT name, sql FROM {_SCHEMA} WHERE type = 'table'"
    return frozenset(
        name for name, sql in base.execute(query) if str(sql).upper().startswith("CREATE TABLE")
    )


def _export(base: sqlite3.Connection, id_: str) -> bytes:
    tables_present = _tables(base)
    session: Row = {"id": id_}
    messages: list[Row] = []
    if tables_present.issuperset(_TABLES_V2):
        session.update(*_rows(base, "SELECT * FROM session_v2 WHERE id = ?", id_))
        query = "SELECT * FROM session_message WHERE session_id = ? ORDER BY seq"
        messages = [message_of_v2(row) for row in _rows(base, query, id_)]
    if not messages and tables_present.issuperset(_TABLES):
        session.update(*_rows(base, "SELECT * FROM session WHERE id = ?", id_))
        messages = _messages(base, id_)
    document = {"info": session_info(session), "messages": messages}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _messages(base: sqlite3.Connection, id_: str) -> list[Row]:
    messages: list[Row] = []
    for row in in_order(_rows(base, "SELECT * FROM message WHERE session_id = ?", id_)):
        parts = _rows(base, "SELECT * FROM part WHERE message_id = ? ORDER BY id", row.get("id"))
        message = {"info": message_info(row), "parts": [part_of(part, id_) for part in parts]}
        messages.append(message)
    return messages


def _rows(base: sqlite3.Connection, query: str, *values: Any) -> Iterator[Row]:
    cursor = base.execute(query, values)
    names = [column[0].lower() for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, map(_plain, row), strict=True))


def _plain(value: Any) -> Any:
    """Return a value as JSON allows it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _stable(path: str, disk: Disk, read: Callable[[sqlite3.Connection], Read]) -> Read:
    """Return the result of a read during which the database did not change."""
    for _ in range(MAXIMUM_ATTEMPTS):
        before = _state(path, disk)
        try:
            with _open(path, logged=any(before[1:])) as base:
                result = read(base)
        except (sqlite3.Error, ValueError, OverflowError, RecursionError, MemoryError) as error:
            if _state(path, disk) == before:
                # A length in a damaged page may exceed the memory.
                why = str(error) or "out of memory"
                raise UnreadableInputError(
                    f"cannot read opencode database: {path}: {why}", path=path
                ) from error
            continue
        # With a log, SQLite guarantees a consistent snapshot.
        if any(before[1:]) or _state(path, disk) == before:
            return result
    raise UnreadableInputError(f"the database keeps changing: {path}", path=path)


def _state(path: str, disk: Disk) -> list[tuple[int, ...]]:
    """Return sizes and times of a database and its logs; empty if absent."""
    real = os.path.realpath(path)
    stats = [disk.stat(name) for name in (real, *(real + log for log in _LOGS))]
    return [(s.st_size, s.st_mtime_ns) if s is not None and s.st_size else () for s in stats]


@contextmanager
def _open(path: str, *, logged: bool) -> Iterator[sqlite3.Connection]:
    """Open a database read-only, for plain tables.

    Args:
        path: path of the database.
        logged: True if a part of it is in a log.
    """
    # Without a log, SQLite neither locks nor writes files next to the database.
    mode = "?mode=ro" if logged else "?mode=ro&immutable=1"
    uri = Path(os.path.realpath(path)).as_uri() + mode
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as base:
        for setting in _SAFE:
            base.execute(f"PRAGMA {setting}")
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAXIMUM_VALUE_BYTES)
        base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        base.text_factory = lambda data: data.decode("utf-8", "replace")
        steps = 0

        def is_over_limit() -> bool:
            nonlocal steps
            steps += STEPS_AT_ONCE
            return steps > MAXIMUM_STEPS

        base.set_progress_handler(is_over_limit, STEPS_AT_ONCE)
        base.set_authorizer(_allows)
        base.execute("BEGIN")
        plain = _tables(base)
        if not (plain.issuperset(_TABLES) or plain.issuperset(_TABLES_V2)):
            raise ValueError("unknown tables")
        yield base


def _allows(action: int, first: str | None, *_: str | None) -> int:
    """Authorise an action of a query."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_TRANSACTION):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and first in _READABLE:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
