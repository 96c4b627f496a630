"""A process of its own: builds a store, runs one cold task and tells how long it took, or writes beside others.

    python -m benchmarks.worker build PEER FOLDER DATA COUNT SECONDS
    python -m benchmarks.worker run PEER TASK FOLDER JSON
    python -m benchmarks.worker write PEER MODE FOLDER DATA START COUNT
    python -m benchmarks.worker follow PEER FOLDER

A task is timed from the call to its return, in a process that has imported the peer and done nothing else. What it
did is told after the clock has stopped. A writer appends COUNT messages, one a transaction, for each line that it is
given, and answers with a line; one that is not empty names the file for a profile of it. A follower prints, for each
event, when it has it, by the clock that all processes share.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.ground import Limited
from benchmarks.messages import marked
from benchmarks.model import Writer
from benchmarks.peers import load
from benchmarks.profiling import profiled


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


def run(name: str, task: str, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Run one task of a peer and return seconds, work done, memory, and imported modules.

    With the option "sink" the task is given a pipe that another process empties; with "profile" a profile is written
    to that file, and the seconds are no measure.
    """
    peer = load(name)
    work = getattr(peer, task)
    profile = options.pop("profile", "")
    if profile:
        work = functools.partial(profiled, Path(profile), work)
    sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    if options.pop("sink", False) and sink.stdin:
        options["sink"] = sink.stdin.fileno()
    modules = set(sys.modules)
    before = _memory("VmRSS")
    began = time.perf_counter()
    proof = work(folder, **options)
    seconds = time.perf_counter() - began
    peak = _memory("VmHWM")
    late = sorted(set(sys.modules) - modules)
    done = proof()
    sink.communicate()
    return {
        "seconds": seconds,
        "work": done,
        "memory": peak - before,
        "late_imports": late,
    }


def write(name: str, mode: str, folder: Path, data: Path, start: int, count: int) -> None:
    """Append new messages on request until standard input ends."""
    writer: Writer = load(name).writer(folder, mode)
    with data.open("rb") as lines:
        turns = [json.loads(line) for line in islice(lines, start, start + count)]
    print("ready", flush=True)
    for number, profile in enumerate(sys.stdin):
        messages = [writer.prepare(marked(turn, f"{start}.{number}")) for turn in turns]
        if profile.strip():
            profiled(Path(profile.strip()), _append_all, writer, messages)
        else:
            _append_all(writer, messages)
        print("done", flush=True)
    writer.close()


def follow(name: str, folder: Path) -> None:
    """Print the nanoseconds of the monotonic clock at each event of a store."""
    events = load(name).follow(folder)
    print("ready", flush=True)
    for _ in events:
        print(time.monotonic_ns(), flush=True)


def _append_all(writer: Writer, messages: list[Any]) -> None:
    for message in messages:
        writer.append([message])


def _memory(field: str) -> int:
    """Return bytes of memory: held now (VmRSS), or the most that was (VmHWM); 0 where the system does not tell."""
    try:
        told = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return 0
    return int(told.partition(f"{field}:")[2].split()[0]) * 1024


def main(arguments: list[str]) -> None:
    """Run the requested subcommand."""
    verb, name, *rest = arguments
    if verb == "build":
        folder, data, count, seconds = rest
        build(name, Path(folder), Path(data), int(count), float(seconds))
    elif verb == "write":
        mode, folder, data, start, count = rest
        write(name, mode, Path(folder), Path(data), int(start), int(count))
    elif verb == "follow":
        follow(name, Path(rest[0]))
    else:
        task, folder, options = rest
        print(json.dumps(run(name, task, Path(folder), json.loads(options))))


if __name__ == "__main__":
    main(sys.argv[1:])
