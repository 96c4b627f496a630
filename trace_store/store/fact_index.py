"""An index of facts: the commits that record `name=value` as metadata or as a setting.

    meta     the version and the repository
    commits  the indexed commits; a child has a higher number than its parents
    facts    `name=value`, and the numbers of the commits that record it
    tips     the tips of each ref when it was indexed

The index is a derived SQLite file under `cache/`. A look-up first indexes what is new on the refs that it is asked
about. A damaged index is rebuilt. If the file cannot be used, such as on a read-only file system or a full disk, the
index is kept in memory. It may name commits that no ref reaches any more, so callers check what they find.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.objects import operations as ops
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.objects.commit import Commit
from trace_store.store.store import Store

VERSION = 1
SECRETS_FACT = "trace.secrets"
"""A fact of commits whose values were stored with what looked like secrets: how many."""
_NAME = "facts"
_MEMORY = ":memory:"
_WAIT_SECONDS = 30
_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE commits (id INTEGER PRIMARY KEY, oid BLOB UNIQUE)",
    "CREATE TABLE facts (fact TEXT, id INTEGER, PRIMARY KEY (fact, id)) WITHOUT ROWID",
    "CREATE TABLE tips (ref TEXT PRIMARY KEY, tips BLOB) WITHOUT ROWID",
)
_LAST = "\U0010ffff"
T = TypeVar("T")


class Written(NamedTuple):
    """A commit that has been written.

    Attributes:
        ref: the ref that it moved.
        before: the ref's tip before.
        parent: its parent; None for a first commit.
        commit: its id.
        facts: the facts that it records.
    """

    ref: str
    before: ObjectId | None
    parent: ObjectId | None
    commit: ObjectId
    facts: Mapping[str, str]


class FactIndex:
    """The open index of one repository. Threads may share it if only one uses it at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prefix = ""
        self._base = self._open()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def catch_up(self, prefix: str = "refs/") -> None:
        """Index the new commits of all refs under a prefix, for the look-ups that follow.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
        """
        self._prefix = prefix
        self._retried(self._catch_up)

    def note(self, written: Iterable[Written]) -> None:
        """Index commits that have been written, in one transaction; each only if all before it is indexed.

        Args:
            written: the commits, oldest first.

        Raises:
            sqlite3.Error: they could not be indexed; a look-up does it.
        """
        with self._base:
            self._base.execute("BEGIN IMMEDIATE")
            for each in written:
                query = "SELECT tips FROM tips WHERE ref = ?"
                found = self._base.execute(query, (each.ref,)).fetchone()
                is_next = (found and found[0]) == each.before
                # The parent of a copy is on another ref, which may not be indexed yet.
                if is_next and (each.parent is None or self._knows(each.parent)):
                    self._add(each.commit, each.facts.items())
                    row = (each.ref, bytes(each.commit))
                    self._base.execute("INSERT OR REPLACE INTO tips VALUES (?, ?)", row)

    def commits(self, name: str, value: str) -> list[ObjectId]:
        """Return the commits that record a fact, newest first."""
        query = "SELECT oid FROM facts JOIN commits USING (id) WHERE fact = ? ORDER BY id DESC"
        return [ObjectId(oid) for (oid,) in self._rows(query, f"{name}={value}")]

    def newest(self, name: str, prefix: str) -> list[tuple[str, ObjectId]]:
        """Return each value of a fact that starts with a prefix, with the newest commit that records it, by value."""
        start = f"{name}={prefix}"
        query = "SELECT fact, max(id) AS id FROM facts WHERE fact >= ? AND fact < ? GROUP BY fact"
        query = f"SELECT fact, oid FROM ({query}) JOIN commits USING (id) ORDER BY fact"
        rows = self._rows(query, start, start + _LAST)
        return [(fact[len(name) + 1 :], ObjectId(oid)) for fact, oid in rows]

    def knows(self, oid: ObjectId) -> bool:
        """Return True if a commit is indexed, and so are all before it."""
        return self._retried(lambda: self._knows(oid))

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        return self._retried(lambda: self._base.execute(query, values).fetchall())

    def _retried(self, ask: Callable[[], T]) -> T:
        """Return what a function reads from the index.

        If the file is damaged, it is rebuilt. If it fails in another way, or again, an index in memory replaces it.

        Raises:
            StorageError: SQLite failed in memory, too.
        """
        failure: sqlite3.Error | None = None
        for attempt in range(3):
            try:
                if attempt:
                    self._catch_up()
                return ask()
            except sqlite3.Error as error:
                failure = error
                self._base.close()
                self._base = (
                    self._connect(_MEMORY) if attempt or _is_usage(error) else self._rebuilt()
                )
        raise errors.StorageError(f"the index of facts failed: {failure}") from failure

    def _catch_up(self) -> None:
        prefix = self._prefix
        tips = {ref: b"".join(found) for ref, found in self._store.refs.iterate_tips(prefix)}
        query = "SELECT ref, tips FROM tips WHERE ref >= ? AND ref < ?"
        known = dict(self._base.execute(query, (prefix, prefix + _LAST)))
        moved = [ref for ref in tips if known.get(ref) != tips[ref]]
        gone = [(ref,) for ref in known if ref not in tips]
        if not (moved or gone):
            return
        with self._base:
            self._base.execute("BEGIN IMMEDIATE")
            for ref in moved:
                ids = tips[ref]
                starts = [
                    ObjectId(ids[at : at + OID_BYTES]) for at in range(0, len(ids), OID_BYTES)
                ]
                for oid, commit in self._new(starts):
                    kinds = (ops.META, ops.SETTINGS)
                    self._add(
                        oid, [f for kind in kinds for f in ops.facts_of(commit, kind).items()]
                    )
                self._base.execute("INSERT OR REPLACE INTO tips VALUES (?, ?)", (ref, tips[ref]))
            self._base.executemany("DELETE FROM tips WHERE ref = ?", gone)

    def _new(self, tips: Sequence[ObjectId]) -> Iterator[tuple[ObjectId, Commit]]:
        """Yield commits that are not indexed, parents before their children."""
        read, seen = self._store.objects.read, dict[ObjectId, Commit | None]()
        waiting = [*tips]
        while waiting:
            oid = waiting[-1]
            if oid in seen:
                waiting.pop()
                commit = seen[oid]
                if commit is not None:  # its parents have been yielded
                    seen[oid] = None
                    yield oid, commit
            elif self._knows(oid) or kind_of(data := read(oid)) != COMMIT:
                seen[oid] = None
            else:
                seen[oid] = commit = Commit.decode(data)
                waiting += [parent for parent in commit.parents if parent not in seen]

    def _knows(self, oid: ObjectId) -> bool:
        found = self._base.execute("SELECT 1 FROM commits WHERE oid = ?", (bytes(oid),))
        return found.fetchone() is not None

    def _add(self, oid: ObjectId, facts: Iterable[tuple[str, str]]) -> None:
        add = "INSERT OR IGNORE INTO commits (oid) VALUES (?)"
        added = self._base.execute(add, (bytes(oid),))
        if added.rowcount:  # else another process indexed it
            rows = [(f"{name}={value}", added.lastrowid) for name, value in facts]
            self._base.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        """Return the index in its file, which is rebuilt if it is damaged; in memory if the file cannot be used."""
        store = self._store
        if not store.local:
            return self._connect(_MEMORY)
        try:
            store.disk.make_directory(store.layout.cache_dir)
            return self._connect(store.layout.search_files(_NAME)[0])
        except sqlite3.Error as error:
            return self._connect(_MEMORY) if _is_usage(error) else self._rebuilt()
        except errors.TraceError:
            return self._connect(_MEMORY)

    def _rebuilt(self) -> sqlite3.Connection:
        """Return an empty index in place of a damaged one, or of one of another version or repository."""
        store = self._store
        if not store.local:
            return self._connect(_MEMORY)
        paths = store.layout.search_files(_NAME)
        try:
            for path in paths:
                store.disk.remove(path)
            return self._connect(paths[0])
        except (sqlite3.Error, errors.TraceError):
            return self._connect(_MEMORY)

    def _connect(self, path: str) -> sqlite3.Connection:
        base = sqlite3.connect(
            path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(base)
        except BaseException:
            base.close()
            raise
        return base

    def _prepare(self, base: sqlite3.Connection) -> None:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = OFF")  # it can be rebuilt
        base.execute("PRAGMA secure_delete = ON")
        wanted = f"{VERSION} {self._store.config.store_id}"
        tables = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'"
        with base:
            base.execute("BEGIN IMMEDIATE")
            if not base.execute(tables).fetchone()[0]:
                for statement in _SCHEMA:
                    base.execute(statement)
                base.execute("INSERT INTO meta VALUES ('version', ?)", (wanted,))
            found = base.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        if found != (wanted,):
            raise sqlite3.DatabaseError("of another version or repository")


def _is_usage(error: sqlite3.Error) -> bool:
    """Return True if the file may be sound: it is locked, the disk is full, or it must not be written."""
    return isinstance(error, sqlite3.OperationalError)
