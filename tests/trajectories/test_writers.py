"""Twenty processes record in one trajectory, and some are killed: nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.examples import FULL
from trace_store import Repo
from trace_store.maintenance.fsck import fsck

ROOT = Path(__file__).resolve().parents[2]
WRITERS = 20
SECONDS = 30.0 if FULL else 3.0
WRITER = """
import sys
from trace_store import Repo
name = sys.argv[1]
with Repo.open(".", author=name) as repo:
    print("ready", flush=True)
    for number in range(10_000):
        made = repo.trajectories.decide("Which?", f"{name} {number}", agent=name)
        print(made.event.id.hex, flush=True)
"""


def started(output: Path, name: str) -> subprocess.Popen[bytes]:
    with output.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, name],
            cwd=output.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=out,
        )


def test_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    with Repo.init(tmp_path, author="ada") as repo:
        repo.trajectories.start("Sign in")
    outputs = [tmp_path / f"{number}.out" for number in range(WRITERS)]
    writers = [started(path, f"agent-{number}") for number, path in enumerate(outputs)]
    while any(not path.read_text() for path in outputs):
        assert all(writer.poll() is None for writer in writers)
        time.sleep(0.05)
    for writer in writers:
        time.sleep(SECONDS / WRITERS)
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        writer.wait()
    acknowledged = [line for path in outputs for line in path.read_text().splitlines()[1:]]
    with Repo.open(tmp_path, author="ada") as repo:
        whole = repo.trajectories.read()
        recorded = [event.id.hex for event in whole.decisions]
        assert set(acknowledged) <= set(recorded)
        assert len(recorded) == len(set(recorded)) == whole.state.count("decision")
        for number in range(WRITERS):  # each agent's decisions stay in their order
            said = [e.content for e in whole.decisions if e.agent == f"agent-{number}"]
            assert said == [f"agent-{number} {count}" for count in range(len(said))]
        assert len(acknowledged) > WRITERS
        assert repo.trajectories.record("note", "next").state.count("note") == 1
        assert fsck(repo.store) == []
