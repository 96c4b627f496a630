"""How the sessions of a store begin, so that a copy of one of them is recognised.

Rule: local, derived, and safe to delete; an entry counts only for a branch that still comes from where it was.
"""

from __future__ import annotations

import json
import os

from trace_store.errors import StorageError
from trace_store.files import read_file, replace_file
from trace_store.importers.known import chain, key_of, other_sessions
from trace_store.oid import ObjectId
from trace_store.store import Store

_FILE = os.path.join("imports", "beginnings")

Entry = tuple[str, str]
"""The value of a branch, in hex, and the key of the first commit behind it."""


def sessions_beginning_with(store: Store, ref: str, key: str) -> list[ObjectId]:
    """Return the values of other sessions' branches whose first commit has a key."""
    before = _load(store)
    now: dict[str, Entry] = {}
    found: list[ObjectId] = []
    for name, tip in other_sessions(store, ref):
        begins = _beginning(store, tip, before.get(name))
        now[name] = (str(tip), begins)
        if begins == key:
            found.append(tip)
    if any(before.get(name) != entry for name, entry in now.items()):
        _save(store, {**before, **now})
    return found


def _beginning(store: Store, tip: ObjectId, entry: Entry | None) -> str:
    key = ""
    for oid, commit in chain(store, tip):
        if entry is not None and str(oid) == entry[0]:
            return entry[1]
        key = key_of(commit)
    return key


def _load(store: Store) -> dict[str, Entry]:
    if not store.local:
        return {}
    try:
        data = read_file(store.disk, os.path.join(store.layout.local_dir, _FILE))
        return {name: (tip, key) for name, (tip, key) in json.loads(data or b"{}").items()}
    except (StorageError, ValueError, TypeError, AttributeError):
        return {}


def _save(store: Store, entries: dict[str, Entry]) -> None:
    if not store.local:
        return
    path = os.path.join(store.layout.local_dir, _FILE)
    try:
        replace_file(store.disk, path, json.dumps(entries).encode(), durable=False)
    except StorageError:
        return
