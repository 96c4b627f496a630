"""How the sessions of a store begin, so that a copy of one of them is recognised.

Rule: local, derived, and safe to delete; an entry counts only for a branch that still comes from where it was.
"""

from __future__ import annotations

import json
import os

from trace_store.errors import FormatError, NotFoundError, StorageError
from trace_store.files import read_file, replace_file
from trace_store.importers.known import key_of, other_sessions, read_commit
from trace_store.oid import ObjectId
from trace_store.store import Store

_FILE = os.path.join("imports", "beginnings")

Entry = tuple[str, str]
"""The value of a branch, in hex, and the key of the first commit behind it."""


class Beginnings:
    """The sessions of a store, by the key of their first commit; looked at once, for the length of an import."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._saved = _load(store)
        self._entries: dict[str, Entry] = {}
        self._by_key: dict[tuple[str, str], list[str]] = {}
        self._folders: set[str] = set()

    def others_with(self, ref: str, key: str) -> list[ObjectId]:
        """Return the values of other sessions' branches, of the same agent, whose first commit has a key."""
        folder = ref.rpartition("/")[0]
        if folder not in self._folders:
            self._folders.add(folder)
            for name, tip in other_sessions(self._store, ref):
                self._add(name, tip, _beginning(self._store, tip, self._saved.get(name)))
        names = sorted(self._by_key.get((folder, key), ()))
        return [ObjectId.parse(self._entries[name][0]) for name in names if name != ref]

    def note(self, ref: str, tip: ObjectId, key: str) -> None:
        """Take note of where a session's branch is now, and of the key of its first commit when it is new here."""
        known = self._entries.get(ref)
        self._add(ref, tip, key if known is None else known[1])

    def save(self) -> None:
        """Keep what was found out. That it cannot be kept does not matter."""
        found = {**self._saved, **self._entries}
        if not self._store.local or found == self._saved:
            return
        path = os.path.join(self._store.layout.local_dir, _FILE)
        try:
            replace_file(self._store.disk, path, json.dumps(found).encode(), durable=False)
        except StorageError:
            return

    def _add(self, name: str, tip: ObjectId, key: str) -> None:
        if name not in self._entries:
            self._by_key.setdefault((name.rpartition("/")[0], key), []).append(name)
        self._entries[name] = (str(tip), key)


def _beginning(store: Store, tip: ObjectId, entry: Entry | None) -> str:
    """Return the key of the first commit behind another one; "" when not all of them are here."""
    oid: ObjectId | None = tip
    key = ""
    try:
        while oid is not None:
            if entry is not None and str(oid) == entry[0]:
                return entry[1]
            commit = read_commit(store, oid)
            key = key_of(commit)
            oid = commit.parents[0] if commit.parents else None
    except (NotFoundError, FormatError):
        return ""
    return key


def _load(store: Store) -> dict[str, Entry]:
    if not store.local:
        return {}
    try:
        data = read_file(store.disk, os.path.join(store.layout.local_dir, _FILE))
        saved = json.loads(data or b"{}").items()
        return {name: (str(tip), str(key)) for name, (tip, key) in saved}
    except (StorageError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
