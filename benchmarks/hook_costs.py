"""What the hook of an agent costs beside a bare interpreter, in one run, at sessions of several lengths.

    python -m benchmarks.hook_costs [--runs 30] [--agents 10] [--lengths 10 1000]

CPU time is that of the hook's process, as the system counts it; the worker, which does not delay the agent, is kept
from starting by its own lock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trace_store import Repo
from trace_store.capture.spool import WorkerLock

LENGTHS = (10, 1_000, 100_000)


def transcript(path: Path, messages: int) -> None:
    """Write a session of Claude Code."""
    lines = []
    for number in range(messages):
        role = ("user", "assistant")[number % 2]
        message = {"role": role, "content": f"Message {number}."}
        row = {"type": role, "uuid": f"u{number}", "sessionId": "s", "message": message}
        if number:
            row["parentUuid"] = f"u{number - 1}"
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n")


def cost(command: Sequence[str], data: bytes) -> float:
    """Return the CPU milliseconds of a process."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return 1000 * (used.ru_utime + used.ru_stime)


def together(command: Sequence[str], data: bytes, agents: int) -> list[float]:
    """Return the CPU milliseconds of each of several hooks that run at once."""
    with ThreadPoolExecutor(agents) as pool:
        return list(pool.map(lambda _: cost(command, data), range(agents)))


def main() -> None:
    """Print a row for each length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    given = parser.parse_args()
    bare = [sys.executable, "-c", "pass"]
    script = Path(sys.executable).with_name("trace")
    hook = [sys.executable, str(script), "hook", "claude-code"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        print(f"| messages | bare | hook | ratio | {given.agents} hooks at once, each |")
        print("|---:|---:|---:|---:|---:|", flush=True)
        for length in given.lengths:
            project = place / str(length)
            with Repo.init(project) as repo:
                repo.append("user", "the first message")
                path = project / "s.jsonl"
                transcript(path, length)
                repo.transcripts.import_(path, format="claude-code")
                lock = WorkerLock(repo.store.disk, repo.store.layout)
                lock.take()
                row = {"session_id": "s", "transcript_path": str(path), "cwd": str(project)}
                data = json.dumps({**row, "hook_event_name": "Stop"}).encode()
                pairs = [(cost(bare, b""), cost(hook, data)) for _ in range(given.runs)]
                first, second = (statistics.median(each) for each in zip(*pairs, strict=True))
                many = statistics.median(together(hook, data, given.agents))
                cells = (
                    f"{first:.0f} ms",
                    f"{second:.0f} ms",
                    f"{second / first:.1f}",
                    f"{many:.0f} ms",
                )
                print(f"| {length:,} | {' | '.join(cells)} |", flush=True)
                lock.release()


if __name__ == "__main__":
    main()
