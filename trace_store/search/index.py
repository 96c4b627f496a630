"""The full-text index: an SQLite file under `cache/`, which knows the words of every message of every branch.

    names      the branches, roles, kinds and tools that the other tables speak of by number
    commits    which commits are indexed
    tips       where each branch ended when it was last indexed, and whether it only ever grew
    messages   one row for each wording in a commit: commit and number, branch, time, role, kind, tools
    words      FTS5 (sqlite.org/fts5.html) over these, without the text itself: that stays in the objects

Rule: the index is derived data. A search adds the commits that are new, and reads each commit once. A damaged index, or
one of another version or repository, is rebuilt. Row numbers follow time, so newest-first order is free. A commit is
stored as the first eight bytes of its id, as a number: whole ids would take half of a short row.

A message that is carried from elsewhere has rows in each commit that carries it, since the one in which it was born
need not be on a branch any more; `finding` shows it once. A merge has the histories that its messages come from behind
it, so nothing that it carries has a row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.context.snippet import texts_of
from trace_store.errors import ErrorCode, StateError, TraceError
from trace_store.frozen import value
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import load_parts
from trace_store.objects.parts import ToolCall
from trace_store.oid import ObjectId
from trace_store.refs.names import BRANCHES
from trace_store.store.handle import Store

VERSION = 4
BATCH_COMMITS = 2_000
"""So many commits are made durable together: an interrupted build goes on from there."""
MAXIMUM_TEXT = 1 << 20
"""Characters of one message that are indexed."""
_WAIT_SECONDS = 30
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE commits (id INTEGER PRIMARY KEY);
CREATE TABLE tips (ref TEXT PRIMARY KEY, tip BLOB, grew INTEGER) WITHOUT ROWID;
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, made_by INTEGER, number INTEGER, ref INTEGER, time INTEGER, role INTEGER, kind INTEGER,
  tool INTEGER
);
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', tokenize="unicode61 remove_diacritics 2 tokenchars '_'"
);
"""

Progress = Callable[[int, int], None]


