"""A long run costs no more than a short one, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trace_store import Repo
from trace_store.runs.run import Run
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk


def started(folder: Path, steps: int) -> tuple[RecordingDisk, Repo, Run]:
    disk = RecordingDisk()
    repo = Repo(Store.init(str(folder), durability="fast", disk=disk), author="ada")
    run = repo.runs.start("Fix", id="nightly")
    for number in range(steps):
        run.step("tool_call", f"step {number:06}").complete("done")
    return disk, repo, run


def cost(disk: RecordingDisk, do: Callable[[], object]) -> dict[str, int]:
    do()  # what is cached once
    disk.reset()
    do()
    return disk.counts()


def costs(folder: Path, steps: int) -> dict[str, dict[str, int]]:
    """Return what each call costs after a number of steps."""
    disk, repo, run = started(folder, steps)
    found = {
        "step": cost(disk, lambda: run.step("tool_call", "step").complete("done")),
        "list": cost(disk, repo.runs.list),
        "running": cost(disk, repo.runs.running),
        "last steps": cost(disk, lambda: repo.runs.read("nightly", limit=5)),
    }
    run.complete()
    repo.close()
    return found


def test_steps_and_lists_cost_the_same_after_many_steps(tmp_path: Path) -> None:
    short, long = (costs(tmp_path / str(steps), steps) for steps in (20, 400))
    for name, counts in short.items():
        assert long[name]["calls"] <= counts["calls"] + 5, name
        assert long[name]["read_bytes"] <= counts["read_bytes"] + 500, name
        assert long[name]["written_bytes"] <= counts["written_bytes"] + 100, name
