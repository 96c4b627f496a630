"""Full-text indexes: SQLite files under `cache/`, of every message of every branch and record, and of trajectories.

    names      branches, roles, kinds and tools, which the other tables refer to by number
    commits    the indexed commits
    tips       the tips of each branch when it was indexed, and whether the branch only ever grew
    messages   one row for each version in a commit: commit and number, branch, time, role, kind, tools
    texts      hashes of the texts of records: of messages, and of hidden values
    words      FTS5 (sqlite.org/fts5.html) over these, without the text, which stays in the objects

The index is derived data. A search adds new commits and reads each of them once. A damaged index, or one of another
version or repository, is rebuilt. Row numbers follow time, so newest-first order is free. A commit is stored as the
first eight bytes of its id, since whole ids would take half of a short row.

A carried message has rows in each commit that carries it, since its birth commit may be on no branch any more; `query`
shows it once. A merge has no rows for messages that it carries, because the merged history has them.

A hidden value of a record has a row with a negative number in the commit that sets it. A text in it that an earlier
hidden value has is not indexed again, and one that a message says, too, is no hit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, digest
from trace_store.context.snippet import texts_of
from trace_store.contracts.ref_names import BRANCHES, RECORDS, TRAJECTORIES, joins_by_time
from trace_store.errors import ErrorCode, FormatError, NotFoundError, StateError, TraceError
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import load_parts
from trace_store.objects.parts import ToolCall
from trace_store.search.hidden import hidden_texts, texts_said
from trace_store.search.segments import segmented
from trace_store.store.store import Store

VERSION = 8
BATCH_COMMITS = 2_000
"""Number of commits in a transaction; an interrupted build continues after the last one."""
MAXIMUM_TEXT = 1 << 20
"""Maximum number of indexed characters of a message."""
_WAIT_SECONDS = 30
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE commits (id INTEGER PRIMARY KEY);
CREATE TABLE tips (ref TEXT PRIMARY KEY, tip BLOB, grew INTEGER) WITHOUT ROWID;
CREATE TABLE forks (ref TEXT, oid BLOB, PRIMARY KEY (ref, oid)) WITHOUT ROWID;
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, made_by INTEGER, number INTEGER, ref INTEGER, time INTEGER, role INTEGER, kind INTEGER,
  tool INTEGER
);
CREATE TABLE texts (hash INTEGER PRIMARY KEY, said INTEGER);
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', tokenize="STEM unicode61 remove_diacritics 2 tokenchars '_'"
);
"""

_STEMS = {BRANCHES: "", TRAJECTORIES: "porter "}
"""Trajectories are asked for what is similar, so their words are reduced to stems: "caching" finds "cache"."""
_NAMES = {BRANCHES: "", TRAJECTORIES: "trajectories"}
"""What the files of the indexes are named after, by the namespace of refs."""

Progress = Callable[[int, int], None]
Tips = tuple[ObjectId, ...]


