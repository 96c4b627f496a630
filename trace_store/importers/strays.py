"""Stray rows: rows that a program wrote into another session's file.

Invariant: local, derived and safe to delete; the rows are also stored with the file that they are in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from trace_store.errors import StorageError
from trace_store.files import read_file, replace_file
from trace_store.importers.files import INNER, InputBytes
from trace_store.importers.resume_state import real_path
from trace_store.store.handle import Store

_FILE = os.path.join("imports", "strays")


@runtime_checkable
class StrayFinder(Protocol):
    """A plan that finds rows of other sessions."""

    @property
    def strays(self) -> Mapping[str, Sequence[bytes]]:
        """Rows of other sessions found in this import, by session id."""
        ...


class Strays:
    """Stray rows by the session's `<format>/<id>` and the path of the file."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows = _load(store)
        self._pending: set[str] = set()
        self._changed = False

    def add(self, session: str, path: str, rows: Sequence[bytes]) -> None:
        """Record rows of a session found in a file."""
        known = self._rows.setdefault(session, {}).setdefault(real_path(path), [])
        new = [row for row in map(_text, rows) if row not in known]
        known += new
        self._changed = self._changed or bool(new)
        self._pending.add(session)

    def expect(self, session: str) -> None:
        """Note that a session was imported, so that its stray rows can be appended."""
        if session in self._rows:
            self._pending.add(session)

    def pending(self) -> Iterator[tuple[str, InputBytes]]:
        """Yield sessions with an input of their stray rows, in a stable order."""
        for session in sorted(self._pending):
            name = session.rpartition("/")[2]
            for path, rows in sorted(self._rows[session].items()):
                data = b"".join(row.encode("utf-8", "surrogateescape") + b"\n" for row in rows)
                yield session, InputBytes(f"{path}{INNER}{name}", name, data)

    def save(self) -> None:
        """Save the rows; a failed write is ignored."""
        if not self._changed:
            return
        path = os.path.join(self._store.layout.local_dir, _FILE)
        try:
            replace_file(self._store.disk, path, json.dumps(self._rows).encode(), durable=False)
        except StorageError:
            return


def _text(row: bytes) -> str:
    return row.decode("utf-8", "surrogateescape")


def _load(store: Store) -> dict[str, dict[str, list[str]]]:
    try:
        data = read_file(store.disk, os.path.join(store.layout.local_dir, _FILE))
        saved = json.loads(data or b"{}").items()
        return {
            str(session): {str(path): [str(row) for row in rows] for path, rows in files.items()}
            for session, files in saved
        }
    except (StorageError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
