"""Reader of opencode's database that returns what `export` would write; see `sqlite_input` for how it is opened."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from trace_store.base.frozen import value
from trace_store.disk.files import Disk
from trace_store.importers.formats.opencode.rows import (
    in_order,
    message_info,
    message_of_v2,
    part_of,
    session_info,
)
from trace_store.importers.sqlite_input import DatabaseKind, plain_tables, read_database, rows_of

_TABLES = ("session", "message", "part")
_TABLES_V2 = ("session_v2", "session_message")
"""Tables of version 2; a migrated database has both sets."""
_KIND = DatabaseKind("opencode", (_TABLES, _TABLES_V2))

Row = dict[str, Any]


@value
class DatabaseSession:
    """A session in a database.

    Attributes:
        id: session id.
        directory: its working folder.
        parent: id of the session that it is a subagent of, or "".
    """

    id: str
    directory: str
    parent: str
    _path: str
    _disk: Disk

    def export(self) -> bytes:
        """Return the document that `opencode export` would write.

        Raises:
            UnreadableInputError: the database changed or is damaged.
        """
        return read_database(self._path, self._disk, _KIND, lambda base: _export(base, self.id))


def database_sessions(path: str, disk: Disk) -> list[DatabaseSession]:
    """Return the sessions of a database, oldest first.

    Args:
        path: path of the database.
        disk: detects changes meanwhile.

    Raises:
        UnreadableInputError: it is not an opencode database, is damaged, or cannot be read.
    """
    rows = read_database(path, disk, _KIND, _all_sessions)
    by_id = {row["id"]: row for row in in_order(rows) if isinstance(row.get("id"), str)}
    return [
        DatabaseSession(id_, _text(row.get("directory")), _text(row.get("parent_id")), path, disk)
        for id_, row in by_id.items()
        if id_
    ]


def _all_sessions(base: sqlite3.Connection) -> list[Row]:
    tables_present = plain_tables(base)
    tables = [name for name in ("session", "session_v2") if name in tables_present]
    return [row for name in tables for row in rows_of(base, f"SELECT * FROM {name}")]


def _export(base: sqlite3.Connection, id_: str) -> bytes:
    tables_present = plain_tables(base)
    session: Row = {"id": id_}
    messages: list[Row] = []
    if tables_present.issuperset(_TABLES_V2):
        session.update(*rows_of(base, "SELECT * FROM session_v2 WHERE id = ?", id_))
        query = "SELECT * FROM session_message WHERE session_id = ? ORDER BY seq"
        messages = [message_of_v2(row) for row in rows_of(base, query, id_)]
    if not messages and tables_present.issuperset(_TABLES):
        session.update(*rows_of(base, "SELECT * FROM session WHERE id = ?", id_))
        messages = _messages(base, id_)
    document = {"info": session_info(session), "messages": messages}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _messages(base: sqlite3.Connection, id_: str) -> list[Row]:
    messages: list[Row] = []
    for row in in_order(rows_of(base, "SELECT * FROM message WHERE session_id = ?", id_)):
        parts = rows_of(base, "SELECT * FROM part WHERE message_id = ? ORDER BY id", row.get("id"))
        message = {"info": message_info(row), "parts": [part_of(part, id_) for part in parts]}
        messages.append(message)
    return messages


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
