"""Runs: what is stored, who may write, and what a reader sees."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trace_store import Clock, Repo, errors, record
from trace_store.runs import traced
from trace_store.runs.run import NullRun
from trace_store.runs.steps import TYPES

KILLED = """
import sys, time, trace_store
repo = trace_store.Repo.open(sys.argv[1])
run = repo.runs.start("Fix the parser", id="nightly", agent="coder")
with run.step("thinking", "Reading") as step:
    step.complete("It drops a line.")
run.step("tool_call", "pytest")
print("ready", flush=True)
time.sleep(60)
"""


FORKS_AND_EXITS = """
import os, sys, trace_store
repo = trace_store.Repo.open(sys.argv[1])
run = repo.runs.start("Fix the parser", id="nightly", agent="coder")
step = run.step("thinking", "Reading")
step.progress("some words ")
if os.fork() == 0:
    for do in (lambda: run.step("tool_call"), step.complete, run.complete):
        try:
            do()
        except trace_store.errors.StateError as error:
            print(error.code, flush=True)
    os._exit(0)
os.wait()
run.step("tool_call", "of the parent").complete()
"""


class SetClock(Clock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000

    def now(self) -> int:
        return self.time


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="ada")
    repo.append("user", "Fix the parser.")
    return repo


def statuses(repo: Repo, name: str) -> list[tuple[int, str, str]]:
    return [(step.number, step.type, step.status) for step in repo.runs.read(name).steps]


def test_a_run_is_read_as_it_was_written(repo: Repo) -> None:
    message = repo.head.oid
    assert message is not None
    with repo.runs.start("Fix the parser", agent="coder", message=f"{message.hex()}.0") as run:
        with run.step("thinking", "Reading the test", model="m1") as step:
            step.source("pytest docs", "https://docs.pytest.org", "web")
            with step.substep("look at line 3") as part:
                part.complete("there")
            step.complete("It drops a line.", tokens={"input": 10, "output": 2}, message="HEAD.0")
        run.step("visit_page").complete(tokens=5)
    found = repo.runs.read(run.id)
    first, second = found.steps
    assert (first.type, first.title, first.content) == (
        "thinking",
        "Reading the test",
        "It drops a line.",
    )
    assert [(each.title, each.url, each.type) for each in first.sources] == [
        ("pytest docs", "https://docs.pytest.org", "web")
    ]
    assert [(each.title, each.content) for each in first.substeps] == [("look at line 3", "there")]
    assert first.model == "m1"
    assert first.message == found.info.state.message == f"{message.hex()[:32]}.0"
    assert dict(first.tokens) == {"input": 10, "output": 2}
    assert (second.number, second.name) == (2, "visit page")
    assert dict(found.info.state.tokens) == {"input": 10, "output": 2, "total": 5}
    assert (found.info.status, found.info.state.session) == ("completed", "refs/heads/main")


def test_a_run_belongs_to_the_session_that_it_names_or_that_has_its_message(repo: Repo) -> None:
    """A run that names none marks no session as running."""
    other = repo.line("other").append("user", "Elsewhere").addresses[0]
    run = repo.runs.start("Unrelated")
    run.step("thinking")
    assert run.state.session == ""
    assert not any(each.activity for each in repo.sessions.list())
    assert repo.runs.list(session="main") == []
    assert repo.runs.start("Said elsewhere", message=other).state.session == ""
    assert repo.runs.start("Said here", message="HEAD.0").state.session == "refs/heads/main"
    named = repo.runs.start("Named", session="other", message=other)
    assert named.state.session == "refs/heads/other"
    named.step("thinking")
    running = [each.ref for each in repo.sessions.list() if each.activity]
    assert "refs/heads/other" in running


def test_the_start_of_a_step_is_stored_before_step_returns(repo: Repo, tmp_path: Path) -> None:
    run = repo.runs.start("Fix", id="nightly")
    run.step("thinking", "Reading")
    other = Repo.open(tmp_path)
    assert statuses(other, "nightly") == [(1, "thinking", "running")]
    assert [each.activity for each in other.runs.running()] == ["ada: thinking, step 1"]
    run.complete()
    assert other.runs.running() == []


def test_a_start_and_an_end_are_one_commit_each_and_a_source_none(repo: Repo) -> None:
    run = repo.runs.start("Fix", id="nightly")

    def commits() -> int:
        return len(list(repo.log("refs/runs/nightly")))

    assert commits() == 1
    step = run.step("thinking")
    step.source("a")
    step.substep("b").complete()
    step.progress("c")
    assert commits() == 2
    step.complete()
    assert commits() == 3
    run.complete()
    assert commits() == 4


@pytest.mark.parametrize("type", [*TYPES, "deploy"])
def test_types_of_steps(repo: Repo, type: str) -> None:
    with repo.runs.start("Fix", id="nightly") as run, run.step(type):
        pass
    assert statuses(repo, "nightly") == [(1, type, "completed")]


@pytest.mark.parametrize("type", ["", "Thinking", "two words", "1st"])
def test_a_type_that_is_no_lower_case_name_is_refused(repo: Repo, type: str) -> None:
    with repo.runs.start("Fix", id="nightly") as run, pytest.raises(errors.InvalidInputError):
        run.step(type)
    assert statuses(repo, "nightly") == []


def test_an_error_that_leaves_a_block_fails_the_step_and_the_run(repo: Repo) -> None:
    with (
        pytest.raises(ValueError, match="no such file"),
        repo.runs.start("Fix", id="nightly") as run,
        run.step("tool_call"),
    ):
        raise ValueError("no such file")
    found = repo.runs.read("nightly")
    assert found.info.status == "failed"
    assert found.info.state.error == found.steps[0].error == "ValueError: no such file"
    assert found.info.state.failed == 1


def test_a_retry_is_a_new_step_that_names_the_old_one(repo: Repo) -> None:
    with repo.runs.start("Fix", id="nightly") as run:
        step = run.step("tool_call", "pytest")
        step.fail("exit status 1")
        step.retry().complete("passed")
    steps = repo.runs.read("nightly").steps
    assert [(each.title, each.status, each.retries) for each in steps] == [
        ("pytest", "failed", 0),
        ("pytest", "completed", 1),
    ]


def test_a_step_in_the_block_of_another_is_a_part_of_it(repo: Repo) -> None:
    with repo.runs.start("Fix", id="nightly") as run:
        with run.step("thinking"), run.step("web_search"):
            pass
        run.step("tool_call").complete()
    assert [each.parent for each in repo.runs.read("nightly").steps] == [0, 1, 0]


def test_async_blocks_and_threads_number_the_steps_of_one_run(repo: Repo) -> None:
    async def work(run: object, count: int) -> None:
        for _ in range(count):
            async with run.step("thinking"):  # type: ignore[attr-defined]
                await asyncio.sleep(0)

    with repo.runs.start("Fix", id="nightly") as run:
        threads = [threading.Thread(target=asyncio.run, args=(work(run, 10),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses(repo, "nightly") == [(n, "thinking", "completed") for n in range(1, 31)]


def test_what_has_ended_cannot_go_on(repo: Repo) -> None:
    run = repo.runs.start("Fix", id="nightly")
    step = run.step("thinking")
    step.complete()
    late: list[Callable[[], object]] = [
        step.complete,
        lambda: step.fail("x"),
        lambda: step.progress("x"),
        lambda: step.source("x"),
    ]
    for do in late:
        with pytest.raises(errors.StateError, match="step 1 of nightly is completed") as caught:
            do()
        assert caught.value.code == errors.ErrorCode.STEP_ENDED
    run.complete()
    late = [run.complete, lambda: run.step("thinking"), step.retry]
    for do in late:
        with pytest.raises(errors.StateError, match="the run nightly is completed") as caught:
            do()
        assert caught.value.code == errors.ErrorCode.RUN_ENDED


def test_a_run_that_exists_is_refused_or_superseded(repo: Repo) -> None:
    first = repo.runs.start("Fix", id="nightly")
    with pytest.raises(errors.AlreadyExistsError, match="the run nightly exists already"):
        repo.runs.start("Fix", id="nightly")
    second = repo.runs.start("Fix", id="nightly", supersede=True)
    assert second.id == "nightly-2"
    with pytest.raises(errors.StateError, match="nightly is superseded by nightly-2"):
        first.step("thinking")
    second.complete()
    assert repo.runs.start("Fix", id="nightly", supersede=True).id == "nightly-3"
    found = {each.id: each.status for each in repo.runs.list()}
    assert found == {"nightly": "superseded", "nightly-2": "completed", "nightly-3": "running"}


def test_a_killed_process_leaves_an_interrupted_run_and_loses_no_step(
    repo: Repo, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert [each.status for each in repo.runs.list()] == ["running"]
        process.kill()
        process.wait()
    assert [each.status for each in repo.runs.list()] == ["interrupted"]
    assert [each.id for each in repo.runs.list(status="interrupted")] == ["nightly"]
    assert statuses(repo, "nightly") == [(1, "thinking", "completed"), (2, "tool_call", "running")]
    assert repo.runs.running() == []


def locks(folder: Path) -> list[str]:
    """Return the locks of runs, without the digests of their ids."""
    names = sorted(each.name for each in (folder / ".trace" / "locks").iterdir())
    return [name.rpartition("-")[0] for name in names if "run-" in name]


def test_the_locks_of_dead_processes_are_put_aside_and_those_of_ended_runs_removed(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    repo = Repo.init(tmp_path, author="ada", clock=clock)
    for name in ("dead", "asleep", "ended"):
        run = repo.runs.start("Fix", id=name)
        if name == "ended":
            run._recorder.close("completed")  # by a process that died right after that
        if name != "asleep":
            run._lock.release()
    assert locks(tmp_path) == ["run"] * 3
    clock.time += 120_000
    run = repo.runs.start("Fix", id="now")
    assert locks(tmp_path) == ["gone-run", "run", "run"]
    expected = {
        "dead": "interrupted",
        "asleep": "interrupted",
        "ended": "completed",
        "now": "running",
    }
    assert {each.id: each.status for each in repo.runs.list()} == expected
    assert [each.id for each in repo.runs.running()] == ["now"]
    repo.runs.start("Fix", id="dead", supersede=True).complete()
    assert locks(tmp_path) == ["run", "run"]
    run.complete()
    assert locks(tmp_path) == ["run"]


def test_silence_interrupts_a_run_until_its_next_heartbeat(tmp_path: Path) -> None:
    clock = SetClock()
    repo = Repo.init(tmp_path, author="ada", clock=clock)
    run = repo.runs.start("Fix", id="nightly")
    clock.time += 59_000
    assert [each.status for each in repo.runs.list()] == ["running"]
    clock.time += 2_000
    assert [each.status for each in repo.runs.list()] == ["interrupted"]
    run._lock.beat()
    assert [each.status for each in repo.runs.list()] == ["running"]


def test_the_heart_beats_without_steps(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trace_store.runs.run.HEARTBEAT_SECONDS", 0.02)
    run = repo.runs.start("Fix", id="nightly")
    first = repo.runs.list()[0].beat
    end = time.monotonic() + 10
    while repo.runs.list()[0].beat <= first + 10:
        assert time.monotonic() < end
        time.sleep(0.01)
    run.complete()


def test_a_copy_shows_when_a_run_was_last_seen(repo: Repo, tmp_path: Path) -> None:
    run = repo.runs.start("Fix", id="nightly")
    run.step("thinking")
    repo.maintenance.seal()
    (tmp_path / ".trace" / "locks").rename(tmp_path / "elsewhere")
    (info,) = Repo.open(tmp_path).runs.list()
    assert (info.status, info.is_here) == ("running", False)
    assert info.seen == info.state.updated


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_forks_and_exits_with_an_open_step(repo: Repo, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS_AND_EXITS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(errors.ErrorCode.RUN_ELSEWHERE)] * 3
    assert statuses(repo, "nightly") == [(1, "thinking", "running"), (2, "tool_call", "completed")]
    assert [each.status for each in repo.runs.list()] == ["interrupted"]


def test_secrets_are_redacted_wherever_a_step_has_text(repo: Repo, tmp_path: Path) -> None:
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    with repo.runs.start(f"Use {token}", id="nightly") as run:
        with run.step("tool_call", f"curl {token}") as step:
            step.source(token, f"https://example.org/?token={token}")
            step.substep(token).complete(token)
            step.complete(f"it said {token}")
        run.step("tool_call").fail(f"bad {token}")
    text = str(record(repo.runs.read("nightly")))
    assert token not in text
    assert text.count("[redacted:github-token:") >= 7
    repo.maintenance.seal()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and token.encode() in p.read_bytes()]


def test_text_that_utf8_cannot_hold_and_a_line_of_5_mb(repo: Repo) -> None:
    line = "x" * 5_000_000
    bad = "\ud800"
    with repo.runs.start(f"Fix {bad}", id="nightly", agent="coder") as run:
        step = run.step("thinking", "half \udc00 a pair", model=bad)
        step.progress("\ud83d" + line)
        step.source(bad, bad, bad)
        step.substep(bad).complete(bad)
        step.complete(bad + line, tokens={bad: 1}, model=bad)
    (found,) = repo.runs.read("nightly").steps
    assert (found.title, found.content) == ("half ? a pair", "?" + line)


def test_a_clock_that_goes_back_never_ends_a_step_before_its_start(tmp_path: Path) -> None:
    clock = SetClock()
    repo = Repo.init(tmp_path, author="ada", clock=clock)
    run = repo.runs.start("Fix", id="nightly")
    step = run.step("thinking")
    clock.time -= 3_600_000
    step.complete()
    run.complete()
    found = repo.runs.read("nightly")
    assert found.steps[0].started <= found.steps[0].completed <= found.info.state.ended


def test_two_clones_of_one_run_are_read_together(repo: Repo, tmp_path: Path) -> None:
    run = repo.runs.start("Fix", id="nightly")
    run.step("thinking").complete("both have it")
    repo.maintenance.seal()
    clone = tmp_path / "clone"
    shutil.copytree(tmp_path / ".trace", clone / ".trace")
    with Repo.open(clone, author="bob") as other:
        other.runs.start("Fix", id="nightly", supersede=True).complete()
        other.maintenance.seal()
    run.step("tool_call", "here").complete("only here")
    repo.maintenance.seal()
    for folder in ("objects/pack", "refs/runs"):  # what git would merge
        shutil.copytree(clone / ".trace" / folder, tmp_path / ".trace" / folder, dirs_exist_ok=True)
    joined = Repo.open(tmp_path)
    assert len(joined.store.refs.tips("refs/runs/nightly")) == 2
    found = joined.runs.read("nightly")
    assert [each.content for each in found.steps] == ["both have it", "only here"]
    assert [each.content for each in joined.runs.read("nightly", limit=1).steps] == ["only here"]
    assert found.info.status == "superseded"
    seen = [(each.kind, each.step) for each in joined.runs.watch("nightly")]
    both = [(kind, number) for number in (1, 2) for kind in ("started", "ended")]
    assert seen == [*both, ("state", 0)]
    with pytest.raises(errors.StateError, match="superseded by nightly-2"):
        run.step("thinking")


def test_traced_functions_are_steps_of_the_run_around_them(repo: Repo) -> None:
    @traced
    def look(path: str) -> str:
        return f"read {path}"

    @traced(type="web_search", title="Search the web")
    async def search(words: str) -> list[str]:
        return [words]

    assert look("a") == "read a"  # without a run
    with repo.runs.start("Fix", id="nightly"):
        assert look("b") == "read b"
        assert asyncio.run(search("c")) == ["c"]
        with pytest.raises(TypeError):
            look()  # type: ignore[call-arg]
    steps = repo.runs.read("nightly").steps
    assert [(each.type, each.title, each.content, each.status) for each in steps] == [
        ("tool_call", "look", "read b", "completed"),
        ("web_search", "Search the web", "['c']", "completed"),
        ("tool_call", "look", "", "failed"),
    ]


def test_a_null_run_takes_all_that_a_run_takes() -> None:
    run = NullRun()
    with run, run.step("thinking", "x") as step:
        step.progress("a")
        step.source("b")
        with step.substep("c") as part:
            part.complete("d")
        step.complete("e", tokens=3)
        step.retry().fail("f")
    run.complete()
    run.fail("g")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": " "}, errors.InvalidInputError),
        ({"name": "Fix", "id": "a/b"}, errors.InvalidInputError),
        ({"name": "Fix", "session": "nope"}, errors.RefNotFoundError),
        ({"name": "Fix", "message": "HEAD.9"}, errors.MessageNotFoundError),
    ],
)
def test_a_run_is_not_started_with_bad_arguments(
    repo: Repo, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        repo.runs.start(**arguments)
    assert repo.runs.list() == []


def test_runs_are_found_by_the_beginning_of_their_id(repo: Repo) -> None:
    repo.runs.start("Fix", id="nightly-a").complete()
    repo.runs.start("Fix", id="nightly-b").complete()
    assert repo.runs.read("nightly-a").id == "nightly-a"
    with pytest.raises(errors.AmbiguousRevisionError, match="nightly-a, nightly-b"):
        repo.runs.read("night")
    with pytest.raises(errors.RefNotFoundError, match="no run 'weekly'"):
        repo.runs.read("weekly")


def test_some_steps_of_a_run_are_read(repo: Repo) -> None:
    with repo.runs.start("Fix", id="nightly") as run, run.step("thinking", "around all others"):
        for number in range(2, 10):
            run.step("tool_call", f"step {number}").complete(f"content {number}")
        run.step("tool_call", "never ended")
    every = repo.runs.read("nightly")
    assert [each.number for each in every.steps] == list(range(1, 11))
    assert [each.status for each in every.steps] == [*["completed"] * 9, "running"]
    for start, limit, numbers in (
        (None, 3, [8, 9, 10]),
        (None, 100, list(range(1, 11))),
        (None, 0, []),
        (1, 2, [1, 2]),
        (4, 3, [4, 5, 6]),
        (9, None, [9, 10]),
        (99, 3, []),
    ):
        found = repo.runs.read("nightly", start=start, limit=limit)
        assert list(found.steps) == [each for each in every.steps if each.number in numbers]
        assert found.earlier == (numbers[0] - 1 if numbers else 10)
    with pytest.raises(errors.InvalidInputError, match="limit is a count"):
        repo.runs.read("nightly", limit=-1)


def test_a_run_may_be_left_in_another_context_and_ended_within_a_step(tmp_path: Path) -> None:
    async def leave(repo: Repo) -> str:
        async def session() -> Any:
            async with repo.runs.start("by a generator") as run:
                yield run

        found = session()
        run = await asyncio.create_task(anext(found))
        await asyncio.create_task(found.aclose())
        return str(run.state.status)

    with Repo.init(tmp_path, author="ada") as repo:
        assert asyncio.run(leave(repo)) != "running"
        run = repo.runs.start("ended")

        def work() -> None:
            with run, run.step("thinking", "a thought"):
                run.fail("stopped")
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            work()
        assert run.state.status == "failed"