class SearchIndex:
    """The index of one repository, open; use it as a context manager."""

    def __init__(self, store: Store) -> None:
        """Open it, or begin it.

        Raises:
            StateError: the SQLite at hand has no FTS5.
        """
        self._store = store
        self._names: dict[str, int] = {}
        self.branches: dict[str, ObjectId] = {}  # as of the last `catch_up`
        self.base = self._opened()

    def __enter__(self) -> SearchIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.base.close()

    def catch_up(self, progress: Progress | None = None) -> int:
        """Index the commits that came since the last time, and return how many these were.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit is damaged or not here.
        """
        base = self.base
        tips = self.branches = branches_of(self._store)
        before = {ref: (tip, grew) for ref, tip, grew in base.execute("SELECT * FROM tips")}
        moved = [ref for ref, tip in tips.items() if ref not in before or before[ref][0] != tip]
        now = [(ref, before[ref][0], False) for ref in before if ref not in tips and before[ref][1]]
        if not (moved or now):
            return 0
        count = 0
        # A table of its own rather than a list: the first time these are all the commits there are.
        base.execute(
            "CREATE TEMP TABLE fresh (at INTEGER PRIMARY KEY, id INTEGER UNIQUE, oid BLOB, ref TEXT, time INTEGER)"
        )
        with base:
            base.execute("BEGIN")
            for ref in sorted(moved):
                met: set[bytes] = set()
                for oid, commit in self._walk(tips[ref], met):
                    row = (count, number_of(oid), bytes(oid), ref, commit.time)
                    base.execute("INSERT INTO fresh VALUES (?, ?, ?, ?, ?)", row)
                    count += 1
                    if progress is not None and not count % BATCH_COMMITS:
                        progress(0, count)
                had, grew = before.get(ref, (b"", True))
                now.append((ref, bytes(tips[ref]), grew and (not had or had in met)))
        # The walk met children before parents; sorting by `at` in reverse puts parents first among commits of one time.
        ordered = base.execute("SELECT oid, ref FROM fresh ORDER BY time, at DESC")
        done = 0
        while batch := ordered.fetchmany(BATCH_COMMITS):
            with base:
                base.execute("BEGIN IMMEDIATE")
                for oid, ref in batch:
                    self._add(ObjectId(oid), ref)
            done += len(batch)
            if progress is not None:
                progress(done, count)
        base.execute("DROP TABLE fresh")
        with base:
            base.executemany("INSERT OR REPLACE INTO tips VALUES (?, ?, ?)", now)
        total = base.execute("SELECT count(*) FROM commits").fetchone()[0]
        if count > BATCH_COMMITS and 2 * count > total:
            self._compact()
        return count

    def _compact(self) -> None:
        """Merge the parts that the words were written in, which takes off about a quarter of the file."""
        try:
            self.base.execute("INSERT INTO words (words) VALUES ('optimize')")
            self.base.execute("VACUUM")
        except sqlite3.OperationalError:
            pass  # another process is searching, or the disk is full

    def _walk(self, tip: ObjectId, met: set[bytes]) -> Iterator[tuple[ObjectId, Commit]]:
        """Yield the commits of a tip that are not indexed, children first; where the walk ends, ids go into `met`."""
        waiting = [tip]
        while waiting:
            oid = waiting.pop()
            if self._is_in("commits", oid) or self._is_in("fresh", oid):
                met.add(oid)
                continue
            commit = read_commit(oid, self._store.objects.read)
            yield oid, commit
            waiting += commit.parents

    def grew(self) -> set[str]:
        """Return the branches that only ever grew: every commit that was found through one is still on it."""
        return {ref for (ref,) in self.base.execute("SELECT ref FROM tips WHERE grew")}

    def _is_in(self, table: str, oid: bytes) -> bool:
        found = self.base.execute(f"SELECT 1 FROM {table} WHERE id = ?", (number_of(oid),))
        return found.fetchone() is not None

    def _add(self, oid: ObjectId, ref: str) -> None:
        if self._is_in("commits", oid):
            return  # another process was faster
        self.base.execute("INSERT INTO commits VALUES (?)", (number_of(oid),))
        commit = read_commit(oid, self._store.objects.read)
        of_others = len(commit.parents) > 1
        for number, wording in enumerate(wordings(commit, oid)):
            if not (of_others and wording.carried):
                time = self._born(wording.address) if wording.carried else None
                place = (number_of(oid), number, self._name(ref), time or commit.time)
                self._add_wording(place, wording)

    def _born(self, address: Address) -> int | None:
        """Return when a message was made; None where the commit in which it was born is not here."""
        objects = self._store.objects
        found = objects.resolve_prefix(address.birth.hex())
        return read_commit(found[0], objects.read).time if found else None

    def _add_wording(self, place: tuple[int, int, int | None, int], wording: Wording) -> None:
        loaded = load_parts(wording.parts, self._store.objects.read)
        text = "\n".join(texts_of(loaded))
        if not text.strip():
            return
        tools = " ".join(sorted({part.name for part in loaded if isinstance(part, ToolCall)}))
        found = self.base.execute(
            "INSERT INTO messages (made_by, number, ref, time, role, kind, tool) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*place, *map(self._name, (wording.role, wording.kind, tools))),
        )
        self.base.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)", (found.lastrowid, text[:MAXIMUM_TEXT])
        )

    def _name(self, name: str) -> int | None:
        """Return the number that a name has; None for no name."""
        if not name:
            return None
        if name not in self._names:
            self.base.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", (name,))
            found = self.base.execute("SELECT id FROM names WHERE name = ?", (name,)).fetchone()
            self._names[name] = int(found[0])
        return self._names[name]

    def _opened(self) -> sqlite3.Connection:
        store = self._store
        if not store.local:
            return self._begun(sqlite3.connect(":memory:", isolation_level=None))
        path = store.layout.search_files()[0]
        try:
            store.disk.make_directory(store.layout.cache_dir)
            base = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                return self._begun(base)
            except sqlite3.DatabaseError as error:
                base.close()
                if isinstance(error, sqlite3.OperationalError):
                    raise
            remove_index(store)
            return self._begun(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None))
        except (sqlite3.OperationalError, TraceError):
            # A repository that can only be read: the index lasts as long as the process.
            return self._begun(sqlite3.connect(":memory:", isolation_level=None))

    def _begun(self, base: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection whose tables are there."""
        base.execute("PRAGMA secure_delete = ON")
        wanted = f"{VERSION} {self._store.config.store_id}"
        there = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]
        if there:
            found = base.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
            if found != (wanted,):
                raise sqlite3.DatabaseError("of another version or repository")
            return base
        with base:
            base.execute("BEGIN IMMEDIATE")
            try:
                for statement in _SCHEMA.split(";\n"):
                    base.execute(statement)
            except sqlite3.OperationalError as error:
                if "fts5" in str(error):
                    raise StateError(
                        "the SQLite of this Python has no full-text search (FTS5)",
                        code=ErrorCode.NO_FULL_TEXT_SEARCH,
                    ) from error
                if "already exists" not in str(error):
                    raise
            base.execute("INSERT OR REPLACE INTO meta VALUES ('version', ?)", (wanted,))
        return base


@value
class Wording:
    """What a commit says of a message.

    Attributes:
        address: of the message.
        parts: in stored form.
        role, kind: of the message; "" of a later wording, which is an edit.
        carried: whether the message was born elsewhere, and stands here with its state.
        is_edit: whether it is a later wording.
    """

    address: Address
    parts: Sequence[Mapping[str, Any]]
    role: str = ""
    kind: str = ""
    carried: bool = False
    is_edit: bool = False


def wordings(commit: Commit, oid: bytes) -> Iterator[Wording]:
    """Yield what a commit with this id says of messages, as the rows of the index number it."""
    for address, stored in ops.added_messages(commit, oid):
        carried = ops.BORN in stored
        said = str(stored["role"]), str(stored.get("kind", ""))
        yield Wording(address, stored["parts"], *said, carried)
        for parts in stored.get("edits", ()):
            yield Wording(address, parts, carried=carried, is_edit=True)
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            (address,) = ops.targets_of(operation, oid)
            yield Wording(address, operation.fields["parts"], is_edit=True)


def branches_of(store: Store) -> dict[str, ObjectId]:
    """Return the tip of each branch."""
    return {ref: tip for ref, tip in store.refs.values().items() if ref.startswith(BRANCHES)}


def number_of(oid: bytes) -> int:
    """Return the first eight bytes of an id as the number that the index knows a commit by."""
    return int.from_bytes(oid[:8], "big", signed=True)


def digits_of(number: int) -> str:
    """Return the first 16 digits of the id that a number of the index means."""
    return number.to_bytes(8, "big", signed=True).hex()


def remove_index(store: Store) -> None:
    """Remove the index; the next search rebuilds it."""
    for path in store.layout.search_files():
        store.disk.remove(path)
