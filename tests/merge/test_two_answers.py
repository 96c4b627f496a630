"""Answers of both sides to one message: the same conflict, whichever side merges the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Repo, Text, ToolCall, ToolResult
from trace_store.objects.address import Address
from trace_store.repo.line import Line

Change = Callable[[Line, Address, Address], object]


def unchanged(line: Line, question: Address, answer: Address) -> None:
    pass


def question_removed(line: Line, question: Address, answer: Address) -> None:
    line.remove(question)


def question_leaves_a_ghost(line: Line, question: Address, answer: Address) -> None:
    line.remove(question, ghost=True)


def question_skipped(line: Line, question: Address, answer: Address) -> None:
    line.annotate(question, priority="skip")


def question_summarised(line: Line, question: Address, answer: Address) -> None:
    line.replace([question], [{"role": "user", "content": "In short: where?"}])


def question_moved(line: Line, question: Address, answer: Address) -> None:
    line.move(question)


def answered_again(line: Line, question: Address, answer: Address) -> None:
    line.remove(answer)


def diverged(name: str, change: Change, *, more: bool) -> tuple[Repo, str]:
    """Answer a question on a line and on the branch `side`, which also makes a change."""
    repo, line = repo_and_line(name)
    [question] = line.append("user", "Where to?").addresses
    [answer] = line.append("assistant", "Let me see.").addresses if more else [question]
    repo.branches.create("side", name)
    line.append("assistant", "To Rome.")
    change(repo.line("side"), question, answer)
    repo.line("side").append("assistant", "To Oslo.")
    return repo, name


def met(repo: Repo, ours: str, theirs: str) -> list[tuple[object, ...]]:
    """Return the conflicts of a merge, which is not made."""
    found = repo.line(ours).merge(theirs).conflicts
    if repo.in_progress is not None:
        repo.in_progress.abort()
    else:
        repo.undo()
    return [
        (each.kind, each.addresses, *([m.text for m in side] for side in (each.ours, each.theirs)))
        for each in found
    ]


CASES: list[tuple[Change, bool, bool]] = [
    (unchanged, False, True),
    (unchanged, True, False),
    (question_removed, False, True),
    (question_leaves_a_ghost, False, True),
    (question_skipped, False, True),
    (question_summarised, False, True),
    (question_moved, False, False),
    (answered_again, True, True),
]


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("change", "more", "conflicts"), CASES)
def test_a_merge_meets_the_same_answers_from_either_side(
    name: str, change: Change, more: bool, conflicts: bool
) -> None:
    repo, name = diverged(name, change, more=more)
    forward, back = met(repo, name, "side"), met(repo, "side", name)
    assert [(kind, about, theirs, ours) for kind, about, ours, theirs in back] == forward
    assert [each[0] for each in forward] == ["two-answers"] * conflicts
    if conflicts:
        assert forward[0][2:] == (["To Rome."], ["To Oslo."])


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", ["merge", "rebase", "cherry_pick"])
def test_a_second_result_of_a_call_is_met_behind_another_message(name: str, verb: str) -> None:
    repo, line = repo_and_line(name)
    line.append("assistant", [ToolCall("c", "look", "{}")])
    repo.branches.create("side", name)
    repo.line("side").append("tool", [ToolResult("c", "theirs")])
    line.append("user", "Hurry.")
    line.append("tool", [ToolResult("c", "ours")])
    is_pick = verb == "cherry_pick"
    target = repo.line("side") if is_pick else line
    found = getattr(target, verb)(f"side..{name}" if is_pick else "side")
    assert [each.kind for each in found.conflicts] == ["two-answers"]


@pytest.mark.parametrize("name", LINES)
def test_a_call_keeps_one_result_however_the_other_comes(name: str) -> None:
    repo, line = repo_and_line(name)
    line.append("assistant", [ToolCall("c", "look", "{}")])
    repo.branches.create("side", name)
    [theirs] = repo.line("side").append("tool", [ToolResult("c", "theirs")]).addresses
    repo.line("side").annotate(theirs, labels="decision")
    line.append("tool", [ToolResult("c", "ours")])
    assert [c.kind for c in line.cherry_pick(theirs).conflicts] == ["two-answers"]
    assert repo.in_progress is not None
    repo.in_progress.abort()
    assert [c.kind for c in line.merge("side", strategy="decisions").conflicts] == ["two-answers"]
    repo.in_progress.abort()
    found = line.merge("side", strategy="theirs")
    assert [each.kind for each in found.settled] == ["two-answers"]
    [result] = [m.parts[0] for m in line.compile().messages if m.role == "tool"]
    assert isinstance(result, ToolResult)
    assert result.content == (Text("theirs"),)
