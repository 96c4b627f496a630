"""Warnings about another order, as in a slow and obvious definition, and about new messages before an answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.merge.support.sides import Builder
from tests.support.lines import LINES, repo_and_line
from trace_store import Repo
from trace_store.merge import meaning_warnings
from trace_store.repo.line import Line


@given(
    st.lists(st.sampled_from(["user", "system", "call", "result"]), max_size=9).flatmap(
        lambda roles: st.tuples(st.just(roles), st.permutations(range(len(roles))))
    )
)
def test_warnings_are_about_all_that_passed(drawn: tuple[list[str], list[int]]) -> None:
    roles, order = drawn
    line = Builder("line")
    for number, role in enumerate(roles):
        if role == "call":
            line.call(f"c{number % 2}")
        elif role == "result":
            line.result(f"c{number % 2}")
        else:
            line.say(role, f"said {number}")
    entries = line.fold.entries
    after = [entries[at].address for at in order]
    expected: list[meaning_warnings.MeaningWarning] = []
    for at, entry in enumerate(entries):
        rank = order.index(at)
        overtook = [e for n, e in enumerate(entries) if n > at and order.index(n) < rank]
        fell = [e for n, e in enumerate(entries) if n < at and order.index(n) > rank]
        if overtook or fell:
            expected += meaning_warnings._warnings_about(entry, overtook, fell, lambda _: "")
    assert meaning_warnings.check_order(entries, after, lambda _: "") == expected


def new_messages_on_both(name: str, role: str) -> tuple[Repo, Line]:
    """Let a line continue with an answer, and the branch `upstream` with a message of a role."""
    repo, line = repo_and_line(name)
    line.append("user", "What is left to do?")
    repo.branches.create("upstream", name)
    line.append("assistant", "Three bugs and the changelog.")
    repo.line("upstream").append(role, "Only bugs, please.")
    return repo, line


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", ["rebase", "cherry_pick", "merge"])
@pytest.mark.parametrize("role", ["user", "system"])
def test_an_answer_that_was_written_without_a_new_message_is_warned_about(
    name: str, verb: str, role: str
) -> None:
    repo, line = new_messages_on_both(name, role)
    answer, added = (each.compile().messages[-1].address for each in (line, repo.line("upstream")))
    if verb == "rebase":
        found = line.rebase("upstream")
    else:
        repo.branches.create("target", "upstream")
        found = getattr(repo.line("target"), verb)(name)
    [warning] = found.warnings
    assert (warning.kind, warning.address) == ("instruction-added", answer)
    assert warning.others == (added,)
    assert "user message" in warning.meaning


@pytest.mark.parametrize("verb", ["rebase", "cherry_pick", "merge"])
def test_a_turn_that_was_asked_for_is_not_warned_about(verb: str) -> None:
    repo, line = repo_and_line("other")
    line.append("user", "What is left to do?")
    line.append("assistant", "Three bugs.")
    repo.branches.create("upstream", "other")
    line.append("user", "And the changelog?")
    line.append("assistant", "That, too.")
    repo.line("upstream").append("user", "Only bugs, please.")
    found: Any
    if verb == "rebase":
        found = line.rebase("upstream")
    elif verb == "merge":
        found = repo.line("upstream").merge("other")
    else:
        found = repo.line("upstream").cherry_pick("upstream..other")
    assert (found.outcome, found.warnings) in [("done", ()), ("merged", ())]
