"""Merges of lines with summaries: replaced messages, conflicts, changed sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, branch, on, pending, said
from trace_store import FixedClock, Message, Repo


class Work:
    """A repository with four messages."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo.init(folder, environment=ADA, clock=FixedClock(), durability="fast")
        self.messages: list[Any] = [
            self.repo.append("user", f"m{number}").addresses[0] for number in range(4)
        ]

    def summarise(self, text: str, *targets: Any) -> Any:
        """Put a summary in the place of messages and return its address."""
        return self.repo.replace(targets, [Message("user", text)]).addresses[0]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


@pytest.fixture
def twice(work: Work) -> Work:
    """On main, a summary of a summary; on side, a summary of the same first messages."""
    repo, (one, two, three, _) = work.repo, work.messages
    branch(repo, "side")
    first = work.summarise("S1", one, two)
    work.summarise("S1 and m2", first, three)
    on(repo, "side")
    work.summarise("S2", one, two)
    on(repo, "main")
    return work


def test_what_theirs_says_of_a_message_is_kept_when_its_summary_goes(work: Work) -> None:
    repo, (one, two, three, _) = work.repo, work.messages
    branch(repo, "side")
    work.summarise("S1", one, two)
    on(repo, "side")
    repo.edit(one, "m0 corrected")
    repo.annotate([one], labels=["decision"], priority="pinned")
    work.summarise("S2", two, three)
    on(repo, "main")
    found = repo.merge("side", favour="theirs")
    assert {each.kind for each in found.settled} == {"both-compressed", "compressed-and-edited"}
    assert said(repo) == ["m0 corrected", "S2", "m3"]
    shown = repo.compile().messages[0]
    assert (shown.priority, set(shown.labels)) == ("pinned", {"decision"})


@pytest.mark.parametrize(
    ("choice", "shown"), [("ours", ["S1 and m2", "m3"]), ("theirs", ["S2", "m2", "m3"])]
)
def test_a_summary_of_a_summary_stands_for_all(twice: Work, choice: str, shown: list[str]) -> None:
    repo = twice.repo
    assert [each.kind for each in repo.merge("side").conflicts] == ["both-compressed"]
    pending(repo).resolve("1", choice)
    pending(repo).continue_()
    assert said(repo) == shown


@pytest.mark.parametrize(
    ("choice", "shown"), [("ours", ["S1 and m2", "m3"]), ("theirs", ["S2", "m2", "m3"])]
)
def test_a_rebase_asks_the_same(twice: Work, choice: str, shown: list[str]) -> None:
    repo = twice.repo
    on(repo, "side")
    assert [each.kind for each in repo.rebase("main").conflicts] == ["both-compressed"]
    pending(repo).resolve("1", choice)
    pending(repo).continue_()
    assert said(repo) == shown


def test_a_summary_that_came_in_by_a_merge_is_a_rival_too(work: Work) -> None:
    repo, (one, two, _, _) = work.repo, work.messages
    for name in ("side", "topic"):
        branch(repo, name)
    repo.append("user", "on")
    on(repo, "topic")
    work.summarise("S1", one, two)
    on(repo, "main")
    repo.merge("topic")
    on(repo, "side")
    work.summarise("S2", one, two)
    on(repo, "main")
    assert [each.kind for each in repo.merge("side").conflicts] == ["both-compressed"]


def test_a_summary_that_is_summarised_is_taken_back_as_is_decided(work: Work) -> None:
    repo, (one, two, three, _) = work.repo, work.messages
    first = work.summarise("S1", one, two)
    work.summarise("S1 and m2", first, three)
    repo.revert("HEAD~1", favour="theirs")
    assert sorted(said(repo)) == ["S1 and m2", "m0", "m1", "m3"]
