"""Orders that a merge or a revert brings: exactly those of the other side, also within a call and its results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Message, ToolCall, ToolResult
from trace_store.objects.address import Address
from trace_store.repo.line import Line

TALK = "question call note result end"


def interrupted(line: Line) -> list[Address]:
    """Commit a call whose result came after a note of the user."""
    messages = [
        Message("user", "question"),
        Message("assistant", [ToolCall("c", "read", "{}")]),
        Message("user", "note"),
        Message("tool", [ToolResult("c", "seen")]),
        Message("user", "end"),
    ]
    return [line.append(each).addresses[0] for each in messages]


def order(line: Line) -> str:
    names = {"tool_call": "call", "tool_result": "result"}
    parts = [message.parts[0] for message in line.compile().messages[1:]]
    return " ".join(names.get(part.type, str(getattr(part, "text", ""))) for part in parts)


def moved(line: Line, targets: Sequence[Address], after: Address | None) -> None:
    with line.batch() as draft:
        draft.move(targets, after=after)


@pytest.mark.parametrize("name", LINES)
def test_a_reverted_revert_of_a_move_restores_the_order(name: str) -> None:
    line = repo_and_line(name)[1]
    addresses = interrupted(line)
    line.move(addresses[2], last=True)
    assert order(line) == "question end call result note"
    line.revert("HEAD")
    assert order(line) == TALK
    line.revert("HEAD")
    assert order(line) == "question end call result note"
    line.append("user", "more")
    line.revert("HEAD~1")
    assert order(line) == f"{TALK} more"


@pytest.mark.parametrize("name", LINES)
def test_every_move_can_be_reverted_and_made_again(name: str) -> None:
    line = repo_and_line(name)[1]
    addresses = interrupted(line)
    start = order(line)
    for targets in itertools.permutations(addresses, 2):
        for after in [None, *addresses]:
            if after in targets:
                continue
            moved(line, targets, after)
            new = order(line)
            if new != start:
                line.revert("HEAD")
                assert order(line) == start
                line.revert("HEAD")
                assert order(line) == new
                line.reset("HEAD~3", hard=True)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("strategy", ["append", "theirs"])
def test_a_merge_brings_the_order_of_the_other_side(name: str, strategy: str) -> None:
    repo, line = repo_and_line(name)
    question, call, note, *_ = interrupted(line)
    repo.branches.create("side", name)
    side = repo.line("side")
    moved(side, [call], note)
    moved(side, [question], call)
    assert order(side) == "note call question result end"
    line.append("user", "ours")
    line.merge("side", strategy=strategy)
    assert order(line) == "note call question result end" + (
        " ours" if strategy == "append" else ""
    )
