"""Newest facts of a branch, and the number of reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store import FixedClock, Repo


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
