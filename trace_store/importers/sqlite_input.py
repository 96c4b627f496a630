"""Databases of agent programs, read as they are written: for formats whose files are SQLite databases.

Invariant: the file is untrusted, so nothing in it is executed. It is opened read-only; only plain tables with known
names are read, no functions are called, and work is limited. SQLite accesses the file itself; nothing is written.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from trace_store.base.frozen import value
from trace_store.disk.files import Disk
from trace_store.errors import UnreadableInputError

MAXIMUM_VALUE_BYTES = 256 << 20
"""Maximum size of a value."""
MAXIMUM_STEPS = 4_000_000_000
"""Maximum number of SQLite VM instructions per read."""
STEPS_AT_ONCE = 1_000_000
MAXIMUM_ATTEMPTS = 3
"""How often to reread if the database changes meanwhile."""

_SCHEMA = "sqlite_master"
_LOGS = ("-wal", "-journal")
_SAFE = ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0")

DatabaseRow = dict[str, Any]
Read = TypeVar("Read")


@value
class DatabaseKind:
    """A program's databases.

    Attributes:
        program: its name, for errors.
        tables: sets of tables; a database has all tables of one set.
    """

    program: str
    tables: tuple[tuple[str, ...], ...]


def plain_tables(base: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the plain tables."""
    query = f"SELECT name, sql FROM {_SCHEMA} WHERE type = 'table'"
    return frozenset(
        name for name, sql in base.execute(query) if str(sql).upper().startswith("CREATE TABLE")
    )


def rows_of(base: sqlite3.Connection, query: str, *values: Any) -> Iterator[DatabaseRow]:
    """Yield the rows of a query, by column; values are such as JSON allows."""
    cursor = base.execute(query, values)
    names = [column[0].lower() for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, map(_plain, row), strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_database(
    path: str, disk: Disk, kind: DatabaseKind, read: Callable[[sqlite3.Connection], Read]
) -> Read:
    """Return the result of a read during which the database did not change.

    Raises:
        UnreadableInputError: it has other tables, is damaged, or keeps changing.
    """
    for _ in range(MAXIMUM_ATTEMPTS):
        before = _state(path, disk)
        try:
            with _open(path, kind, logged=any(before[1:])) as base:
                result = read(base)
        except (sqlite3.Error, ValueError, OverflowError, RecursionError, MemoryError) as error:
            if _state(path, disk) == before:
                # A length in a damaged page may exceed the memory.
                why = str(error) or "out of memory"
                raise UnreadableInputError(
                    f"cannot read {kind.program} database: {path}: {why}", path=path
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
def _open(path: str, kind: DatabaseKind, *, logged: bool) -> Iterator[sqlite3.Connection]:
    """Open a database read-only, for plain tables.

    Args:
        path: path of the database.
        kind: its program, whose tables are readable.
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
        readable = frozenset({_SCHEMA, *(name for names in kind.tables for name in names)})
        base.set_authorizer(partial(_allows, readable))
        base.execute("BEGIN")
        plain = plain_tables(base)
        if not any(plain.issuperset(names) for names in kind.tables):
            raise ValueError("unknown tables")
        yield base


def _allows(readable: frozenset[str], action: int, first: str | None, *_: str | None) -> int:
    """Authorise an action of a query."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_TRANSACTION):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and first in readable:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
