"""A chapter shows the session messages that came during it, without copying them."""

from __future__ import annotations

from trace_store import Message, Reasoning, Repo, Text, ToolCall
from trace_store.base.oid import hash_object
from trace_store.trajectories.reading import Chapter


def lines(repo: Repo) -> list[list[str]]:
    tr = repo.trajectories
    whole = tr.read(tr.list()[0].id)
    return [[each.line for each in tr.session_messages(each)] for each in whole.chapters]


def test_messages_are_shown_in_the_chapter_in_which_they_came(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    repo.append("assistant", "I will look")
    tr.decide("Which?", "JWT")
    repo.append("assistant", [ToolCall("c1", "Bash", {"command": "pytest"})])
    tr.chapter("Tests")
    repo.append("user", "write more")
    assert lines(repo) == [["assistant: I will look", "assistant: [Bash] pytest"], []]
    tr.record("finding", "slow")
    assert lines(repo)[1] == ["user: write more"]
    repo.append("assistant", "done")
    tr.complete()
    assert lines(repo)[1] == ["user: write more", "assistant: done"]


def test_each_of_several_agents_has_a_branch_of_its_own(repo: Repo) -> None:
    tr = repo.trajectories
    repo.branches.create("bo", "HEAD")
    bo = repo.line("bo")
    bo.append("user", "before the trajectory")
    tr.start("Sign in", agent="lead")
    bo.append("assistant", "I take the tests")
    repo.append("assistant", "I take the tokens")
    tr.record("note", "divided", agent="lead")
    tr.chapter("Tests", agent="bo", session=bo.head.oid)
    bo.append("assistant", "tests are written")
    tr.record("note", "written", agent="bo", session=bo.head.oid)
    assert lines(repo) == [
        ["assistant: I take the tests", "assistant: I take the tokens"],
        ["assistant: tests are written"],
    ]


def test_messages_from_a_merge_are_not_shown_twice(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    repo.branches.create("idea", "HEAD")
    repo.line("idea").append("user", "an idea")
    repo.append("user", "meanwhile")
    repo.merge("idea")
    tr.record("note", "merged")
    assert lines(repo) == [["user: meanwhile"]]


def test_thinking_is_separate_from_the_line(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    repo.commit([Message("assistant", [Reasoning("JWT is small."), Text("JWT it is.")])])
    repo.commit([Message("assistant", [Reasoning("And signed.")])])
    tr.record("note", "x")
    (chapter,) = tr.read(tr.find().id).chapters
    said = [(each.line, each.thinking) for each in tr.session_messages(chapter)]
    assert said == [("assistant: JWT it is.", "JWT is small."), ("", "And signed.")]


def test_a_session_that_is_not_here_is_left_out(repo: Repo) -> None:
    chapter = Chapter("", "ada", 0, None, (), tips=(hash_object(b"not fetched"),))
    assert repo.trajectories.session_messages(chapter) == []
