"""What users met: each history with the context that has to come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trace_store import Message, Repo, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trace_store.history.draft import CommitResult
    from trace_store.merge.conflicts import Conflict


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory() as made:
        made.append("system", "S")
        made.append("user", "Q")
        made.append("assistant", "A")
        made.branches.create("idea")
        yield made


def shown(repo: Repo) -> list[str]:
    """Return the texts of HEAD's context, pinned ones with a star."""
    return [each.text + "*" * (each.priority == "pinned") for each in repo.compile().messages]


def on(repo: Repo, branch: str, *said: tuple[str, str]) -> list[CommitResult]:
    """Switch to a branch and append messages, each as a commit."""
    repo.branches.switch(branch)
    return [repo.append(role, text) for role, text in said]


def answering(met: list[str], choice: str) -> Callable[[Conflict], str]:
    """Return a resolver that settles every conflict alike and notes their kinds."""

    def resolver(conflict: Conflict) -> str:
        met.append(conflict.kind)
        return choice

    return resolver


class TestPicked:
    def test_a_commit_and_then_the_edit_of_it(self, repo: Repo) -> None:
        _, answer = on(repo, "idea", ("user", "F1"), ("assistant", "F2"))
        edit = repo.edit(answer.addresses[0], "F2 better")
        repo.branches.switch("main")
        repo.cherry_pick(answer.oid)
        repo.cherry_pick(edit.oid)
        assert shown(repo) == ["S", "Q", "A", "F2 better"]
        assert repo.compile().messages[3].address == answer.addresses[0]

    def test_merge_and_rebase_give_the_same_text(self, repo: Repo) -> None:
        _, answer = on(repo, "idea", ("user", "F1"), ("assistant", "F2"))
        repo.edit(answer.addresses[0], "F2 better")
        repo.annotate(answer.addresses[0], priority="pinned")
        on(repo, "main", ("user", "M1"))
        repo.branches.create("rebased", "idea")
        repo.merge("idea")
        merged = shown(repo)
        repo.branches.switch("rebased")
        repo.rebase("main~1")
        assert sorted(shown(repo)) == sorted(merged)

    def test_what_is_there_makes_no_commit(self, repo: Repo) -> None:
        (first,) = on(repo, "idea", ("user", "F1"))
        repo.branches.switch("main")
        repo.cherry_pick(first.oid)
        found = repo.cherry_pick(first.oid)
        assert (found.outcome, found.there) == ("up-to-date", (first.oid,))
        assert shown(repo) == ["S", "Q", "A", "F1"]

    def test_picked_pinned_and_merged_is_one_message(self, repo: Repo) -> None:
        first, second = on(repo, "idea", ("user", "F1"), ("assistant", "F2"))
        repo.branches.switch("main")
        repo.cherry_pick(second.oid)
        repo.annotate(second.addresses[0], priority="pinned")
        repo.merge("idea")
        assert sorted(shown(repo)) == ["A", "F1", "F2*", "Q", "S"]
        assert first.oid != second.oid

    def test_picked_removed_and_merged_stays_removed(self, repo: Repo) -> None:
        _, second = on(repo, "idea", ("user", "F1"), ("assistant", "F2"))
        repo.branches.switch("main")
        repo.cherry_pick(second.oid)
        repo.remove(second.addresses[0])
        repo.merge("idea")
        assert shown(repo) == ["S", "Q", "A", "F1"]


def test_squashed_edited_and_squashed_again_is_one_message_each(repo: Repo) -> None:
    _, second = on(repo, "idea", ("user", "F1"), ("assistant", "F2"))
    on(repo, "main", ("user", "M1"))
    repo.merge("idea", squash=True)
    repo.edit(second.addresses[0], "F2 reworded")
    on(repo, "idea", ("user", "F3"))
    repo.branches.switch("main")
    repo.merge("idea", squash=True)
    assert shown(repo) == ["S", "Q", "A", "M1", "F1", "F2 reworded", "F3"]
    repo.merge("idea")
    assert shown(repo) == ["S", "Q", "A", "M1", "F1", "F2 reworded", "F3"]


def test_a_rebased_branch_meets_an_old_copy_of_itself(repo: Repo) -> None:
    first, _ = on(repo, "idea", ("user", "F1"), ("user", "F2"))
    repo.branches.create("old")
    on(repo, "main", ("user", "M1"))
    repo.branches.switch("idea")
    repo.rebase("main")
    repo.annotate(first.addresses[0], priority="pinned")
    repo.branches.switch("old")
    repo.append("user", "G1")
    repo.merge("idea")
    assert sorted(shown(repo)) == ["A", "F1*", "F2", "G1", "M1", "Q", "S"]


