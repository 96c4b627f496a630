"""Live runs under load: `python -m benchmarks.live_runs --writers 20 --rate 15 --viewers 10 --seconds 60`.

Each writer is a process with a run of its own that begins and ends so many steps a second; each viewer is a process
that watches one of the runs. Printed are the steps that viewers missed or saw twice, how long after its start a viewer
has a step, the CPU time of both without their start-up, and the cost of each call for the agent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from trace_store import Repo

WAIT_SECONDS = 2.0
"""How long writers wait before their first step, so that all processes are there."""


def write(folder: str, name: str, rate: float, seconds: float) -> dict[str, Any]:
    """Begin and end steps at a rate; return what each call cost, in seconds."""
    calls: dict[str, list[float]] = {"start": [], "progress": [], "source": [], "end": []}

    def timed(call: str, function: Callable[..., Any], *args: object) -> Any:
        began = time.perf_counter()
        result = function(*args)
        calls[call].append(time.perf_counter() - began)
        return result

    with Repo.open(folder) as repo, repo.runs.start(name, id=name) as run:
        time.sleep(WAIT_SECONDS)
        cpu, begin = time.process_time(), time.monotonic()
        count = 0
        while time.monotonic() < begin + seconds:
            step = timed("start", run.step, "tool_call", str(time.time_ns()))
            timed("progress", step.progress, "some words of progress ")
            timed("source", step.source, "a source")
            timed("end", step.complete, "done")
            count += 1
            time.sleep(max(0.0, begin + count / rate - time.monotonic()))
    medians = {call: statistics.median(times) for call, times in calls.items()}
    return {"steps": count, "cpu": time.process_time() - cpu, **medians}


def view(folder: str, name: str) -> dict[str, Any]:
    """Watch a run to its end; return what was seen, and how late, in seconds."""
    lags: list[float] = []
    seen: list[tuple[str, int]] = []
    with Repo.open(folder) as repo:
        while not any(each.id == name for each in repo.runs.list()):
            time.sleep(0.05)
        cpu = time.process_time()
        for event in repo.runs.watch(name, timeout=60):
            if event.value is not None:
                seen.append((event.kind, event.step))
                if event.kind == "started":
                    lags.append((time.time_ns() - int(event.value.title)) / 1e9)
    wanted = [(kind, number) for number in range(1, len(lags) + 1) for kind in ("started", "ended")]
    return {
        "lags": lags,
        "in_order": seen == wanted,
        "steps": len(lags),
        "cpu": time.process_time() - cpu,
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--writers", type=int, default=20)
    parser.add_argument("--viewers", type=int, default=10)
    parser.add_argument("--rate", type=float, default=15, help="steps a second of each writer")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--as-writer", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--as-viewer", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_writer:
        folder, name = given.as_writer
        print(json.dumps(write(folder, name, given.rate, given.seconds)))
        return
    if given.as_viewer:
        print(json.dumps(view(*given.as_viewer)))
        return
    with tempfile.TemporaryDirectory() as folder:
        Repo.init(folder).close()
        report(folder, given)


def report(folder: str, given: argparse.Namespace) -> None:
    """Run writers and viewers, and print what they measured."""
    began = time.monotonic()
    options = ["--rate", str(given.rate), "--seconds", str(given.seconds)]
    names = [f"run-{number}" for number in range(given.writers)]
    writers = [started("--as-writer", folder, name, *options) for name in names]
    watched = [names[number % len(names)] for number in range(given.viewers)]
    viewers = [started("--as-viewer", folder, name) for name in watched]
    wrote = dict(zip(names, map(result, writers), strict=True))
    saw = [result(each) for each in viewers]
    wall = time.monotonic() - began
    steps = sum(each["steps"] for each in wrote.values())
    lost = sum(
        wrote[name]["steps"] - each["steps"] for name, each in zip(watched, saw, strict=True)
    )
    lags = sorted(lag for each in saw for lag in each["lags"])
    print(f"{steps} steps in {wall:.0f} s, {steps / given.seconds:.0f} a second")
    print(f"missed: {lost}; all in order: {all(each['in_order'] for each in saw)}")
    if lags:
        late = lags[int(len(lags) * 0.99)]
        print(f"lag: median {1000 * statistics.median(lags):.0f} ms, 99th {1000 * late:.0f} ms")
    for call in ("start", "progress", "source", "end"):
        costs = [each[call] for each in wrote.values()]
        print(f"{call}: median {1e6 * statistics.median(costs):,.0f} µs")
    for what, each in (("writers", wrote.values()), ("viewers", saw)):
        cpu = sum(one["cpu"] for one in each)
        print(f"CPU of {what}: {cpu:.1f} s, {1000 * cpu / max(1, steps):.2f} ms a step")
    with Repo.open(folder) as repo:
        stored = sum(each.state.step_count for each in repo.runs.list())
    print(f"stored: {stored} of {steps}")


def started(kind: str, *words: str) -> subprocess.Popen[str]:
    """Start this module as a writer or a viewer."""
    command = [sys.executable, "-m", "benchmarks.live_runs"]
    folder, name, *options = words
    return subprocess.Popen(
        [*command, kind, folder, name, *options], stdout=subprocess.PIPE, text=True
    )


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a process, and return what it printed."""
    out, _ = process.communicate()
    found: dict[str, Any] = json.loads(out)
    return found


if __name__ == "__main__":
    main()
