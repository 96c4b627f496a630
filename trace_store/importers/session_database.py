"""SQLite databases of programs, in which each session is a document of its own rows.

Invariant: detection uses only the head of a file, and databases are opened only by `sqlite_input`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

from trace_store.base.lazy_import import submodules
from trace_store.disk.files import Disk
from trace_store.errors import TraceError
from trace_store.importers.input_files import INNER, Inner
from trace_store.importers.sniff import is_below
from trace_store.importers.turn_plan import Histories, TurnFormat
from trace_store.importers.turns import TurnReader

MAGIC = b"SQLite format 3\0"
_module = submodules("trace_store.importers")  # SQLite is slow to import

Rows = Callable[..., Iterator[dict[str, Any]]]
"""Yields the rows of a query, given the query and its values."""
Read = TypeVar("Read")


class SessionDatabase(NamedTuple):
    """A kind of database.

    Attributes:
        program: the program's name, for errors; in lower case, the name of the format and the key of its documents.
        tables: the tables that are read, which a database of this kind has.
        marks: texts of its schema, by which it is detected.
        sessions: returns id and working folder ("" if unknown) of each session, parents before their subagents.
        document: returns the document of a session, given its id; rows are unchanged in it.
    """

    program: str
    tables: tuple[str, ...]
    marks: tuple[bytes, ...]
    sessions: Callable[[Rows], Iterable[tuple[Any, str]]]
    document: Callable[[Rows, str], Any]

    def recognises(self, head: bytes) -> bool:
        """Return True if a file starts like a database of this kind, or like a document of one."""
        if is_database(head):
            return all(mark in head for mark in self.marks)
        name = self.program.lower().encode()
        return re.match(rb'\s*\{\s*"%b"\s*:\s*\{' % name, head) is not None

    def format(
        self,
        suffixes: tuple[str, ...],
        reader: Callable[[str], TurnReader],
        finds: Histories,
        recognises: Callable[[bytes], bool] | None = None,
        reads_document: Callable[[bytes], bool] = lambda head: True,
    ) -> TurnFormat:
        """Return the registry row; arguments as in `TurnFormat`. `recognises` is this kind's own by default."""
        name = self.program.lower()
        recognises = recognises or self.recognises
        return TurnFormat(
            *(name, suffixes, recognises, reader, reads_document, finds, is_database, self.inside)
        )

    def inside(self, path: str, disk: Disk) -> list[Inner]:
        """Return the sessions in a database.

        Raises:
            UnreadableInputError: it is of another kind, is damaged, or cannot be read.
        """
        return [self._inner(path, disk, id_) for id_, _ in self._list(path, disk)]

    def found(
        self, path: str, disk: Disk, is_wanted: Callable[[str, str], bool] | None = None
    ) -> list[str]:
        """Return the paths of the sessions in a database; of one that cannot be read, its own path.

        Args:
            path: path of the database, which may be missing.
            disk: detects changes meanwhile.
            is_wanted: returns True for id and folder of a session to return; None for all.
        """
        if not os.path.isfile(path):
            return []
        try:
            sessions = self._list(path, disk)
        except TraceError:
            return [path]  # the import reports why it cannot be read
        wanted = [id_ for id_, folder in sessions if is_wanted is None or is_wanted(id_, folder)]
        return [self._inner(path, disk, id_).path for id_ in wanted]

    def read(self, path: str, disk: Disk, read: Callable[[Rows], Read]) -> Read:
        """Return what a function makes of a database's rows.

        Raises:
            UnreadableInputError: as in `inside`.
        """
        sqlite = _module("sqlite_input")
        kind = sqlite.DatabaseKind(self.program, (self.tables,))
        result: Read = sqlite.read_database(
            path, disk, kind, lambda base: read(partial(sqlite.rows_of, base))
        )
        return result

    def _list(self, path: str, disk: Disk) -> list[tuple[str, str]]:
        listed: list[tuple[Any, str]] = self.read(
            path, disk, lambda rows: list(self.sessions(rows))
        )
        folders = {id_: folder for id_, folder in listed if isinstance(id_, str) and id_}
        return list(folders.items())

    def _inner(self, path: str, disk: Disk, id_: str) -> Inner:
        def export() -> bytes:
            document = self.read(path, disk, lambda rows: self.document(rows, id_))
            text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            return text.encode("utf-8", "backslashreplace")

        return Inner(f"{path}{INNER}{id_}", id_, export)


def is_database(head: bytes) -> bool:
    """Return True if a file is an SQLite database."""
    return head.startswith(MAGIC)


def session_document(rows: Rows, name: str, id_: str, order: str) -> dict[str, Any]:
    """Return the document of a session whose rows are in the tables `sessions` and `messages`."""
    session = next(rows("SELECT * FROM sessions WHERE id = ?", id_), {"id": id_})
    query = f"SELECT * FROM messages WHERE session_id = ? ORDER BY {order}"
    return {name: session, "messages": list(rows(query, id_))}


def works_below(project_dir: str) -> Callable[[str, str], bool]:
    """Return a condition of `found`: the session's folder is a project's, or below it."""
    return lambda _, folder: is_below(folder, project_dir)


def json_value(text: Any) -> Any:
    """Return the value of a JSON column; None if it is damaged. A value that is no text is returned as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
