"""Reading a whole context in a process that has nothing in memory yet."""

from __future__ import annotations

from typing import Any

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.samplers import Cold, cold

STATED = 100_000
SIZES = (10_000, STATED)
LINES = "JSON Lines, orjson"
RAW = "floor: the file read at once"
STORED, PROVIDER = "Trace, stored bytes", "Trace, provider JSON"
ALONE = "the messages alone"


def memory(told: dict[str, Any]) -> float:
    """Return how far memory grew."""
    return float(told["memory"])


def hold(ground: Ground, peer: str) -> Sampler:
    """Measure the memory of the messages by themselves."""
    data = str(ground.messages.path)
    return Cold(ground, peer, "hold", measure=memory, data=data, count=ground.size)


JOBS = (
    Job(
        name="compile",
        title="Fresh process: from open to all messages in a list; imports are not counted",
        unit="s",
        sizes=SIZES,
        rounds=15,
        contestants=(
            cold("Trace, lazy", "trace", "compile_lazy"),
            cold("Trace, decoded", "trace", "compile_full"),
            cold(LINES, "jsonl", "compile"),
            cold("SQLite, plain table", "sqlite", "compile"),
            cold("SQLite, content-addressed", "sqlite-addressed", "compile"),
            cold("LMDB", "lmdb", "compile"),
            cold("git rev-list and cat-file", "git", "compile"),
            cold("pygit2", "pygit2", "compile"),
            cold("dulwich", "dulwich", "compile"),
            cold("LangGraph SqliteSaver", "langgraph", "compile"),
            cold("LangGraph SqliteSaver, delta", "langgraph-delta", "compile"),
            cold(RAW, "floor", "read"),
        ),
        rows=(
            Row("cold compile, lazy messages", "Trace, lazy", LINES, 3, 6, size=STATED),
            Row("cold compile, fully decoded", "Trace, decoded", LINES, 1, 1.5, size=STATED),
        ),
    ),
    Job(
        name="tail",
        title="Fresh process: how many messages, their tokens (counted before), the last 50 decoded",
        unit="s",
        sizes=SIZES,
        rounds=15,
        contestants=(
            cold("Trace", "trace", "tail"),
            cold(LINES, "jsonl", "tail"),
        ),
        rows=(Row("cold length, token total, last 50", "Trace", LINES, 15, 40, size=STATED),),
    ),
    Job(
        name="pipe",
        title="Fresh process: from open to the last byte of the whole context in a pipe that is emptied",
        unit="s",
        sizes=SIZES,
        rounds=15,
        contestants=(
            cold(STORED, "trace", "pipe", sink=True),
            cold(PROVIDER, "trace", "pipe_provider", sink=True),
            cold(RAW, "floor", "read"),
            cold("floor: the file read by megabytes", "floor", "read_buffered"),
            cold("floor: the file into a pipe", "floor", "pipe", sink=True),
        ),
        rows=(
            Row("stored bytes of the whole context to a pipe", STORED, RAW, 0.5, 0.8, size=STATED),
            Row("the whole context as provider JSON to a pipe", PROVIDER, RAW, 0),
        ),
    ),
    Job(
        name="memory",
        title="Fresh process: how far memory grows at most while a context is compiled and decoded",
        unit="B",
        sizes=SIZES,
        rounds=3,
        contestants=(
            cold("Trace, decoded", "trace", "compile_full", measure=memory),
            Contestant(ALONE, "trace", hold),
            cold(LINES, "jsonl", "compile", measure=memory),
            cold("SQLite, plain table", "sqlite", "compile", measure=memory),
        ),
        rows=(Row("peak memory of a cold compile", "Trace, decoded", ALONE, 1.3, at_most=True),),
    ),
)