class SearchIndex:
    """The open index of the branches of one repository, or of its trajectories; a context manager.

    Attributes:
        namespace: `BRANCHES` or `TRAJECTORIES`; below, each of its refs is called a branch.
        branches: the tips of each branch at the last `catch_up`, several if clones have diverged.
        base: the database.
    """

    def __init__(self, store: Store, namespace: str = BRANCHES) -> None:
        """Open the index, and create it if necessary.

        Raises:
            StateError: SQLite lacks FTS5.
        """
        self._store = store
        self._names: dict[str, int] = {}
        self.namespace = namespace
        self.branches: dict[str, Tips] = {}
        self.base = self._open()

    def __enter__(self) -> SearchIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.base.close()

    def catch_up(self, progress: Progress | None = None) -> int:
        """Index new commits, and return their number.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
        """
        base = self.base
        tips = self.branches = tips_in(self._store, self.namespace)
        state = _hash_of(tips)
        if self._meta("refs") == state:
            return 0  # with many refs, quicker than a look at each
        before = {ref: (known, grew) for ref, known, grew in base.execute("SELECT * FROM tips")}
        moved = [ref for ref in tips if ref not in before or before[ref][0] != b"".join(tips[ref])]
        deleted = [ref for ref in before if ref not in tips and before[ref][1]]
        rows = [(ref, before[ref][0], False) for ref in deleted]
        forks: list[tuple[str, bytes]] = []
        count = 0
        # A table rather than a list, because the first time it holds all commits.
        base.execute(
            "CREATE TEMP TABLE fresh (at INTEGER PRIMARY KEY, id INTEGER UNIQUE, oid BLOB, ref TEXT, time INTEGER)"
        )
        with base:
            base.execute("BEGIN")
            for ref in sorted(moved):
                indexed: set[bytes] = set()
                for oid, commit in self._walk(tips[ref], indexed):
                    row = (count, number_of(oid), bytes(oid), ref, commit.time)
                    base.execute("INSERT INTO fresh VALUES (?, ?, ?, ?, ?)", row)
                    count += 1
                    if progress is not None and not count % BATCH_COMMITS:
                        progress(0, count)
                old, grew = before.get(ref, (b"", True))
                size = len(tips[ref][0])
                old_tips = {old[at : at + size] for at in range(0, len(old), size)}
                grew = grew and old_tips <= indexed  # it descends from its old tips
                forks += [(ref, bytes(oid)) for oid in indexed - old_tips]
                rows.append((ref, b"".join(tips[ref]), grew))
        # The walk yields children first; in reverse order of `at`, parents come first among commits of the same time.
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
            base.executemany("INSERT OR REPLACE INTO tips VALUES (?, ?, ?)", rows)
            base.executemany("INSERT OR IGNORE INTO forks VALUES (?, ?)", forks)
            base.execute("INSERT OR REPLACE INTO meta VALUES ('refs', ?)", (state,))
        total = base.execute("SELECT count(*) FROM commits").fetchone()[0]
        if count > BATCH_COMMITS and 2 * count > total:
            self._compact()
        return count

    def _compact(self) -> None:
        """Merge the segments of the full-text index, which saves about a quarter of the file."""
        try:
            self.base.execute("INSERT INTO words (words) VALUES ('optimize')")
            self.base.execute("VACUUM")
        except sqlite3.OperationalError:
            pass  # another process is reading, or the disk is full

    def _walk(self, tips: Tips, indexed: set[bytes]) -> Iterator[tuple[ObjectId, Commit]]:
        """Yield the unindexed commits of tips, children first; add the indexed ones that it meets to `indexed`."""
        waiting = [*tips]
        while waiting:
            oid = waiting.pop()
            if self._is_in("commits", oid) or self._is_in("fresh", oid):
                indexed.add(oid)
                continue
            commit = read_commit(oid, self._store.objects.read)
            yield oid, commit
            waiting += commit.parents

    def only_grew(self, branch: str) -> bool:
        """Return True if a branch only ever grew, so that it still contains every commit indexed through it."""
        found = self.base.execute("SELECT grew FROM tips WHERE ref = ?", (branch,)).fetchone()
        return found is not None and bool(found[0])

    def forks(self, branches: Iterable[str]) -> dict[str, list[ObjectId]]:
        """Return where branches join others that were indexed first, and share all commits from there on."""
        found: dict[str, list[ObjectId]] = {}
        for ref, oid in self.base.execute("SELECT ref, oid FROM forks"):
            found.setdefault(ref, []).append(ObjectId(oid))
        return {ref: found[ref] for ref in branches if ref in found}

    def count_texts(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of texts with each word."""
        if _STEMS[self.namespace]:
            count = "SELECT count(*) FROM words WHERE words MATCH ?"
            return {word: self.base.execute(count, (f'"{word}"',)).fetchone()[0] for word in words}
        self.base.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.counts USING fts5vocab(main, words, row)"
        )
        counts = {}
        for word in words:
            found = self.base.execute("SELECT doc FROM counts WHERE term = ?", (word,)).fetchone()
            counts[word] = found[0] if found else 0
        return counts

    def _meta(self, key: str) -> str | None:
        found = self.base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def _is_in(self, table: str, oid: bytes) -> bool:
        found = self.base.execute(f"SELECT 1 FROM {table} WHERE id = ?", (number_of(oid),))
        return found.fetchone() is not None

    def _add(self, oid: ObjectId, ref: str) -> None:
        if self._is_in("commits", oid):
            return  # another process has indexed it
        self.base.execute("INSERT INTO commits VALUES (?)", (number_of(oid),))
        commit = read_commit(oid, self._store.objects.read)
        is_merge = len(commit.parents) > 1
        for number, version in enumerate(indexed_versions(commit, oid)):
            if not (is_merge and version.carried):
                time = self._birth_time(version.address) if version.carried else None
                place = (number_of(oid), number, self._name(ref), time or commit.time)
                self._add_version(place, version, of_record=ref.startswith(RECORDS))
        if ref.startswith(RECORDS):
            self._add_hidden(oid, commit, ref)

    def _add_hidden(self, oid: ObjectId, commit: Commit, ref: str) -> None:
        """Index the texts of hidden values that no value before has; a value that cannot be read has none."""
        try:
            found = [*hidden_texts(commit, self._store.objects.read)]
        except (NotFoundError, FormatError):
            return  # fsck reports damage
        add = "INSERT OR IGNORE INTO texts VALUES (?, 0)"
        for number, _, texts in found:
            new = [each for each in texts if self.base.execute(add, (text_hash(each),)).rowcount]
            place = (number_of(oid), -1 - number, self._name(ref), commit.time)
            self._add_text(place, "\n".join(new), ("", "", ""))

    def is_said(self, text: str) -> bool:
        """Return True if a message of a record says a text."""
        query = "SELECT said FROM texts WHERE hash = ?"
        found = self.base.execute(query, (text_hash(text),)).fetchone()
        return found is not None and bool(found[0])

    def _birth_time(self, address: Address) -> int | None:
        """Return the time of a message; None if its birth commit is missing."""
        objects = self._store.objects
        found = objects.resolve_prefix(address.birth.hex())
        return read_commit(found[0], objects.read).time if found else None

    def _add_version(
        self, place: tuple[int, int, int | None, int], version: IndexedVersion, *, of_record: bool
    ) -> None:
        loaded = load_parts(version.parts, self._store.objects.read)
        if of_record:
            rows = [(text_hash(each),) for each in texts_said(loaded)]
            self.base.executemany("INSERT OR REPLACE INTO texts VALUES (?, 1)", rows)
        tools = " ".join(sorted({part.name for part in loaded if isinstance(part, ToolCall)}))
        self._add_text(place, "\n".join(texts_of(loaded)), (version.role, version.kind, tools))

    def _add_text(
        self, place: tuple[int, int, int | None, int], text: str, names: tuple[str, str, str]
    ) -> None:
        # SQLite takes no lone surrogates, which the JSON of an agent may hold.
        text = text.encode("utf-8", "replace").decode()
        if not text.strip():
            return
        found = self.base.execute(
            "INSERT INTO messages (made_by, number, ref, time, role, kind, tool) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*place, *map(self._name, names)),
        )
        self.base.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            (found.lastrowid, segmented(text[:MAXIMUM_TEXT])),
        )

    def _name(self, name: str) -> int | None:
        """Return the number of a name; None for an empty one."""
        if not name:
            return None
        if name not in self._names:
            self.base.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", (name,))
            found = self.base.execute("SELECT id FROM names WHERE name = ?", (name,)).fetchone()
            self._names[name] = int(found[0])
        return self._names[name]

    def _open(self) -> sqlite3.Connection:
        store = self._store
        if not store.local:
            return self._prepare(sqlite3.connect(":memory:", isolation_level=None))
        path = store.layout.search_files(_NAMES[self.namespace])[0]
        try:
            store.disk.make_directory(store.layout.cache_dir)
            base = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                return self._prepare(base)
            except sqlite3.DatabaseError as error:
                base.close()
                if isinstance(error, sqlite3.OperationalError):
                    raise
            remove_index(store, self.namespace)
            return self._prepare(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None))
        except (sqlite3.OperationalError, TraceError):
            # A read-only repository: use an index in memory.
            return self._prepare(sqlite3.connect(":memory:", isolation_level=None))

    def _prepare(self, base: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection with the tables created."""
        base.execute("PRAGMA secure_delete = ON")
        wanted = f"{VERSION} {self._store.config.store_id}"
        exists = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[
            0
        ]
        if exists:
            found = base.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
            if found != (wanted,):
                raise sqlite3.DatabaseError("of another version or repository")
            return base
        with base:
            base.execute("BEGIN IMMEDIATE")
            try:
                for statement in _SCHEMA.split(";\n"):
                    base.execute(statement.replace("STEM ", _STEMS[self.namespace]))
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
class IndexedVersion:
    """A version of a message in a commit.

    Attributes:
        address: the message's address.
        parts: in stored form.
        role, kind: of the message; "" for an edit.
        carried: whether the message was born in another commit.
        is_edit: whether it is a later version.
    """

    address: Address
    parts: Sequence[Mapping[str, Any]]
    role: str = ""
    kind: str = ""
    carried: bool = False
    is_edit: bool = False


def indexed_versions(commit: Commit, oid: bytes) -> Iterator[IndexedVersion]:
    """Yield the versions of messages in a commit, in the order in which the index numbers them."""
    for address, stored in ops.added_messages(commit, oid):
        carried = ops.BORN in stored
        said = str(stored["role"]), str(stored.get("kind", ""))
        yield IndexedVersion(address, stored["parts"], *said, carried)
        for parts in stored.get("edits", ()):
            yield IndexedVersion(address, parts, carried=carried, is_edit=True)
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            (address,) = ops.targets_of(operation, oid)
            yield IndexedVersion(address, operation.fields["parts"], is_edit=True)


def tips_in(store: Store, namespace: str) -> dict[str, Tips]:
    """Return the tips of each ref in a namespace, records with the branches; of a diverged one only its own."""
    refs = store.refs
    places = (BRANCHES, RECORDS) if namespace == BRANCHES else (namespace,)
    tips: dict[str, Tips] = {
        ref: (tip,) for ref, tip in refs.values().items() if ref.startswith(places)
    }
    if joins_by_time(namespace):
        tips |= {ref: refs.tips(ref) for ref in refs.diverged() if ref in tips}
    return tips


def _hash_of(tips: Mapping[str, Tips]) -> str:
    """Return the hash of refs with their tips."""
    lines = (b"%s %s" % (ref.encode(), b"".join(tips[ref])) for ref in sorted(tips))
    return digest(b"\n".join(lines)).hex()


def number_of(oid: bytes) -> int:
    """Return the first eight bytes of an id as a signed integer, the commit's number."""
    return int.from_bytes(oid[:8], "big", signed=True)


def text_hash(text: str) -> int:
    """Return the hash of a text in the index."""
    return number_of(digest(text.encode("utf-8", "surrogatepass")))


def digits_of(number: int) -> str:
    """Return the 16 hex digits of a commit's number in the index."""
    return number.to_bytes(8, "big", signed=True).hex()


def remove_index(store: Store, namespace: str) -> None:
    """Remove an index; the next search rebuilds it."""
    for path in store.layout.search_files(_NAMES[namespace]):
        store.disk.remove(path)
