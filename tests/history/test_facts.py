"""Newest facts of a branch, and the number of reads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store import FixedClock, Repo
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.history import facts


def reads_of(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that grows with each commit read for facts."""
    found: list[bytes] = []
    read = type(repo.contexts).read_commit

    def counted(self: object, oid: bytes) -> object:
        found.append(oid)
        return read(self, oid)  # type: ignore[arg-type]

    monkeypatch.setattr(type(repo.contexts), "read_commit", counted)
    return found


def test_the_newest_counts() -> None:
    repo = Repo.memory()
    assert repo.branches.facts() == {}
    repo.append("user", "One.", meta={"state": "open", "task": "T-1"})
    repo.append("user", "Two.")
    repo.append("user", "Three.", meta={"state": "closed"})
    assert repo.branches.facts() == {"state": "closed", "task": "T-1"}
    repo.undo()
    assert repo.branches.facts() == {"state": "open", "task": "T-1"}


def test_of_another_branch() -> None:
    repo = Repo.memory()
    repo.append("user", "One.", meta={"state": "open"})
    repo.branches.create("idea")
    repo.append("user", "Two.", meta={"state": "closed"}, ref="idea")
    assert repo.branches.facts("idea") == {"state": "closed"}
    assert repo.branches.facts() == {"state": "open"}


def test_a_merge_brings_what_is_younger() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "One.", meta={"a": "1", "b": "1", "c": "1"})
    repo.branches.create("idea")
    repo.append("user", "Ours.", meta={"a": "ours"})
    repo.append("user", "Theirs.", meta={"a": "theirs", "b": "theirs"}, ref="idea")
    repo.append("user", "Ours again.", meta={"b": "ours"})
    repo.merge("idea")
    assert repo.branches.facts() == {"a": "theirs", "b": "ours", "c": "1"}
    repo.append("user", "After.", meta={"a": "after"})
    assert repo.branches.facts()["a"] == "after"


def test_of_two_merges_the_younger_value_counts_whatever_was_read_before() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "One.", meta={"a": "1"})
    for name in ("older", "younger"):
        repo.branches.create(name)
        repo.append("user", "There.", meta={"a": name}, ref=name)
    repo.append("user", "Here.")
    repo.merge("younger")
    assert repo.branches.facts() == {"a": "younger"}
    repo.merge("older")
    assert repo.branches.facts() == newest(repo) == {"a": "younger"}


@pytest.mark.parametrize("count", [10, 3_000])
def test_the_cost_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        repo.append("user", "First.", meta={"state": "open"})
        for number in range(count):
            repo.append("user", f"{number}")
        assert repo.branches.facts() == {"state": "open"}
        reads = reads_of(repo, monkeypatch)
        repo.append("user", "Last.", meta={"state": "closed"})
        reads.clear()
        assert repo.branches.facts() == {"state": "closed"}
        assert len(reads) <= 2
    with Repo.open(tmp_path) as other:
        reads.clear()
        assert other.branches.facts() == {"state": "closed"}
        assert len(reads) <= 65


def test_a_damaged_file_is_ignored(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        for number in range(70):
            repo.append("user", f"{number}", meta={"number": number})
        assert repo.branches.facts() == {"number": "69"}
    (file,) = (tmp_path / ".trace" / "index").glob("*.facts")
    for data in (b"", b"{", b"[]", b'{"version":1,"tips":{"zz":1}}', b"\xff"):
        file.write_bytes(data)
        with Repo.open(tmp_path) as other:
            assert other.branches.facts() == {"number": "69"}


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_whether_a_fact_is_set_is_what_the_facts_say(data: st.DataObject) -> None:
    listed: dict[ObjectId, dict[str, str]] = {}
    steps = st.sampled_from(["append", "append", "set", "clear", "merge", "list", "other process"])
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "_UNSAVED", 3)
        patch.setattr(
            facts, "SessionLists", lambda store: SimpleNamespace(of=lambda ref: entries())
        )

        def entries() -> list[Any]:
            return [
                SimpleNamespace(summary=SimpleNamespace(tip=tip), facts=known)
                for tip, known in listed.items()
            ]

        contexts = ContextCompiler(repo.store)
        repo.append("user", "first")
        for number, step in enumerate(data.draw(st.lists(steps, max_size=14))):
            if step == "append":
                repo.append("user", str(number))
            elif step in ("set", "clear"):
                repo.append("user", "said", meta={"closed": "yes" if step == "set" else ""})
            elif step == "merge":
                repo.branches.create("side")
                if data.draw(st.booleans()):
                    repo.append("user", "said", meta={"closed": "on the side"}, ref="side")
                repo.append("user", f"side {number}", ref="side")
                repo.append("user", f"here {number}")
                repo.merge("side")
                repo.branches.delete("side")
            elif step == "list":
                listed[tip_of(repo)] = newest(repo)
            else:
                contexts = ContextCompiler(repo.store)
            found = facts.is_set(contexts, "refs/heads/main", tip_of(repo), "closed")
            assert found == bool(newest(repo).get("closed"))


def tip_of(repo: Repo) -> ObjectId:
    tip = repo.head.oid
    assert tip is not None
    return tip


def newest(repo: Repo) -> dict[str, str]:
    """Return the facts at the tip, without anything known before."""
    return facts.newest_facts(ContextCompiler(repo.store), "refs/heads/main", tip_of(repo))