class TestUnits:
    @pytest.fixture
    def exchange(self, repo: Repo) -> tuple[CommitResult, CommitResult]:
        repo.branches.switch("idea")
        call = repo.commit([Message("assistant", [ToolCall("c1", "read", "{}")])])
        result = repo.commit([Message("tool", [ToolResult("c1", "found")])])
        return call, result

    def test_a_result_is_hidden_with_its_call(
        self, repo: Repo, exchange: tuple[CommitResult, CommitResult]
    ) -> None:
        call, result = exchange
        done = repo.remove(result.addresses[0])
        assert done.also == (call.addresses[0],)
        assert shown(repo) == ["S", "Q", "A"]
        repo.restore(call.addresses[0])
        assert len(repo.compile()) == 5

    def test_a_pinned_call_and_its_result_hidden_on_the_other_side(
        self, repo: Repo, exchange: tuple[CommitResult, CommitResult]
    ) -> None:
        call, result = exchange
        repo.branches.create("other")
        repo.remove(result.addresses[0])
        repo.branches.switch("other")
        repo.annotate(call.addresses[0], priority="pinned")
        met: list[str] = []
        repo.merge("idea", resolver=answering(met, "ours"))
        assert met == ["pinned-and-removed"]
        assert [each.priority for each in repo.compile().messages][3:] == ["pinned", "pinned"]

    def test_a_result_that_comes_later_takes_the_state_of_its_call(self, repo: Repo) -> None:
        call = repo.commit([Message("assistant", [ToolCall("c2", "read", "{}")])])
        repo.remove(call.addresses[0])
        repo.commit([Message("tool", [ToolResult("c2", "late")])])
        assert shown(repo) == ["S", "Q", "A"]


class TestRebased:
    def test_two_answers_to_one_question(self, repo: Repo) -> None:
        on(repo, "main", ("user", "Q2"))
        repo.branches.create("one")
        on(repo, "one", ("assistant", "ours"))
        on(repo, "main", ("assistant", "upstream's"))
        repo.branches.switch("one")
        met: list[str] = []
        repo.rebase("main", resolver=answering(met, "both"))
        assert met == ["two-answers"]

    def test_it_warns_of_a_reworded_question(self, repo: Repo) -> None:
        (asked,) = on(repo, "main", ("user", "Q2"))
        repo.branches.create("one")
        on(repo, "one", ("assistant", "an answer"))
        repo.branches.switch("main")
        repo.edit(asked.addresses[0], "another question")
        repo.append("system", "Be brief.")
        repo.branches.switch("one")
        found = repo.rebase("main")
        assert {each.kind for each in found.warnings} == {"question-reworded", "instruction-added"}

    def test_what_edits_a_dropped_message_is_a_conflict_that_brings_it_or_not(
        self, repo: Repo
    ) -> None:
        (first,) = on(repo, "idea", ("user", "F1"))
        repo.edit(first.addresses[0], "F1 better")
        on(repo, "main", ("user", "M1"))
        repo.branches.switch("idea")
        met: list[str] = []
        repo.rebase(
            "main",
            plan=lambda steps: steps[1:],
            resolver=answering(met, "theirs"),
        )
        assert met == ["missing-target"]
        assert shown(repo) == ["S", "Q", "A", "M1", "F1 better"]


def test_a_merge_reverted_and_the_revert_reverted(repo: Repo) -> None:
    on(repo, "idea", ("user", "F1"))
    answer = repo.compile().messages[2].address
    repo.edit(answer, "A better")
    on(repo, "main", ("user", "M1"))
    merged = repo.merge("idea")
    assert shown(repo) == ["S", "Q", "A better", "M1", "F1"]
    assert merged.after is not None
    once = repo.revert(merged.after)
    assert shown(repo) == ["S", "Q", "A", "M1"]
    repo.revert(once.after)
    assert shown(repo) == ["S", "Q", "A better", "M1", "F1"]


def test_a_revert_of_what_was_edited_since_is_a_conflict(repo: Repo) -> None:
    (said,) = on(repo, "main", ("user", "X1"))
    repo.edit(said.addresses[0], "X2")
    found = repo.revert(said.oid)
    assert [each.kind for each in found.conflicts] == ["edited-and-removed"]


def test_both_edited_is_a_conflict_and_the_same_edit_is_none(repo: Repo) -> None:
    answer = repo.compile().messages[2].address
    on(repo, "idea", ("user", "F1"))
    repo.edit(answer, "A better")
    repo.branches.switch("main")
    repo.edit(answer, "A better")
    assert repo.merge("idea").outcome == "merged"
    repo.edit(answer, "A other")
    repo.branches.switch("idea")
    repo.edit(answer, "A best")
    repo.branches.switch("main")
    assert [each.kind for each in repo.merge("idea").conflicts] == ["both-edited"]
