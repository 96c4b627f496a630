"""Reader of Crush's database: a session as a document with its rows, unchanged."""

from __future__ import annotations

import json
import sqlite3

from trace_store.base.frozen import value
from trace_store.disk.files import Disk
from trace_store.importers.sqlite_input import DatabaseKind, read_database, rows_of

_KIND = DatabaseKind("Crush", (("sessions", "messages"),))


@value
class CrushSession:
    """A session in a database."""

    id: str
    _path: str
    _disk: Disk

    def export(self) -> bytes:
        """Return the document of the session.

        Raises:
            UnreadableInputError: the database changed or is damaged.
        """
        return read_database(self._path, self._disk, _KIND, lambda base: _export(base, self.id))


def crush_sessions(path: str, disk: Disk) -> list[CrushSession]:
    """Return the sessions of a database, oldest first, parents before their subagents.

    Args:
        path: path of the database.
        disk: detects changes meanwhile.

    Raises:
        UnreadableInputError: it is not a database of Crush, is damaged, or cannot be read.
    """
    query = "SELECT id FROM sessions ORDER BY parent_session_id IS NOT NULL, created_at, rowid"
    rows = read_database(path, disk, _KIND, lambda base: list(rows_of(base, query)))
    ids = dict.fromkeys(row["id"] for row in rows if isinstance(row["id"], str) and row["id"])
    return [CrushSession(id_, path, disk) for id_ in ids]


def _export(base: sqlite3.Connection, id_: str) -> bytes:
    session = next(rows_of(base, "SELECT * FROM sessions WHERE id = ?", id_), {"id": id_})
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid"
    document = {"crush": session, "messages": list(rows_of(base, query, id_))}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")
