"""Reading history: the log, a message by its id, and verification."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.samplers import Cold, cold

STATED = 100_000
SIZES = (10_000, STATED)
GIT = "git log"
BATCH = "git cat-file --batch"
LARGE, SMALL = "Trace, frames of 256 KiB", "Trace, frames of 32 KiB"
READS = 10_000


def reading(name: str, peer: str) -> Contestant:
    """Return a contestant that reads messages by id; the same messages for all."""

    def start(ground: Ground, peer: str) -> Sampler:
        listed = ground.store(peer).ids
        known = listed.read_text("ascii").split()
        chosen = Random(ground.seed).choices(known, k=READS)
        wanted = listed.with_name(f"chosen-{ground.seed}.txt")
        wanted.write_text("".join(f"{each}\n" for each in chosen), "ascii")
        return _PerMessage(ground, peer, wanted)

    return Contestant(name, peer, start)


class _PerMessage(Cold):
    """Reads the messages whose ids are in a file; a sample is for one of them."""

    def __init__(self, ground: Ground, peer: str, wanted: Path) -> None:
        super().__init__(
            ground, peer, "read", ids=str(wanted), measure=lambda told: told["seconds"] / READS
        )


JOBS = (
    Job(
        name="log",
        title="Fresh process: id, author and time of every commit",
        unit="s",
        sizes=SIZES,
        rounds=15,
        contestants=(
            cold("Trace", "trace", "log"),
            cold(GIT, "git", "log"),
            cold("pygit2", "pygit2", "log"),
            cold("dulwich", "dulwich", "log"),
        ),
        rows=(Row("whole log", "Trace", GIT, 10, 25, size=STATED),),
    ),
    Job(
        name="log-50",
        title="Fresh process: id, author and time of the last 50 commits",
        unit="s",
        sizes=SIZES,
        rounds=30,
        contestants=(
            cold("Trace", "trace", "log", limit=50),
            cold(GIT, "git", "log", limit=50),
            cold("pygit2", "pygit2", "log", limit=50),
            cold("dulwich", "dulwich", "log", limit=50),
        ),
        rows=(Row("log, last 50", "Trace", GIT, 10, 25, size=STATED),),
    ),
    Job(
        name="read",
        title=f"Fresh process: {READS:,} messages by id in random order, for each",
        unit="s",
        sizes=SIZES,
        rounds=10,
        contestants=(
            reading(LARGE, "trace"),
            reading(SMALL, "trace-32k"),
            reading(BATCH, "git"),
            reading("pygit2", "pygit2"),
            reading("dulwich", "dulwich"),
            reading("SQLite, content-addressed", "sqlite-addressed"),
            reading("LMDB", "lmdb"),
        ),
        rows=(
            Row("random read by id, frames of 256 KiB", LARGE, BATCH, 0.2, 0.5),
            Row("random read by id, frames of 32 KiB", SMALL, BATCH, 1, 2),
        ),
    ),
    Job(
        name="verify",
        title="Fresh process: every hash computed again, every link followed",
        unit="s",
        sizes=SIZES,
        rounds=5,
        contestants=(
            cold("Trace fsck", "trace", "verify"),
            cold("git fsck", "git", "verify"),
            cold("SQLite integrity check and hashes", "sqlite-addressed", "verify"),
        ),
        rows=(Row("verify everything", "Trace fsck", "git fsck", 5, 10),),
    ),
)
