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


def test_a_page_of_a_long_run_reads_few_of_its_commits(tmp_path: Path) -> None:
    disk, repo, run = started(tmp_path, 600)
    (step,) = repo.runs.read("nightly", start=300, limit=1).steps
    assert (step.number, step.content) == (300, "done")
    page = cost(disk, lambda: repo.runs.read("nightly", start=300, limit=5))
    last = cost(disk, lambda: repo.runs.read("nightly", limit=5))
    assert page["calls"] < last["calls"] + 100  # the run has 1,201 commits
    run.complete()
    repo.close()


def test_a_step_that_ends_long_after_its_page_is_shown_as_it_ended(tmp_path: Path) -> None:
    _, repo, run = started(tmp_path, 40)
    outer = run.step("thinking", "outer")
    for number in range(100):
        run.step("tool_call", f"inner {number}", parent=outer).complete("inner")
    outer.complete("outer is done")
    still = run.step("thinking", "still running")
    run.step("tool_call", "beside").complete("beside")
    pages = [repo.runs.read("nightly", start=start, limit=20).steps for start in range(1, 144, 20)]
    shown = [step for page in pages for step in page]
    assert shown == list(repo.runs.read("nightly").steps)
    assert [step.number for step in shown] == list(range(1, 144))
    assert shown[40].content == "outer is done"
    assert [step.number for step in shown if step.is_running] == [still.number]
    repo.close()
