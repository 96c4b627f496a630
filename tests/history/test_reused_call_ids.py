"""Results of a call id that was used before: they join the last unanswered call, whatever happened to the older one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Message, Text, ToolCall, ToolResult
from trace_store.objects.address import Address
from trace_store.repo.line import Line


@pytest.fixture(params=LINES)
def line(request: pytest.FixtureRequest) -> Line:
    """A line with an answered call, from which `side` has branched off."""
    repo, line = repo_and_line(request.param)
    line.commit([Message("user", "Compare two files.")])
    line.append("assistant", [Text("First file."), ToolCall("c", "read", '{"file":"one"}')])
    line.append("tool", [ToolResult("c", "one")])
    repo.branches.create("side", request.param)
    return line


def old_call(line: Line) -> Address:
    return line.compile().messages[2].address


def call_again(line: Line) -> Address:
    [address] = line.append(
        "assistant", [Text("Second file."), ToolCall("c", "read", '{"file":"two"}')]
    ).addresses
    return address


def pairs(line: Line) -> list[tuple[str, str]]:
    """Return (file, result) of the calls that a provider is sent, in order; "" for a call without a result."""
    found: dict[str, list[str]] = {}
    for message in line.compile().to_anthropic()["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_use":
                found[block["id"]] = [block["input"]["file"], ""]
            elif block["type"] == "tool_result":
                found[block["tool_use_id"]][1] = block["content"]
    return [(file, result) for file, result in found.values()]


def edited(line: Line, old: Address) -> None:
    line.edit(old, "The first file.")


def restored(line: Line, old: Address) -> None:
    line.edit(old, "The first file.")
    line.restore(old, version=0)


def shown_again(line: Line, old: Address) -> None:
    line.remove(old)
    line.restore(old)


def moved(line: Line, old: Address) -> None:
    line.move(old, last=True)


def edit_merged(line: Line, old: Address) -> None:
    line.edit(old, "The first file.", ref="refs/heads/side")
    assert line.merge("side").outcome == "merged"


@pytest.mark.parametrize("change", [edited, restored, shown_again, moved, edit_merged])
def test_a_result_joins_the_last_unanswered_call(
    line: Line, change: Callable[[Line, Address], Any]
) -> None:
    old, new = old_call(line), call_again(line)
    change(line, old)
    [result] = line.append("tool", [ToolResult("c", "two")]).addresses
    assert sorted(pairs(line)) == [("one", "one"), ("two", "two")]
    assert line.remove(new).also == (result,)


def test_a_result_joins_the_call_that_was_kept_not_the_one_that_a_merge_hid(line: Line) -> None:
    line.append("assistant", [ToolCall("c", "read", '{"file":"theirs"}')], ref="refs/heads/side")
    new = call_again(line)
    merged = line.merge("side", resolver=lambda conflict: "ours")
    assert merged.outcome == "merged"
    [result] = line.append("tool", [ToolResult("c", "two")]).addresses
    assert pairs(line) == [("one", "one"), ("two", "two")]
    assert line.remove(new).also == (result,)


def test_a_late_result_of_a_removed_call_is_hidden_with_it(line: Line) -> None:
    new = call_again(line)
    line.remove(new)
    line.append("tool", [ToolResult("c", "two")])
    assert pairs(line) == [("one", "one")]
    line.restore(new)
    assert pairs(line) == [("one", "one"), ("two", "two")]
