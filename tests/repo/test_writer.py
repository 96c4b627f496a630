"""What every verb does alike, because all of them write through one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trace_store import FixedClock, Message, Repo, ToolCall, ToolResult
from trace_store.errors import ErrorCode, SecretFoundError, StateError
from trace_store.odb.database import ObjectDatabase
from trace_store.repo.line import Line
from trace_store.store.store import Store
from trace_store.trajectories.events import Task

SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
MINUTE = 60_000


class MinuteClock(FixedClock):
    """A clock on which every look is a minute later, so that a seal is due at every write."""

    def __init__(self) -> None:
        super().__init__(step=MINUTE)


@pytest.fixture(params=["HEAD", "side"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    """HEAD's branch, and one that is not checked out."""
    with Repo.init(tmp_path, author="ada", clock=MinuteClock()) as repo:
        repo.append("user", "on main")
        if request.param == "HEAD":
            yield repo
        else:
            repo.branches.create("side")
            yield repo.line("side")


def ref_of(line: Line) -> str:
    return "" if isinstance(line, Repo) else "side"


def repo_of(line: Line) -> Repo:
    return line if isinstance(line, Repo) else Repo(line.store, author="ada")


def characters(text: str) -> int:
    return len(text)


def tenfold(text: str) -> int:
    return 10 * len(text)


# One count


