"""Rebase and merge have the same kinds of conflicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, pending, said
from trace_store import FixedClock, Message, Repo
from trace_store.merge.conflicts import Resolution

Address = tuple[bytes, int]
Line = Callable[[Repo, list[Address]], Any]


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": name, "parameters": {"type": "object", "properties": {}}}


CASES: dict[str, tuple[Line, Line]] = {
    "both-edited": (
        lambda repo, at: repo.edit(at[1], "ours"),
        lambda repo, at: repo.restore(at[1], version=0),
    ),
    "contradicting-tools": (
        lambda repo, at: repo.set_tools([tool("x")]),
        lambda repo, at: repo.set_tools([tool("y")]),
    ),
    "both-moved": (
        lambda repo, at: repo.move(at[1], after=at[4]),
        lambda repo, at: repo.move(at[1], after=at[3]),
    ),
    "both-compressed": (
        lambda repo, at: repo.replace(at[:2], [Message("user", "short")]),
        lambda repo, at: repo.replace(at[1:3], [Message("user", "brief")]),
    ),
}
SHOWN = {
    ("both-edited", "ours"): ["a", "ours", "c", "d", "e"],
    ("both-edited", "theirs"): ["a", "b", "c", "d", "e"],
    ("both-edited", "both"): ["a", "ours\nb", "c", "d", "e"],
    ("contradicting-tools", "ours"): ["x"],
    ("contradicting-tools", "theirs"): ["y"],
    ("contradicting-tools", "both"): ["x", "y"],
    ("both-moved", "ours"): ["a", "c", "d", "e", "b, again"],
    ("both-moved", "theirs"): ["a", "c", "d", "b, again", "e"],
    ("both-compressed", "ours"): ["short", "c", "d", "e"],
    ("both-compressed", "theirs"): ["a", "brief", "d", "e"],
    ("both-compressed", "both"): ["short", "brief", "d", "e"],
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, environment=ADA, clock=FixedClock(step=1000))


def lines(repo: Repo, ours: Line, theirs: Line) -> list[Address]:
    """Let `main` and `side` part, and HEAD be on `side`; return the messages that both have."""
    at = repo.commit([Message("user", text) for text in "abcde"]).addresses
    repo.edit(at[1], "b, again")
    repo.branches.switch("side", create=True)
    theirs(repo, list(at))
    repo.append("user", "f")
    repo.branches.switch("main")
    ours(repo, list(at))
    repo.branches.switch("side")
    return list(at)


@pytest.mark.parametrize(("kind", "choice"), SHOWN)
def test_the_same_conflict_as_in_a_merge(repo: Repo, kind: str, choice: str) -> None:
    lines(repo, *CASES[kind])
    before = said(repo)
    for join in (repo.merge, repo.rebase):
        stopped = join("main")
        assert (stopped.outcome, [each.kind for each in stopped.conflicts]) == ("stopped", [kind])
        if join == repo.merge:
            pending(repo).abort()
            assert said(repo) == before
    assert pending(repo).resolve("1", Resolution(choice)) == ()
    assert pending(repo).continue_().outcome == "done"
    tools = [each["name"] for each in repo.compile().tools]
    assert (tools if "tools" in kind else said(repo)[:-1]) == SHOWN[kind, choice]
    assert said(repo)[-1] == "f"


@pytest.mark.parametrize(("kind", "lines_"), CASES.items())
def test_the_same_on_both_sides_is_no_conflict(
    repo: Repo, kind: str, lines_: tuple[Line, Line]
) -> None:
    lines(repo, lines_[1], lines_[1])
    found = repo.rebase("main", favour="ours" if kind == "both-compressed" else "")
    assert found.outcome == "done"


def test_patterns_add_up_and_going_back_to_where_it_is_changes_nothing(repo: Repo) -> None:
    at = lines(
        repo,
        lambda repo, at: [repo.annotate(at[0], keep=["a"]), repo.edit(at[2], "c, by ours")],
        lambda repo, at: [repo.annotate(at[0], keep=["."]), repo.restore(at[2], version=0)],
    )
    found = repo.rebase("main")
    assert (found.outcome, said(repo)[2]) == ("done", "c, by ours")
    assert len(repo.contexts.fold(repo.resolve("HEAD")).entry(at[0]).keep) == 2
