"""Which commits a log's filters let through."""

from __future__ import annotations

from typing import Any

import pytest

from trace_store import FixedClock, Message, Repo, Text, ToolCall, ToolResult
from trace_store.base.oid import ObjectId
from trace_store.errors import InvalidInputError, InvalidOperationError
from trace_store.history.log import log
from trace_store.history.log_filters import LogFilter, matching, mentions
from trace_store.objects.address import Address


@pytest.fixture
def repo() -> Repo:
    clock = FixedClock(start=1000, step=1000)
    repo = Repo.memory(author="Ada", clock=clock)
    asked = repo.commit([Message("user", "Read the Plan")]).addresses[0]
    call = ToolCall("c1", "Read", '{"path": "docs/plan.md"}')
    result = ToolResult("c1", "the plan is short")
    repo.commit([Message("assistant", [call]), Message("tool", [result])])
    repo = Repo(repo.store, author="Bob")
    repo.commit([Message("assistant", "Done.", kind="dialogue")], message="About the plan")
    repo.edit(asked, "Read docs/other.md")
    repo.annotate(asked, priority="pinned")
    return repo


def found(repo: Repo, **asked: Any) -> list[int]:
    """Return the numbers of the commits, from the oldest, that are let through."""
    oids = [entry.oid for entry in log(repo.store)][::-1]
    tip = repo.resolve("HEAD")
    entries = matching(repo.contexts, log(repo.store), LogFilter(**asked), tip)
    return sorted(oids.index(entry.oid) for entry in entries)


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"text": "PLAN"}, [0, 1, 2]),
        ({"text": "plan", "role": "tool"}, [1]),
        ({"text": "other"}, [3]),
        ({"author": "bo"}, [2, 3, 4]),
        ({"operation": "edit"}, [3]),
        ({"role": "tool"}, [1]),
        ({"role": "user"}, [0, 3]),
        ({"tool": "Read"}, [1]),
        ({"tool": "Read", "role": "tool"}, [1]),
        ({"tool": "Write", "role": "tool"}, []),
        ({"path": "plan.md"}, [1]),
        ({"path": "docs/"}, [1, 3]),
        ({"path": "an.md"}, []),
        ({"priority": "pinned"}, [0, 3, 4]),
        ({"priority": "pinned", "role": "assistant"}, []),
        ({"priority": "skip"}, []),
    ],
    ids=str,
)
def test_filters(repo: Repo, asked: dict[str, Any], numbers: list[int]) -> None:
    assert found(repo, **asked) == numbers


def test_times_and_what_happened_to_a_message(repo: Repo) -> None:
    entries = list(log(repo.store))[::-1]
    assert found(repo, since=entries[3].time) == [3, 4]
    assert found(repo, since=entries[3].time + 1) == [4]
    assert found(repo, until=entries[1].time) == [0, 1]
    assert found(repo, until=entries[1].time - 1) == [0]
    assert found(repo, follow=Address.of(entries[0].oid, 0)) == [0, 3, 4]
    assert found(repo, follow=Address.of(entries[1].oid, 1)) == [1]


def test_what_there_is_not(repo: Repo) -> None:
    with pytest.raises(InvalidInputError, match="one of add"):
        found(repo, operation="nothing")
    with pytest.raises(InvalidInputError, match="one of pinned"):
        found(repo, priority="nothing")


def test_a_walk_after_a_message_ends_where_it_was_made(repo: Repo) -> None:
    last = repo.append("user", "last")
    entries = log(repo.store)
    wanted = LogFilter(follow=last.addresses[0])
    assert [e.oid for e in matching(repo.contexts, entries, wanted, last.oid)] == [last.oid]
    assert len(list(entries)) == 5, "what came before was not looked at"


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        ("see src/app.py.", "app.py", True),
        ("see src/app.py", "src/app.py", True),
        ("see src/app.pyc", "app.py", False),
        ("see my_app.py", "app.py", False),
        ('{"path":"/home/a/app.py"}', "a/app.py", True),
        ("src/app.py", "src/", True),
        ("mysrc/app.py", "src/", False),
        ("x/src/app.py", "/src/", True),
        ("", "a", False),
    ],
)
def test_a_path_is_more_than_a_part_of_a_name(text: str, path: str, told: bool) -> None:
    assert mentions(text, path) == told


def test_text_that_is_not_here_says_nothing() -> None:
    with Repo.memory() as repo:
        repo.append("user", [Text("x" * 3)])
        assert found(repo, text="y") == []


def test_facts_settings_and_labels_are_found() -> None:
    with Repo.memory() as repo:
        one = repo.commit(
            [Message("user", "a")],
            meta={"ticket": "T-1"},
            settings={"temperature": 0.2, "greedy": False},
        )
        two = repo.commit([Message("user", "b")], meta={"ticket": "T-2"})
        label = repo.annotate(two.addresses, labels="decision")

        def oids(**asked: Any) -> list[ObjectId]:
            return [entry.oid for entry in repo.log(**asked)]

        assert oids(meta="ticket") == [two.oid, one.oid]
        assert (
            oids(meta="ticket=T-1")
            == oids(meta="temperature=0.2")
            == oids(meta="greedy=false")
            == [one.oid]
        )
        assert oids(meta="ticket=") == oids(meta="T-1") == []
        assert oids(label="decision") == [label.oid]
        assert len(repo.compile()) == 2


@pytest.mark.parametrize("wrong", [{}, {"": "x"}, {"a" * 101: "x"}, {"a": None}, {1: "x"}, ["a"]])
def test_what_is_no_fact_is_refused(wrong: Any) -> None:
    with Repo.memory() as repo, pytest.raises(InvalidOperationError):
        repo.batch().__enter__().configure(meta=wrong)
