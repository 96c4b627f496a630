"""Unread messages are kept; plans, `keep_last`, progress, and trims of one request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store import Message, Repo, Text, ToolCall, ToolResult, errors
from trace_store.compression.selection import unread_from
from trace_store.llm.contract import Completion, Prompt

LONG = "The harbour was built in stages, and each stage has its own report. " * 60


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Return a conversation that ends with three unread messages."""
    with Repo.init(tmp_path) as made:
        for turn in range(8):
            made.append("user", f"Question {turn}. {LONG}")
            made.append("assistant", f"Answer {turn}. {LONG}")
        made.append("assistant", [ToolCall("c1", "read_file", '{"path":"a.txt"}')])
        made.append("tool", [ToolResult("c1", "A new file. " + LONG)])
        made.append("user", f"And look at this. {LONG}")
        yield made


def last(repo: Repo) -> list[Message]:
    return [each.message() for each in list(repo.compile())[-3:]]


def test_compress_keeps_what_no_model_was_shown(repo: Repo) -> None:
    before = last(repo)
    done = repo.compression.compress(2_500, force=True)
    assert done.changed
    assert last(repo) == before
    assert done.plan.kept["not shown to a model yet"] == 3


def test_a_range_of_unread_messages_has_nothing_to_compress(repo: Repo) -> None:
    (address,) = [each.address for each in list(repo.compile())[-1:]]
    with pytest.raises(errors.InvalidInputError, match="1 not shown to a model yet"):
        repo.compression.compress(2_500, str(address), force=True)
    assert repo.compression.compress(range=str(address), text="A remark.").changed  # by hand


def test_trim_keeps_what_no_model_was_shown(repo: Repo) -> None:
    before = last(repo)
    done = repo.compression.trim(100, keep_last=0, partial=True)
    assert done.changed
    assert not done.met
    assert done.stays["not shown to a model yet"] > 1_000
    assert last(repo) == before
    repo.append("assistant", "I have read it.")
    again = repo.compression.trim(100, keep_last=0, partial=True)
    assert "not shown to a model yet" not in again.stays
    assert again.after < done.after - 700


def test_the_last_turns_stay(repo: Repo) -> None:
    repo.append("assistant", "I have read it.")
    questions = [each for each in repo.compile() if each.role == "user"]
    done = repo.compression.compress(8_000, keep_last=4, force=True)
    shown = {each.address for each in repo.compile()}
    assert {each.address for each in questions[-4:]} <= shown
    assert not {each.address for each in questions[:-4]} & shown
    assert done.plan.kept["recent"] >= 8


def test_a_plan_is_carried_out(repo: Repo) -> None:
    plan = repo.compression.plan(4_000)
    repo.append("user", "Later.")
    done = repo.compression.compress(plan=plan, force=True)
    assert [run.targets for run in done.plan.runs] == [run.targets for run in plan.runs]
    assert list(repo.compile())[-1].text == "Later."


def test_a_plan_of_messages_that_changed_is_refused(repo: Repo) -> None:
    plan = repo.compression.plan(4_000)
    repo.edit(plan.runs[0].targets[0], "Something else.")
    with pytest.raises(errors.RefChangedError, match="changed meanwhile"):
        repo.compression.compress(plan=plan, force=True)
    with pytest.raises(errors.InvalidInputError, match="its own target"):
        repo.compression.compress(3_000, plan=plan)


def test_an_error_in_progress_cancels(repo: Repo) -> None:
    told: list[tuple[int, int]] = []

    def ask(prompt: Prompt) -> Completion:
        return Completion("The harbour was built in stages.", model="m")

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 2:
            raise KeyboardInterrupt

    head = repo.resolve("HEAD")
    with pytest.raises(KeyboardInterrupt):
        repo.compression.compress(4_000, model=ask, force=True, progress=progress)
    assert repo.resolve("HEAD") == head
    assert told == [(0, 1), (0, 1)]


def test_a_trim_of_one_request_writes_nothing(repo: Repo) -> None:
    head, whole = repo.resolve("HEAD"), repo.compile()
    small = repo.compile(compiler=repo.compression.trimmer(5_000, keep_last=0))
    assert repo.resolve("HEAD") == head
    assert small.token_count < whole.token_count * 0.7  # the user's own words stay
    texts = [part.text for each in small.messages for part in each.parts if isinstance(part, Text)]
    assert texts[-1] == f"And look at this. {LONG}"


@pytest.mark.parametrize(
    ("roles", "first"),
    [
        ([], 0),
        (["user"], 0),
        (["system", "user", "user"], 0),
        (["user", "assistant"], 2),
        (["user", "assistant", "user", "assistant", "tool", "user"], 4),
    ],
)
def test_what_follows_the_last_answer_is_unread(roles: list[str], first: int) -> None:
    assert unread_from(roles) == first


def test_what_no_model_was_ever_shown_is_not_compressed() -> None:
    with Repo.memory() as repo:
        for number in range(9):
            repo.append("user", f"{number}. " + "word " * 90)
        with pytest.raises(errors.InvalidInputError, match="nothing to compress: 9 not shown"):
            repo.compression.compress(200)