@pytest.mark.parametrize("on_a_line", [False, True])
def test_every_verb_counts_with_the_tokenizer_of_the_repository(
    tmp_path: Path, on_a_line: bool
) -> None:
    with Repo.init(tmp_path, tokenizer=characters) as repo:
        for number in range(30):
            repo.append("user", f"question {number}")
            repo.commit([Message("assistant", [ToolCall(f"c{number}", "Read", {"path": "a"})])])
            repo.commit([Message("tool", [ToolResult(f"c{number}", "line of output\n" * 40)])])
        ref = ""
        if on_a_line:
            ref = "side"
            repo.branches.create(ref)
        before = repo.compile(ref=ref).token_count
        assert before > 30 * 40 * 14  # characters, not tokens of an encoding
        assert repo.status(ref=ref).token_count == before
        assert repo.compression.suggest(ref=ref).tokens == before
        assert abs(repo.compression.target("50%", ref=ref) - before // 2) < 10
        assert repo.compression.plan(before // 2, ref=ref).before == before
        done = repo.compression.trim(before // 2, ref=ref)
        assert (done.before, done.met) == (before, True)
        assert done.commit is not None
        assert repo.compile(ref=ref).token_count == done.after <= before // 2
        shorter = repo.compression.compress(done.after // 2, ref=ref, force=True)
        assert shorter.result is not None
        assert repo.compile(ref=ref).token_count == shorter.after <= done.after // 2


def test_two_functions_share_no_counts(tmp_path: Path) -> None:
    with Repo.init(tmp_path, tokenizer=characters) as repo:
        repo.append("user", "some text")
        once = repo.compile().token_count
    with Repo.open(tmp_path, tokenizer=tenfold) as repo:
        assert repo.compile().token_count > 5 * once
        with Repo.open(tmp_path, tokenizer=characters) as other:
            assert other.compile().token_count == once


# Every write seals when due


def long_talk(line: Line) -> None:
    for number in range(6):
        line.append("user", f"question {number}")
        line.append("assistant", "a long answer that says much the same " * 40)


SEALING: dict[str, Callable[[Repo, str], object]] = {
    "reset": lambda repo, ref: repo.reset("HEAD~1", ref=ref),
    "trim": lambda repo, ref: repo.compression.trim(600, partial=True, ref=ref),
    "compress": lambda repo, ref: repo.compression.compress(600, force=True, ref=ref),
    "edit": lambda repo, ref: repo.edit(repo.compile(ref=ref).messages[0].address, "x", ref=ref),
    "checkpoint": lambda repo, _: repo.checkpoints.save("here"),
    "tag": lambda repo, _: repo.tags.create("v1"),
    "branch": lambda repo, _: repo.branches.create("new"),
    "fork": lambda repo, _: repo.forks.create("fork"),
    "trajectory": lambda repo, _: repo.trajectories.start("a task"),
    "move": lambda repo, ref: repo.move(
        repo.compile(ref=ref).messages[0].address, last=True, ref=ref
    ),
}


@pytest.mark.parametrize("verb", SEALING)
def test_every_verb_seals_when_due(line: Line, verb: str) -> None:
    long_talk(line)
    repo = repo_of(line)
    repo.seal()
    SEALING[verb](repo, ref_of(line))  # the schedule begins with the first write
    repo.append("user", "another")
    assert repo.store.unsealed().transactions == 0


def test_what_comes_back_from_the_trash_is_sealed(line: Line) -> None:
    long_talk(line)
    repo, ref = repo_of(line), ref_of(line)
    address = line.compile().messages[0].address
    line.remove(address)
    repo.seal()
    repo.trash.restore(address, ref=ref)
    assert repo.store.unsealed().transactions == 0


# Secrets: whatever text a verb takes


def texts_of(store: Store) -> bytes:
    """Return all objects and the names of all refs."""
    objects = (store.objects.read(oid) for oid in store.objects.iterate())
    return b"\0".join([*objects, *(name.encode() for name, _ in store.refs.iterate())])


def first(line: Line) -> Any:
    return line.compile().messages[0].address


SPEAKING: dict[str, Callable[[Line], object]] = {
    "content": lambda it: it.append("user", f"token {SECRET}"),
    "name": lambda it: it.append("user", "a", name=SECRET),
    "id": lambda it: it.append("assistant", "a", id=SECRET),
    "model": lambda it: it.append("assistant", "a", model=SECRET),
    "message": lambda it: it.append("user", "a", message=f"use {SECRET}"),
    "meta": lambda it: it.append("user", "a", meta={"why": SECRET}),
    "settings": lambda it: it.commit([Message("user", "a")], settings={"key": SECRET}),
    "call": lambda it: it.commit([Message("assistant", [ToolCall(SECRET, SECRET, {"a": SECRET})])]),
    "result": lambda it: it.commit(
        [
            Message("assistant", [ToolCall("c", "Read", {})]),
            Message("tool", [ToolResult("c", f"output {SECRET}")]),
        ]
    ),
    "edit": lambda it: it.edit(first(it), f"now {SECRET}", message=SECRET),
    "label": lambda it: it.annotate(first(it), labels=[SECRET], keep=[SECRET]),
    "remove": lambda it: it.remove(first(it), message=SECRET),
    "replace": lambda it: it.replace(
        first(it), [Message("user", SECRET)], reason=SECRET, model=SECRET, prompt=SECRET
    ),
    "move": lambda it: it.move(it.append("user", "last").addresses[0], message=SECRET),
    "tools": lambda it: it.set_tools([{"name": SECRET, "description": SECRET}]),
    "usage": lambda it: it.record_usage({"input_tokens": 3, "output_tokens": 1}, model=SECRET),
    "batch": lambda it: batch(it),
    "staged": lambda it: (it.append("user", "b"), it.reset("HEAD~1"), it.commit_staged(SECRET)),
    "revert": lambda it: it.revert(it.append("user", "b"), message=SECRET),
    "trim": lambda it: subject(it).compression.trim(
        1, partial=True, message=SECRET, ref=ref_of(it)
    ),
    "compress": lambda it: subject(it).compression.compress(
        text=f"all about {SECRET}", message=SECRET, ref=ref_of(it), force=True
    ),
    "tag": lambda it: subject(it).tags.create("v1", message=SECRET),
    "checkpoint": lambda it: subject(it).checkpoints.save("here", reason=SECRET),
    "soft checkpoint": lambda it: subject(it).checkpoints.save("soft", reason=SECRET, soft=True),
    "trajectory": lambda it: subject(it).trajectories.start(f"task {SECRET}", description=SECRET),
    "task": lambda it: subject(it).trajectories.start(
        "a task", task=Task(SECRET, SECRET, id=SECRET)
    ),
    "decision": lambda it: decision(subject(it)),
}


def subject(line: Line) -> Repo:
    long_talk(line)
    return repo_of(line)


def batch(line: Line) -> None:
    with line.batch(SECRET) as draft:
        draft.append("user", SECRET, name=SECRET)
        draft.configure(meta={"why": SECRET})


def decision(repo: Repo) -> None:
    repo.trajectories.start("a task")
    repo.trajectories.decide(SECRET, SECRET, reasoning=SECRET)


@pytest.mark.parametrize("place", SPEAKING)
def test_no_text_is_stored_with_a_secret(line: Line, place: str) -> None:
    SPEAKING[place](line)
    store = line.store
    assert SECRET.encode() not in texts_of(store)
    repo_of(line).seal()
    for path in Path(store.layout.root).rglob("*"):
        if path.is_file() and "cache" not in path.parts:
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "create",
    [
        lambda repo: repo.branches.create(f"feature-{SECRET}"),
        lambda repo: repo.tags.create(SECRET),
        lambda repo: repo.checkpoints.save(SECRET),
        lambda repo: repo.line(SECRET).append("user", "first"),
    ],
)
def test_a_name_that_is_a_secret_is_refused(
    tmp_path: Path, create: Callable[[Repo], object]
) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "a")
        with pytest.raises(SecretFoundError, match="the name of a ref"):
            create(repo)
        assert SECRET.encode() not in texts_of(repo.store)


# Calls that wait for results


def test_two_agents_in_turn_cost_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    read = ObjectDatabase.read

    def counting(objects: ObjectDatabase, oid: bytes) -> bytes:
        nonlocal counted
        counted += 1
        return read(objects, oid)

    monkeypatch.setattr(ObjectDatabase, "read", counting)

    def reads(names: list[str]) -> int:
        nonlocal counted
        repo = Repo.memory()
        lines = [repo.line(name) for name in names]
        for each in lines:
            each.append("user", "begin")
        counted = 0
        for number in range(10):
            for each in lines:
                each.commit([Message("assistant", [ToolCall(f"{number}", "Read", {"a": 1})])])
            for each in lines:
                each.commit([Message("tool", [ToolResult(f"{number}", "output")])])
        return counted

    assert reads(["one", "two"]) == 2 * reads(["one"])


# What is stopped belongs to its branch


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Repo]:
    """A merge stopped on main; `work` and `idea` are two other branches."""
    with Repo.init(tmp_path, author="ada") as repo:
        asked = repo.append("user", "a question").addresses[0]
        repo.branches.create("theirs")
        repo.branches.create("work")
        repo.edit(asked, "our wording")
        repo.line("theirs").edit(asked, "their wording")
        repo.line("work").append("user", "at work")
        repo.branches.create("idea", "work")
        repo.line("idea").append("user", "an idea")
        assert repo.merge("theirs").outcome == "stopped"
        yield repo


def test_a_stopped_merge_leaves_other_branches_alone(stopped: Repo) -> None:
    repo, work = stopped, stopped.line("work")
    assert work.merge("idea").outcome == "fast-forward"
    assert [each.text for each in work.compile()][-1] == "an idea"
    assert repo.undo().message.startswith("merge idea")
    work.append("user", "more")
    work.cherry_pick("idea")
    repo.compression.dedupe(ref="work")
    work.reset("HEAD~1", hard=True)
    repo.branches.rename("idea", "thought")
    repo.branches.switch("work")
    assert repo.stopped().ref == "refs/heads/main"
    with pytest.raises(StateError) as error:
        repo.line("main").reset("HEAD~1")
    assert error.value.code == ErrorCode.IN_PROGRESS
    repo.stopped("merge").resolve("1", "theirs")
    repo.stopped().continue_()
    assert repo.in_progress is None
    assert [each.text for each in repo.line("main").compile()] == ["their wording"]


def test_two_branches_stop_apart(stopped: Repo) -> None:
    work = stopped.line("work")
    asked = work.compile().messages[0].address
    work.edit(asked, "a third wording")
    assert work.merge("theirs").outcome == "stopped"
    assert stopped.stopped().ref == "refs/heads/main"
    stopped.stopped().abort()
    assert stopped.stopped().ref == "refs/heads/work"
    with pytest.raises(StateError, match="no rebase is in progress, but a merge is"):
        stopped.stopped("rebase")
    stopped.stopped().resolve("1", "ours")
    stopped.stopped().continue_()
    assert stopped.in_progress is None


def test_what_would_undo_a_stopped_branch_is_refused(stopped: Repo) -> None:
    stopped.append("user", "meanwhile")
    with pytest.raises(StateError, match="a merge of theirs into main is in progress"):
        stopped.undo()
    with pytest.raises(StateError, match="in progress"):
        stopped.branches.create("main", "work", force=True)
