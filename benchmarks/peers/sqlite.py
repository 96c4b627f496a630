"""SQLite in WAL mode: a plain table, and a schema that keeps history as Trace does.

Messages are JSON by orjson where it is installed, else by the standard library, which is slower. Both schemas name
content by blake3, as Trace does; reads check the hash.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from blake3 import blake3

from benchmarks.compact import PACKAGE, dumps, loads
from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Work, write_ids

NAME = "messages.db"
SESSION = "main"
PLAIN = """
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL,
    json BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE (session, seq)
)
"""
ADDRESSED = """
CREATE TABLE blobs (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (
    hash BLOB PRIMARY KEY, parent BLOB, message BLOB NOT NULL, role TEXT NOT NULL, time INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE refs (name TEXT PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;
"""

CHAIN = """
WITH RECURSIVE chain (hash, parent, message, depth) AS (
    SELECT c.hash, c.parent, c.message, 0 FROM refs r JOIN commits c ON c.hash = r.hash WHERE r.name = ?
    UNION ALL
    SELECT c.hash, c.parent, c.message, depth + 1 FROM chain JOIN commits c ON c.hash = chain.parent
)
"""


def connect(folder: Path, mode: str) -> sqlite3.Connection:
    """Open in WAL mode; `mode` is NORMAL (a commit may be lost with power) or FULL (it may not)."""
    database = sqlite3.connect(folder / NAME, isolation_level=None, timeout=60)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {mode}")
    return database


class Plain:
    """One table, a row a message, in order."""

    store = "sqlite-plain"
    packages = ("sqlite", PACKAGE)
    schema = PLAIN

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Insert all in transactions of 1,000 rows."""
        database = connect(folder, "OFF")
        database.executescript(self.schema)
        writer = self._writer(database)
        held = []
        for turn in turns:
            held.append(turn)
            if len(held) == 1000:
                writer.append(held)
                held.clear()
        if held:
            writer.append(held)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()

    def writer(self, folder: Path, mode: str) -> PlainWriter:
        """Open for appending; `mode` is "NORMAL" or "FULL"."""
        return self._writer(connect(folder, mode))

    def compile(self, folder: Path) -> Proof:
        """Return all messages as dictionaries, each hash checked."""
        rows = connect(folder, "NORMAL").execute(
            "SELECT json, hash FROM messages WHERE session = ? ORDER BY seq", (SESSION,)
        )
        found = [loads(verified(data, digest)) for data, digest in rows]
        return lambda: Work(len(found), characters(found))

    def _writer(self, database: sqlite3.Connection) -> PlainWriter:
        return PlainWriter(database)


class PlainWriter:
    """Appends rows; one transaction a call."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        run = self.database.execute
        run("BEGIN IMMEDIATE")
        [last] = run("SELECT max(seq) FROM messages WHERE session = ?", (SESSION,)).fetchone()
        number = -1 if last is None else last
        for each in messages:
            data = dumps(each)
            number += 1
            run(
                "INSERT INTO messages (session, seq, role, json, hash) VALUES (?, ?, ?, ?, ?)",
                (SESSION, number, each["role"], data, blake3(data).digest()),
            )
        run("COMMIT")

    def count(self) -> int:
        [found] = self.database.execute("SELECT count(*) FROM messages").fetchone()
        return int(found)

    def close(self) -> None:
        self.database.close()


class Addressed(Plain):
    """Blobs by hash, commits with parents by hash, refs."""

    store = "sqlite-addressed"
    schema = ADDRESSED

    def compile(self, folder: Path) -> Proof:
        """Return all messages of the branch as dictionaries, each hash checked."""
        rows = connect(folder, "NORMAL").execute(
            CHAIN
            + "SELECT b.data, b.hash FROM chain JOIN blobs b ON b.hash = chain.message ORDER BY depth DESC",
            (SESSION,),
        )
        found = [loads(verified(data, digest)) for data, digest in rows]
        return lambda: Work(len(found), characters(found))

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Insert all in transactions of 1,000 messages, and write down the hashes of the blobs."""
        super().build(folder, turns)
        rows = connect(folder, "NORMAL").execute(
            CHAIN + "SELECT message FROM chain ORDER BY depth DESC", (SESSION,)
        )
        write_ids(folder, [digest.hex() for (digest,) in rows])

    def read(self, folder: Path, ids: str) -> Proof:
        """Return the messages with the ids in a file, each hash checked."""
        run = connect(folder, "NORMAL").execute
        found = []
        for each in map(bytes.fromhex, Path(ids).read_text("utf-8").split()):
            [data] = run("SELECT data FROM blobs WHERE hash = ?", (each,)).fetchone()
            found.append(verified(data, each))
        return lambda: Work(len(found), characters(map(loads, found)))

    def verify(self, folder: Path) -> Proof:
        """Check the structure of the file, every hash, and that every parent and blob is there."""
        run = connect(folder, "NORMAL").execute
        if run("PRAGMA integrity_check").fetchone() != ("ok",):
            raise ValueError("the database is damaged")
        for digest, data in run("SELECT hash, data FROM blobs"):
            verified(data, digest)
        commits = 0
        for digest, parent, blob, made in run("SELECT hash, parent, message, time FROM commits"):
            verified(commit_of(parent, blob, made), digest)
            commits += 1
        [lost] = run(
            "SELECT count(*) FROM commits c LEFT JOIN commits p ON p.hash = c.parent"
            " LEFT JOIN blobs b ON b.hash = c.message"
            " WHERE b.hash IS NULL OR (c.parent IS NOT NULL AND p.hash IS NULL)"
        ).fetchone()
        if lost:
            raise ValueError(f"{lost} commits name what is not there")
        return lambda: Work(commits, 0)

    def _writer(self, database: sqlite3.Connection) -> AddressedWriter:
        return AddressedWriter(database)


class AddressedWriter(PlainWriter):
    """Appends a blob and a commit for each message and moves the ref; one transaction a call."""

    def append(self, messages: list[Turn]) -> None:
        run = self.database.execute
        run("BEGIN IMMEDIATE")
        held = run("SELECT hash FROM refs WHERE name = ?", (SESSION,)).fetchone()
        parent = held[0] if held else None
        for each in messages:
            data = dumps(each)
            blob = blake3(data).digest()
            now = time.time_ns()
            commit = blake3(commit_of(parent, blob, now)).digest()
            run("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (blob, data))
            run(
                "INSERT INTO commits VALUES (?, ?, ?, ?, ?)",
                (commit, parent, blob, each["role"], now),
            )
            parent = commit
        run("INSERT OR REPLACE INTO refs VALUES (?, ?)", (SESSION, parent))
        run("COMMIT")

    def count(self) -> int:
        [found] = self.database.execute("SELECT count(*) FROM commits").fetchone()
        return int(found)


def commit_of(parent: bytes | None, blob: bytes, made: int) -> bytes:
    """Return the bytes of a commit, which its hash is of."""
    return b"%b%b%d" % (parent or b"", blob, made)


def verified(data: bytes, digest: bytes) -> bytes:
    """Return bytes that have this hash."""
    if blake3(data).digest() != digest:
        raise ValueError("a row does not have its hash")
    return data
