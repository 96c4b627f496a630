"""An index of many trajectories: their states, and the commits, changes and files that they link.

    meta    the version, the repository, and the table of published tips that the rest was compared with
    states  one row for each trajectory: its tips, when it was updated, its status, and its state as JSON
    links   one row for each commit, patch id, author's time with subject, and file that a trajectory links

The index is a derived SQLite file under `cache/`. A use compares only the refs that moved since the table of published
tips, which takes as long with ten trajectories as with ten thousand. A repository with few refs has no table, and needs
no index. A damaged index is rebuilt; where it cannot be written, readers do without.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import TRAJECTORIES
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.state import State

VERSION = 1
MAXIMUM_OF_A_FILE = 200
"""Maximum number of trajectories that are read because they link a file, the newest first."""
_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE states (ref TEXT PRIMARY KEY, tips BLOB, updated INTEGER, status TEXT, state TEXT,"
    " links INTEGER, linked BLOB, moving INTEGER) WITHOUT ROWID",
    "CREATE INDEX by_time ON states (updated DESC, ref)",
    "CREATE INDEX by_status ON states (status, updated DESC, ref)",
    "CREATE INDEX moving ON states (moving) WHERE moving",
    "CREATE INDEX unlinked ON states (ref) WHERE links AND (linked IS NULL OR linked != tips)",
    "CREATE TABLE links (key TEXT, ref TEXT, PRIMARY KEY (key, ref)) WITHOUT ROWID",
    "CREATE INDEX of_ref ON links (ref)",
)
_BATCH = 500
_CACHE_KIB = 32_768
"""Rows by time are all over the file; with less memory, a list reads its pages again and again."""


StateOf = Callable[[Store, Sequence[ObjectId]], State]
LinksOf = Callable[[Store, str], Sequence[Event]]


def open_index(store: Store, state_of: StateOf, links_of: LinksOf) -> TrajectoryIndex | None:
    """Return the index of a repository, up to date; None if it has few refs, or the index cannot be used.

    Args:
        store: the repository's store.
        state_of: returns the state of a trajectory, given its tips.
        links_of: returns the links of a trajectory, given its id.
    """
    status = store.refs.status()
    if not status.table:
        return None
    for _ in range(2):
        try:
            index = TrajectoryIndex(store, state_of, links_of)
            index.catch_up(status.table, status.since_table)
            return index
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                return None  # locked, or on a read-only file system
            _remove(store)
        except errors.StorageError:
            return None
    return None


def _remove(store: Store) -> None:
    for path in store.layout.search_files("states"):
        store.disk.remove(path)


class TrajectoryIndex:
    """The open index."""

    def __init__(self, store: Store, state_of: StateOf, links_of: LinksOf) -> None:
        """Open the index, and create it if necessary; arguments as in `open_index`.

        Raises:
            sqlite3.Error: it cannot be used.
            StorageError: its folder cannot be created.
        """
        self._store = store
        self._state_of = state_of
        self._links_of = links_of
        store.disk.make_directory(store.layout.cache_dir)
        self._base = sqlite3.connect(
            store.layout.search_files("states")[0], timeout=1, isolation_level=None
        )
        self._base.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        wanted = f"{VERSION} {store.config.store_id}"
        tables = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'"
        if not self._base.execute(tables).fetchone()[0]:
            with self._base:
                self._base.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    self._base.execute(statement)
                self._set("version", wanted)
        elif self._meta("version") != wanted:
            raise sqlite3.DatabaseError("of another version or repository")

    def _meta(self, key: str) -> str:
        found = self._base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found else ""

    def _set(self, key: str, value: str) -> None:
        self._base.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def catch_up(self, table: str, moved: Iterable[str]) -> None:
        """Compare the rows with the refs that moved since a table, or with all if it is another table."""
        refs = self._store.refs
        is_new = self._meta("table") != table
        if is_new:
            tips = dict(refs.iterate_tips(TRAJECTORIES))
            gone = [r for (r,) in self._base.execute("SELECT ref FROM states") if r not in tips]
        else:
            names = {name for name in moved if name.startswith(TRAJECTORIES)}
            names.update(
                ref for (ref,) in self._base.execute("SELECT ref FROM states WHERE moving")
            )
            tips = {name: refs.tips(name) for name in names}
            gone = [name for name in tips if not tips[name]]
        known = self._tips(None if is_new else tips)
        fresh = [ref for ref in tips if tips[ref] and known.get(ref) != b"".join(tips[ref])]
        if not (fresh or gone or is_new):
            return
        with self._base:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany("DELETE FROM states WHERE ref = ?", [(ref,) for ref in gone])
            self._base.executemany("DELETE FROM links WHERE ref = ?", [(ref,) for ref in gone])
            for ref in fresh:
                self._write(ref, tips[ref], moving=not is_new)
            if is_new:
                self._base.execute("UPDATE states SET moving = 0 WHERE moving")
                self._set("table", table)

    def _tips(self, wanted: Iterable[str] | None) -> dict[str, bytes]:
        if wanted is None:
            return dict(self._base.execute("SELECT ref, tips FROM states"))
        one = "SELECT tips FROM states WHERE ref = ?"
        rows = ((ref, self._base.execute(one, (ref,)).fetchone()) for ref in wanted)
        return {ref: row[0] for ref, row in rows if row}

    def _write(self, ref: str, tips: Sequence[ObjectId], *, moving: bool) -> None:
        state = self._state_of(self._store, tips)
        before = self._base.execute("SELECT linked FROM states WHERE ref = ?", (ref,)).fetchone()
        row = (
            *(ref, b"".join(tips), state.updated, state.status, json.dumps(state.as_map())),
            *(state.count(ev.LINKED), before[0] if before else None, moving),
        )
        self._base.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def states(self, status: str = "") -> Iterator[State]:
        """Yield the states of the trajectories with a status, or of all, the most recently updated first."""
        where = "WHERE status = ? " if status else ""
        words = (status,) if status else ()
        rows = self._base.execute(
            f"SELECT state FROM states {where}ORDER BY updated DESC, ref", words
        )
        for (text,) in rows:
            yield State.read(json.loads(text))

    def linking(self, keys: Iterable[str]) -> list[str]:
        """Return the ids of the trajectories that link something of some keys, as `keys_of` returns them."""
        self._index_links()
        found: dict[str, None] = {}
        for key in keys:
            limit = MAXIMUM_OF_A_FILE if key.startswith("file ") else -1
            rows = self._base.execute(
                "SELECT ref FROM links JOIN states USING (ref) WHERE key = ?"
                " ORDER BY updated DESC LIMIT ?",
                (key, limit),
            )
            found.update((ref.removeprefix(TRAJECTORIES), None) for (ref,) in rows)
        return list(found)

    def _index_links(self) -> None:
        """Index the links of trajectories that have new events."""
        stale = "SELECT ref, tips FROM states WHERE links AND (linked IS NULL OR linked != tips)"
        while rows := self._base.execute(f"{stale} LIMIT ?", (_BATCH,)).fetchall():
            with self._base:
                self._base.execute("BEGIN IMMEDIATE")
                for ref, tips in rows:
                    links = self._links_of(self._store, ref.removeprefix(TRAJECTORIES))
                    keys = {key for link in links for key in keys_of(link)}
                    self._base.execute("DELETE FROM links WHERE ref = ?", (ref,))
                    new = [(key, ref) for key in keys]
                    self._base.executemany("INSERT OR IGNORE INTO links VALUES (?, ?)", new)
                    self._base.execute("UPDATE states SET linked = ? WHERE ref = ?", (tips, ref))

    def close(self) -> None:
        """Close the file."""
        self._base.close()


def keys_of(link: Event) -> Iterator[str]:
    """Yield what an index finds a link by, in all of its versions."""
    for data in (link.data, *link.versions):
        yield commit_key(str(data.get("commit", "")))
        if patch := data.get("patch_id"):
            yield patch_key(str(patch))
        yield author_key(data.get("made"), data.get("subject"))
        yield from (file_key(str(file)) for file in data.get("files", ()))


def commit_key(id: str) -> str:
    """Return the key of a commit."""
    return f"commit {id}"


def patch_key(id: str) -> str:
    """Return the key of a patch id."""
    return f"patch {id}"


def author_key(made: object, subject: object) -> str:
    """Return the key of the time and the subject that a rebase keeps."""
    return f"author {made} {subject}"


def file_key(path: str) -> str:
    """Return the key of a file."""
    return f"file {path}"
