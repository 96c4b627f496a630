"""What a store holds already of a session, found by walking from its refs.

Rule: reads, never writes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from trace_store.importers.contract import AGENTS_KEY
from trace_store.importers.making import RECORD_KEY
from trace_store.objects.commit import Commit
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES
from trace_store.store import Store


class Known:
    """Commits that are here, and which of them are of an import.

    Attributes:
        oids: all of them.
        by_key: imported ones by parent (b"" for none) and key.
    """

    __slots__ = ("by_key", "oids")

    def __init__(self) -> None:
        self.oids: set[bytes] = set()
        self.by_key: dict[tuple[bytes, str], list[ObjectId]] = {}

    def add(self, store: Store, tip: ObjectId, stop: Container[bytes] = frozenset()) -> None:
        """Add a commit and what lies behind it along first parents, up to what is known."""
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
        ObjectNotFoundError: it is not here.
        CorruptObjectError: it is damaged, or no commit.
    """
    return Commit.decode(store.objects.read(oid))


def chain(store: Store, tip: ObjectId | None) -> Iterator[tuple[ObjectId, Commit]]:
    """Yield a commit and those behind it along first parents, newest first; errors as in `read_commit`."""
    while tip is not None:
        commit = read_commit(store, tip)
        yield tip, commit
        tip = commit.parents[0] if commit.parents else None


def key_of(commit: Commit) -> str:
    """Return by what a transcript knows a commit; nothing when it is not of an import."""
    key = commit.meta.get(RECORD_KEY)
    return key if isinstance(key, str) else ""


STRAY_KEY = "stray"
"""In a commit's metadata: its records stand in the file of another session."""


def look_back(store: Store, tip: ObjectId | None, stop: Container[bytes]) -> tuple[bool, bool]:
    """Return whether a branch comes from one of a set of commits, and whether anything else came since.

    That is what somebody committed, or rows of the session that another file holds.
    """
    others = False
    for oid, commit in chain(store, tip):
        if oid in stop:
            return True, others
        others = others or not key_of(commit) or STRAY_KEY in commit.meta
    return False, others


def caller_of(store: Store, ref: str, agent: str) -> ObjectId | None:
    """Return the commit with the call that a session began a subagent with, or None when it does not tell."""
    for _, tip in session_refs(store, ref):
        for _, commit in chain(store, tip):
            if agent in commit.meta.get(AGENTS_KEY, ()) and commit.parents:
                return commit.parents[0]
    return None


def session_refs(store: Store, ref: str) -> list[tuple[str, ObjectId]]:
    """Return the refs of a session and of its branches."""
    found = [(name, oid) for name, oid in store.refs.iterate(ref + "/")]
    tip = store.refs.read(ref)
    return found if tip is None else [(ref, tip), *found]


def other_sessions(store: Store, ref: str) -> Iterable[tuple[str, ObjectId]]:
    """Return the branches of other sessions of the same agent, without the branches of their own."""
    folder = ref.rpartition("/")[0] + "/"
    depth = folder.count("/")
    return [
        (name, oid)
        for name, oid in store.refs.iterate(folder)
        if name != ref and name.count("/") == depth and name.startswith(BRANCHES)
    ]
