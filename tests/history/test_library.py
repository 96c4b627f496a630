"""The front door, as an agent author uses it: dictionaries, plain functions, clear refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trace_store import Environment, Message, Repo, Text, ToolCall, ToolResult
from trace_store.errors import (
    InvalidInputError,
    InvalidMessageError,
    NotFoundError,
    RepositoryNotFoundError,
)

ADA = Environment(author="ada")


@pytest.fixture
def repo() -> Repo:
    return Repo.memory(author="ada")


def test_dictionaries_of_providers_are_messages(repo: Repo) -> None:
    repo.commit(
        [
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        ]
    )
    assert [m.parts for m in repo.compile()] == [
        (Text("look"),),
        (ToolCall("c1", "read", "{}"),),
        (ToolResult("c1", "found"),),
        (Text("done"),),
    ]


def test_arguments_of_a_call_may_be_a_mapping(repo: Repo) -> None:
    repo.append("assistant", [ToolCall("c1", "read", {"path": "a.py", "n": 1})])
    part = repo.compile().messages[0].parts[0]
    assert part == ToolCall("c1", "read", '{"path":"a.py","n":1}')


@pytest.mark.parametrize("content", [None, 5, {"type": "text"}, Text("bare"), ["text"], b"bytes"])
def test_content_of_another_kind_is_refused(repo: Repo, content: Any) -> None:
    with pytest.raises(InvalidMessageError):
        repo.append("user", content)
    target = repo.append("user", "x").addresses[0]
    with pytest.raises(InvalidMessageError):
        repo.edit(target, content)


@pytest.mark.parametrize("message", ["text", 5, None, {"content": "no role"}, {"role": "poet"}])
def test_what_is_no_message_is_refused(repo: Repo, message: Any) -> None:
    with pytest.raises(InvalidMessageError):
        repo.commit([message])


def test_a_plain_function_counts_tokens(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path, environment=ADA, tokenizer=lambda text: len(text.split()))
    repo.append("user", "three words here")
    context = repo.compile()
    assert (context.text_token_count, context.text_token_source) == (3, "custom:custom")
    with pytest.raises(InvalidInputError):
        Repo.open(tmp_path, environment=ADA, tokenizer="words")  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_no_other_folder(tmp_path: Path) -> None:
    Repo.init(tmp_path, environment=ADA).close()
    with pytest.raises(NotFoundError):
        Repo.open(tmp_path / "does" / "not" / "exist", environment=ADA)


def test_open_creates_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(RepositoryNotFoundError):
        Repo.open(tmp_path, environment=ADA)
    with Repo.open_or_init(tmp_path, environment=ADA) as repo:
        repo.append("user", "x")
    below = tmp_path / "a"
    below.mkdir()
    assert len(Repo.open(below, environment=ADA).compile()) == 1


@pytest.mark.parametrize("batched", [False, True])
def test_a_reworded_message_keeps_its_calls_and_results(repo: Repo, batched: bool) -> None:
    call = repo.append("assistant", [Text("hm"), ToolCall("c1", "read", "{}")]).addresses[0]
    result = repo.append("tool", [ToolResult("c1", "long", is_error=True)]).addresses[0]
    if batched:
        with repo.batch() as draft:
            draft.edit("HEAD~1.0", "reading")
            draft.edit(result, "short")
            said = draft.append("user", "now")
            draft.edit(said, "later")
            draft.remove([said])
    else:
        repo.edit(call, "reading")
        repo.edit(result, "short")
    context = repo.compile()
    assert context.messages[0].parts == (Text("reading"), ToolCall("c1", "read", "{}"))
    assert context.messages[1].parts == (ToolResult("c1", "short", is_error=True),)
    assert not context.render("openai", strict=True).repairs[1:]
    context.render("anthropic", model="claude-opus-4-6")
    both = repo.append("tool", [ToolResult("c2", "a"), ToolResult("c3", "b")]).addresses[0]
    repo.edit(both, "both", all_results=True)
    assert repo.compile().messages[-1].parts == (ToolResult("c2", "both"), ToolResult("c3", "both"))
    repo.edit(both, [ToolResult("c2", "a"), ToolResult("c3", "B")])


def test_the_usage_of_a_whole_response_names_its_model(repo: Repo) -> None:
    said = {"role": "assistant", "model": "claude-opus-4-6", "content": "Yes."}
    repo.append("user", "Well?")
    with repo.batch() as draft:
        draft.extend([said])
        draft.record_usage({**said, "usage": {"input_tokens": 9, "output_tokens": 2}})
    recorded = next(repo.log()).commit.operations[-1].fields
    assert (recorded["input_total"], recorded["model"]) == (9, "claude-opus-4-6")


def test_what_says_nothing_new_is_told_apart(repo: Repo) -> None:
    repo.commit([Message("user", "q")])
    repo.record_usage({"input_tokens": 1200, "output_tokens": 3}, model="some-model")
    context = repo.compile(strategy="messages")
    assert [m.text for m in context] == ["user: q"]
