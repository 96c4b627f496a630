"""Detection of sessions and commits that the store already has.

Invariant: only reads refs and objects. The saved index is local and safe to delete; an entry is used only if the
branch still descends from its commit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator

from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import BRANCHES
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import FormatError, NotFoundError, StorageError
from trace_store.importers.build_commits import RECORD_KEY
from trace_store.importers.contract import AGENTS_KEY
from trace_store.objects.commit import Commit
from trace_store.objects.operations import stored_messages
from trace_store.objects.parts import ToolCall
from trace_store.store.store import Store

_FILE = os.path.join("imports", "beginnings")

Entry = tuple[str, str]
"""Tip of a branch in hex, and the key of its first commit."""


class SessionIndex:
    """Session branches by the key of their first commit, cached for one import."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._saved = _load(store)
        self._entries: dict[str, Entry] = {}
        self._by_key: dict[tuple[str, str], list[str]] = {}
        self._folders: set[str] = set()

    def others_with(self, ref: str, key: str) -> list[ObjectId]:
        """Return the tips of the agent's other sessions whose first commit has a key."""
        folder = ref.rpartition("/")[0]
        if folder not in self._folders:
            self._folders.add(folder)
            for name, tip in other_sessions(self._store, ref):
                self._add(name, tip, _first_key(self._store, tip, self._saved.get(name)))
        names = sorted(self._by_key.get((folder, key), ()))
        return [ObjectId.parse(self._entries[name][0]) for name in names if name != ref]

    def first_key(self, ref: str) -> str:
        """Return the key of the first commit of a session in this import; "" if it is not known."""
        return self._entries.get(ref, ("", ""))[1]

    def note(self, ref: str, tip: ObjectId, key: str) -> None:
        """Record a session's tip, and the key of its first commit if it is new."""
        entry = self._entries.get(ref)
        self._add(ref, tip, key if entry is None else entry[1])

    def save(self) -> None:
        """Save the index; a failed write is ignored."""
        entries = {**self._saved, **self._entries}
        if entries == self._saved:
            return
        path = os.path.join(self._store.layout.local_dir, _FILE)
        try:
            replace_file(self._store.disk, path, json.dumps(entries).encode(), durable=False)
        except StorageError:
            return

    def _add(self, name: str, tip: ObjectId, key: str) -> None:
        if name not in self._entries:
            self._by_key.setdefault((name.rpartition("/")[0], key), []).append(name)
        self._entries[name] = (str(tip), key)


def _first_key(store: Store, tip: ObjectId, entry: Entry | None) -> str:
    """Return the key of the first commit of a branch; "" if history is incomplete."""
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
    try:
        data = read_file(store.disk, os.path.join(store.layout.local_dir, _FILE))
        saved = json.loads(data or b"{}").items()
        return {name: (str(tip), str(key)) for name, (tip, key) in saved}
    except (StorageError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


class KnownCommits:
    """Commits in the store, with imported ones by key.

    Attributes:
        oids: all commit ids.
        by_key: imported commits by parent (b"" for none) and key.
    """

    __slots__ = ("by_key", "oids")

    def __init__(self) -> None:
        self.oids: set[bytes] = set()
        self.by_key: dict[tuple[bytes, str], list[ObjectId]] = {}

    def add(self, store: Store, tip: ObjectId, stop: Container[bytes] = frozenset()) -> None:
        """Add a commit and its first-parent ancestors, up to known ones."""
        for oid, commit in chain(store, tip):
            if oid in self.oids or oid in stop:
                return
            self.oids.add(oid)
            key = key_of(commit)
            if key:
                parent = commit.parents[0] if commit.parents else b""
                self.by_key.setdefault((parent, key), []).append(oid)


def read_commit(store: Store, oid: bytes) -> Commit:
    """Return a commit of the store.

    Raises:
        ObjectNotFoundError: the commit is missing.
        CorruptObjectError: it is damaged or not a commit.
    """
    return Commit.decode(store.objects.read(oid))


def chain(store: Store, tip: ObjectId | None) -> Iterator[tuple[ObjectId, Commit]]:
    """Yield a commit and its first-parent ancestors, newest first.

    Errors as in `read_commit`.
    """
    while tip is not None:
        commit = read_commit(store, tip)
        yield tip, commit
        tip = commit.parents[0] if commit.parents else None


def key_of(commit: Commit) -> str:
    """Return the transcript's key of a commit; "" if it was not imported."""
    key = commit.meta.get(RECORD_KEY)
    return key if isinstance(key, str) else ""


STRAY_KEY = "stray"
"""Metadata key: the commit's records are in another session's file."""


def inspect_history(
    store: Store, tip: ObjectId | None, stop: Container[bytes]
) -> tuple[bool, bool]:
    """Return if a branch descends from one of `stop`, and if foreign commits follow.

    Foreign commits are a user's own, or rows of the session from another file.
    """
    has_foreign = False
    for oid, commit in chain(store, tip):
        if oid in stop:
            return True, has_foreign
        has_foreign = has_foreign or not key_of(commit) or STRAY_KEY in commit.meta
    return False, has_foreign


def caller_of(store: Store, ref: str, agent: str) -> ObjectId | None:
    """Return the parent of the commit with a subagent's answer, or None if unknown."""
    for _, tip in session_refs(store, ref):
        for _, commit in chain(store, tip):
            if agent in commit.meta.get(AGENTS_KEY, ()) and commit.parents:
                return commit.parents[0]
    return None


def commit_with_call(store: Store, ref: str, call: str) -> ObjectId | None:
    """Return the commit of a session or of its subagents that holds a tool call, or None."""
    for _, tip in session_refs(store, ref):
        for oid, commit in chain(store, tip):
            for message in stored_messages(commit):
                if any(
                    part["type"] == ToolCall.type and part["id"] == call
                    for part in message["parts"]
                ):
                    return oid
    return None


def session_refs(store: Store, ref: str) -> list[tuple[str, ObjectId]]:
    """Return the refs of a session and its branches."""
    branches = list(store.refs.iterate(ref + "/"))
    tip = store.refs.read(ref)
    return branches if tip is None else [(ref, tip), *branches]


def other_sessions(store: Store, ref: str) -> Iterable[tuple[str, ObjectId]]:
    """Return the session branches of the agent's other sessions."""
    folder = ref.rpartition("/")[0] + "/"
    depth = folder.count("/")
    return [
        (name, oid)
        for name, oid in store.refs.iterate(folder)
        if name != ref and name.count("/") == depth and name.startswith(BRANCHES)
    ]
