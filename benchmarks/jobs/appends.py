"""Appending one message, or a batch, to a store that is open."""

from __future__ import annotations

from benchmarks.job import Job, Row
from benchmarks.samplers import appending

SIZES = (10_000, 100_000)
BURST = 20
ADDRESSED = "SQLite NORMAL, content-addressed"

JOBS = (
    Job(
        name="append",
        title="One message into an open store, which survives power loss when the call returns",
        unit="s",
        sizes=SIZES,
        rounds=400,
        contestants=(
            appending("Trace", "trace", "durable"),
            appending("SQLite FULL, content-addressed", "sqlite-addressed", "FULL"),
            appending("SQLite FULL, plain table", "sqlite", "FULL"),
            appending("LMDB, sync", "lmdb", "sync"),
            appending("JSON Lines, fdatasync", "jsonl", "fdatasync"),
            appending("floor: bytes and one flush", "floor", "fdatasync"),
            appending("floor: one byte and one flush", "floor", "flush"),
            appending("pygit2, fsync", "pygit2", "fsync"),
            appending("git plumbing, fsync", "git", "all"),
            appending("LangGraph SqliteSaver", "langgraph", "FULL", most=20),
            appending("LangGraph SqliteSaver, delta", "langgraph-delta", "FULL", most=200),
        ),
        rows=(
            Row("durable append", "Trace", "SQLite FULL, content-addressed", 1.5, 2.4),
            Row("durable append", "Trace", "SQLite FULL, plain table", 1.1, 1.3),
            Row("durable append", "Trace", "pygit2, fsync", 8),
            Row("durable append", "Trace", "git plumbing, fsync", 40),
        ),
    ),
    Job(
        name="append-fast",
        title="One message into an open store, which survives the end of the process",
        unit="s",
        sizes=SIZES,
        rounds=1000,
        contestants=(
            appending("Trace", "trace", "fast"),
            appending(ADDRESSED, "sqlite-addressed", "NORMAL"),
            appending("SQLite NORMAL, plain table", "sqlite", "NORMAL"),
            appending("LMDB, no sync", "lmdb", "nosync"),
            appending("JSON Lines, write", "jsonl", "write"),
            appending("floor: bytes", "floor", "write"),
            appending("pygit2", "pygit2", "none"),
            appending("dulwich", "dulwich", "none"),
            appending("git plumbing", "git", "none"),
        ),
        rows=(Row("non-durable append", "Trace", ADDRESSED, 4, 8),),
    ),
    Job(
        name="append-burst",
        title=f"The same, {BURST} messages one after another, each a transaction, for each message",
        unit="s",
        sizes=SIZES,
        rounds=90,
        contestants=(
            appending("Trace", "trace", "fast", burst=BURST),
            appending(ADDRESSED, "sqlite-addressed", "NORMAL", burst=BURST),
            appending("SQLite NORMAL, plain table", "sqlite", "NORMAL", burst=BURST),
            appending("LMDB, no sync", "lmdb", "nosync", burst=BURST),
            appending("JSON Lines, write", "jsonl", "write", burst=BURST),
            appending("floor: bytes", "floor", "write", burst=BURST),
        ),
        rows=(Row("non-durable append, one after another", "Trace", ADDRESSED, 4, 8),),
    ),
    Job(
        name="append-batch",
        title="20 messages in one durable transaction, for each message",
        unit="s",
        sizes=SIZES,
        rounds=100,
        contestants=(
            appending("Trace, 20 a sync", "trace", "durable", batch=20),
            appending("SQLite FULL, a row a transaction", "sqlite", "FULL"),
            appending("SQLite FULL, 20 a transaction", "sqlite", "FULL", batch=20),
            appending("LMDB, 20 a sync", "lmdb", "sync", batch=20),
            appending("JSON Lines, 20 a fdatasync", "jsonl", "fdatasync", batch=20),
            appending("floor: bytes of 20 and one flush", "floor", "fdatasync", batch=20),
        ),
        rows=(
            Row("durable, 20 a batch", "Trace, 20 a sync", "SQLite FULL, a row a transaction", 8),
        ),
    ),
)
