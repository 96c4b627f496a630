"""A process of its own: builds a store, or runs one cold task and tells how long it took.

    python -m benchmarks.worker build PEER FOLDER DATA COUNT SECONDS
    python -m benchmarks.worker run PEER TASK FOLDER JSON

A task is timed from the call to its return, in a process that has imported the peer and done nothing else. What it
did is told after the clock has stopped.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import islice
from pathlib import Path

from benchmarks.ground import Limited
from benchmarks.peers import load


def build(name: str, folder: Path, data: Path, count: int, seconds: float) -> None:
    """Build a peer's store in `folder/store` and say in `folder/built.json` how that went."""
    began = time.perf_counter()
    with data.open("rb") as lines:
        turns = Limited((json.loads(line) for line in islice(lines, count)), folder, seconds)
        load(name).build(folder / "store", turns)
    told = {
        "messages": turns.count,
        "seconds": round(time.perf_counter() - began, 3),
        "stopped": turns.stopped,
    }
    (folder / "built.json").write_text(json.dumps(told), encoding="utf-8")


def run(name: str, task: str, folder: Path, options: dict[str, object]) -> dict[str, object]:
    """Run one task of a peer and return seconds, messages, amount, memory and modules imported meanwhile."""
    peer = load(name)
    work = getattr(peer, task)
    modules = set(sys.modules)
    before = _peak_bytes()
    began = time.perf_counter()
    proof = work(folder, **options)
    seconds = time.perf_counter() - began
    peak = _peak_bytes()
    late = sorted(set(sys.modules) - modules)
    done = proof()
    return {
        "seconds": seconds,
        "messages": done.messages,
        "amount": done.amount,
        "peak_before": before,
        "peak": peak,
        "late_imports": late,
    }


def _peak_bytes() -> int:
    """Return the most memory that this process has held so far."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    verb, name, *rest = arguments
    if verb == "build":
        folder, data, count, seconds = rest
        build(name, Path(folder), Path(data), int(count), float(seconds))
    else:
        task, folder, options = rest
        print(json.dumps(run(name, task, Path(folder), json.loads(options))))


if __name__ == "__main__":
    main(sys.argv[1:])
