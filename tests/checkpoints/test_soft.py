"""Soft checkpoints: extraction rules, models' answers, and injection at most once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.valid_requests import assert_valid_requests
from trace_store import Message, Repo, Text, ToolCall, ToolResult
from trace_store.checkpoints.soft import soft_data, soft_source
from trace_store.errors import (
    AlreadyExistsError,
    InvalidInputError,
    ModelNonsenseError,
    SecretFoundError,
    StateError,
)
from trace_store.llm.contract import Completion, Prompt


def call(id: str, tool: str, **arguments: object) -> Message:
    return Message("assistant", [ToolCall(id, tool, json.dumps(arguments))])


def result(id: str, text: str, *, is_error: bool = False) -> Message:
    return Message("tool", [ToolResult(id, [Text(text)], is_error=is_error)])


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="Ada", durability="fast")
    repo.append("system", "You are careful.")
    repo.append("user", "Make the parser faster.")
    for message in (
        call("1", "Read", file_path="/src/parser.py"),
        result("1", "def parse(): ..."),
        Message("assistant", "parser.py rescans the text for every token. I will look further."),
        call("2", "Edit", file_path="/src/parser.py", old_string="a", new_string="b"),
        result("2", "done"),
        Message("assistant", "I decided to keep one index because a second pass is slow."),
        call("3", "Bash", command="pytest -q"),
        result("3", "1 failed", is_error=True),
        call(
            "4",
            "TodoWrite",
            todos=[
                {"content": "measure", "status": "completed"},
                {"content": "fix the test", "status": "pending"},
            ],
        ),
        result("4", "ok"),
        Message("assistant", "One test fails. Shall I fix it?"),
    ):
        repo.commit([message])
    return repo


def data(repo: Repo, name: str) -> dict[str, Any]:
    return soft_data(repo.store, repo.checkpoints.show(name))


def test_rules_find_files_tasks_decisions_and_open_ends(repo: Repo) -> None:
    saved = repo.checkpoints.save("handover", soft=True, reason="for Bo")
    assert soft_source(repo.store, saved) == repo.resolve("HEAD")
    found = data(repo, "handover")
    assert found["schema"] == "trace.checkpoint/1"
    assert found["request"] == "Make the parser faster."
    assert found["outcome"] == "One test fails. Shall I fix it?"
    assert found["files"] == [
        {
            "path": "/src/parser.py",
            "reads": 1,
            "writes": 1,
            "finding": "parser.py rescans the text for every token.",
        }
    ]
    assert found["tasks"] == [
        {"text": "measure", "status": "completed"},
        {"text": "fix the test", "status": "pending"},
    ]
    assert [each["reason"] for each in found["decisions"]] == ["because a second pass is slow."]
    assert found["open_ends"] == ["Failed: pytest -q: 1 failed", "Asked: Shall I fix it?"]
    assert found["token_count"] == repo.compile().token_count


def test_inject_puts_the_summary_after_the_system_messages_once(repo: Repo) -> None:
    repo.checkpoints.save("handover", soft=True)
    done = repo.checkpoints.inject("handover")
    context = repo.compile()
    assert [message.role for message in context.messages[:3]] == ["system", "user", "user"]
    assert (context.messages[1].kind, context.messages[1].address) == ("summary", done.address)
    assert_valid_requests(context.messages)
    tip = repo.resolve("HEAD")
    assert repo.checkpoints.inject("handover").commit is None
    repo.remove(done.address)
    assert repo.checkpoints.inject("handover").is_hidden
    assert repo.resolve("HEAD~1") == tip


def test_inject_begins_a_branch(repo: Repo) -> None:
    repo.checkpoints.save("handover", soft=True)
    repo.checkpoints.inject("handover", ref="fresh")
    (message,) = repo.compile("fresh").messages
    assert message.text == repo.checkpoints.text("handover")


def test_inject_at_the_start_of_a_context_without_a_system_message(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path, durability="fast")
    repo.append("user", "one")
    repo.checkpoints.save("s", soft=True)
    repo.append("assistant", "two")
    repo.checkpoints.inject("s")
    assert [m.kind for m in repo.compile().messages] == ["summary", "dialogue", "dialogue"]


def test_the_two_forms_are_not_mixed_up(repo: Repo) -> None:
    """Trap C32: a checkpoint is a restore point, not a summary."""
    repo.checkpoints.save("hard")
    repo.checkpoints.save("soft", soft=True)
    assert [each.form for each in repo.checkpoints.list()] == ["hard", "soft"]
    with pytest.raises(StateError, match="soft checkpoint"):
        repo.checkpoints.restore("soft")
    with pytest.raises(StateError, match="hard checkpoint"):
        repo.checkpoints.inject("hard")


def answer(text: str) -> str:
    return json.dumps({"summary": text, "decisions": [], "open_ends": ["fix the test"]})


def test_a_model_writes_the_prose_and_no_facts(repo: Repo) -> None:
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> Completion:
        asked.append(prompt)
        return Completion(f"```json\n{answer('The parser has one index now.')}\n```", "m-1")

    repo.checkpoints.save("handover", soft=True, model=model)
    found = data(repo, "handover")
    assert found["summary"] == "The parser has one index now."
    assert found["open_ends"] == ["fix the test"]
    assert [file["path"] for file in found["files"]] == ["/src/parser.py"]
    assert repo.checkpoints.show("handover").meta["model"] == "m-1"
    assert len(asked) == 1


@pytest.mark.parametrize(
    "said", ["", "no JSON", "{}", '{"summary": ""}', '{"summary": 1, "decisions": 2}']
)
def test_a_bad_answer_writes_nothing(repo: Repo, said: str) -> None:
    with pytest.raises(ModelNonsenseError):
        repo.checkpoints.save("handover", soft=True, model=lambda prompt: said)
    assert repo.checkpoints.list() == []


def test_a_faulty_answer_is_retried_once_with_its_fault(repo: Repo) -> None:
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        asked.append(prompt)
        return answer("The parser has one index now.") if len(asked) > 1 else "no JSON"

    repo.checkpoints.save("handover", soft=True, model=model)
    assert data(repo, "handover")["summary"] == "The parser has one index now."
    assert "not the JSON object asked for" in asked[1].messages[-1][1]


def test_no_model_is_asked_for_a_name_in_use(repo: Repo) -> None:
    repo.checkpoints.save("name")

    def model(prompt: Prompt) -> str:
        raise AssertionError

    with pytest.raises(AlreadyExistsError):
        repo.checkpoints.save("name", soft=True, model=model)


def test_a_secret_that_a_model_writes_is_not_stored(tmp_path: Path) -> None:
    secret = "ghp_" + "a8Kd03Lmz7QwErTy" * 2 + "Zx9v"
    repo = Repo.init(tmp_path, secrets="block", durability="fast")
    repo.append("user", "go")
    with pytest.raises(SecretFoundError):
        repo.checkpoints.save("s", soft=True, model=lambda prompt: answer(f"token {secret}"))
    assert repo.checkpoints.list() == []


def test_an_empty_context_has_no_summary(repo: Repo) -> None:
    for message in list(repo.compile().messages):
        if message.address in [each.address for each in repo.compile().messages]:
            repo.remove(message.address)
    with pytest.raises(InvalidInputError, match="no message"):
        repo.checkpoints.save("s", soft=True)
