"""An import that is interrupted, killed, or finds the disk full: nothing is lost, and the next one completes it.

The suite tries a few calls that change the disk; with TRACE_TEST_FULL=1, fifty of each kind, also with workers.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.importers.support.transcripts import Transcript, call, text
from tests.reliability.test_faults_command_line import REFUSED, TOLERATED, Failing, tips
from tests.reliability.test_full_disk import FullDisk
from tests.support.command_line import Run, Trace
from tests.support.examples import FULL
from trace_cli.main import main
from trace_store import Environment, Repo
from trace_store.base.oid import digest
from trace_store.disk import system_calls, worker_pool
from trace_store.importers import import_ahead
from trace_store.maintenance import consolidate, schedule

PLACES = 50 if FULL else 6
SESSIONS = 6
INTERRUPTED, KILLED = 130, 9
KILL = pytest.param("kill", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"))


class Interrupt(Failing):
    """Ctrl-C at the n-th call."""

    def fail(self, target: Any, other: str = "") -> None:
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt


class Kill(Failing):
    """The process ends at the n-th call, without a last word."""

    def fail(self, target: Any, other: str = "") -> None:
        self.count += 1
        if self.count == self.at:
            os._exit(KILLED)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder of sessions, one of which has a subagent."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for number in range(SESSIONS):
        name = digest(str(number).encode()).hex()
        session = "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:32]))
        t = Transcript(session, first=1000 * number)
        for turn in range(5 + number):
            t.user(f"Question {turn} of {number}.")
            t.assistant(f"m{turn}", call(f"c{number}-{turn}", "Bash", command=f"echo {turn}"))
            t.result(f"c{number}-{turn}", f"{turn} {number}\n" * 40)
        t.assistant("end", text("Done."), stop="end_turn")
        (folder / f"{session}.jsonl").write_bytes(t.data)
    return folder


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a branch, whose HEAD has no commit; journals are sealed often."""
    for name in ("sync", "sync_directory"):  # a process that ends loses nothing that it wrote
        monkeypatch.setattr(system_calls, name, lambda _: None)
    monkeypatch.setattr(schedule, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(consolidate, "MAXIMUM_CONTENT_BYTES", 20_000)
    with Repo.init(tmp_path / "start", author="ada", environment=Environment()) as repo:
        repo.line("notes").append("user", "It was there before.")
    return tmp_path / "start"


def begin(start: Path) -> Path:
    here = start.parent / "tried"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(start, here)
    return here


def state(folder: Path) -> dict[str, Any]:
    """Return the refs of a sound repository, but not of the trash."""
    return {ref: oid for ref, oid in tips(folder).items() if not ref.startswith("refs/trash/")}


def listed(trace: Trace, here: Path) -> set[str]:
    done = trace("-C", str(here), "sessions", "--json")
    assert done.code == 0, done
    return {line.split('"ref": "')[1].split('"')[0] for line in done.text.splitlines() if line}


def main_in_child(words: list[str]) -> int:
    """Run a command in a process of its own and return its exit code."""
    child = os.fork()
    if not child:
        _run_and_exit(words)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _run_and_exit(words: list[str]) -> NoReturn:
    try:
        os._exit(main(words))
    finally:
        os._exit(1)


@pytest.mark.parametrize("kind", ["interrupt", KILL, "full disk"])
@pytest.mark.parametrize("workers", [0, 2] if FULL else [0])
def test_a_stopped_import_loses_nothing_and_is_completed_by_the_next(
    kind: str,
    workers: int,
    start: Path,
    sources: Path,
    ok: Run,
    trace: Trace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if workers:
        monkeypatch.setattr(import_ahead, "PROCESS_BYTES", 1)
        monkeypatch.setattr(worker_pool, "processor_count", lambda: workers)
    disks = {"interrupt": Interrupt, "kill": Kill, "full disk": FullDisk}
    before, here = state(start), begin(start)
    disk: Failing = Interrupt(0)
    with monkeypatch.context() as patch:
        disk.begin(patch)
        assert trace("-C", str(here), "import", "-q", str(sources)).code == 0
    wanted, calls = state(here), disk.count
    assert len(os.listdir(here / ".trace" / "objects" / "pack")) > 2, "several pieces"
    stopped = 0
    for place in range(PLACES):
        at = 1 + place * calls // PLACES
        here = begin(start)
        words = ("-C", str(here), "import", "-q", str(sources))
        with monkeypatch.context() as patch:
            disk = disks[kind](at)
            disk.begin(patch)
            code = main_in_child([*words]) if kind == "kill" else trace(*words).code
        allowed = {"interrupt": INTERRUPTED, "kill": KILLED, "full disk": REFUSED}[kind]
        assert code in (allowed, TOLERATED), f"call {at}"
        stopped += code == allowed
        after = state(here)
        assert after.items() >= before.items(), f"call {at}"
        if kind == "interrupt":
            check_interrupted(trace, here, before, after, f"call {at}")
        ok("-C", str(here), "import", "-q", str(sources))
        assert state(here) == wanted, f"call {at}"
        assert len(listed(trace, here)) == SESSIONS + 1, f"call {at}"
    assert stopped > PLACES // 2


def check_interrupted(
    trace: Trace, here: Path, before: dict[str, Any], after: dict[str, Any], where: str
) -> None:
    """Check that what is finished is listed, has HEAD, and is one step for an undo."""
    branches = {ref for ref in after if ref.startswith("refs/heads/sessions/")}
    assert listed(trace, here) >= branches, where
    with Repo.open(here) as repo:
        head = repo.head.ref
    kept = [ref for ref in after if ref.startswith("refs/transcripts/")]
    assert head in branches or len(kept) < 2, where
    if branches:
        other = here.parent / "undone"
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(here, other)
        assert trace("-C", str(other), "undo", "-q").code == 0, where
        assert state(other) == before, where
