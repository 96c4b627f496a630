"""Reading a whole context in a process that has nothing in memory yet."""

from __future__ import annotations

from benchmarks.job import Job, Row
from benchmarks.samplers import cold

LINES = "JSON Lines, orjson"

JOBS = (
    Job(
        name="compile",
        title="Fresh process: from open to all messages in a list; imports are not counted",
        unit="s",
        sizes=(10_000, 100_000),
        rounds=15,
        contestants=(
            cold("Trace, lazy", "trace", "compile_lazy"),
            cold("Trace, decoded", "trace", "compile_full"),
            cold(LINES, "jsonl", "compile"),
            cold("SQLite, plain table", "sqlite", "compile"),
            cold("SQLite, content-addressed", "sqlite-addressed", "compile"),
            cold("git rev-list and cat-file", "git", "compile"),
            cold("pygit2", "pygit2", "compile"),
            cold("dulwich", "dulwich", "compile"),
        ),
        rows=(
            Row("cold compile, lazy messages", "Trace, lazy", LINES, 3, 6),
            Row("cold compile, fully decoded", "Trace, decoded", LINES, 1, 1.5),
        ),
    ),
)
