"""Forks: start points, comparison, and the archived loser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from trace_store import Message, Repo, ToolCall
from trace_store.errors import (
    AlreadyExistsError,
    InvalidInputError,
    MessageNotFoundError,
    RefNotFoundError,
    StateError,
)
from trace_store.maintenance.fsck import fsck


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="Ada", durability="fast")
    repo.commit([Message("user", "one"), Message("assistant", "two"), Message("user", "three")])
    repo.append("assistant", "four")
    return repo


def texts(repo: Repo, revision: str = "HEAD") -> list[str]:
    return [message.text for message in repo.compile(revision).messages]


def test_a_fork_remembers_where_it_began(repo: Repo) -> None:
    made = repo.forks.create("idea")
    assert (made.parent, made.point) == ("refs/heads/main", repo.resolve("HEAD"))
    assert repo.forks.of("refs/heads/idea") == made
    assert repo.forks.of("refs/heads/main") is None
    assert repo.status().branch == "main"
    repo.undo()
    assert [branch.name for branch in repo.branches.list()] == ["main"]
    assert repo.checkpoints.list() == []


def test_a_fork_ends_with_the_message_that_is_named(repo: Repo) -> None:
    first = repo.compile().messages[0].address
    repo.forks.create("from-last", start="HEAD.0")
    repo.forks.create("from-middle", start="HEAD~1.1")
    assert repo.resolve("from-last") == repo.resolve("main")
    assert texts(repo, "from-middle") == ["one", "two"]
    assert repo.compile("from-middle").messages[0].address == first
    assert repo.forks.compare("main", "from-middle").right.messages == ()
    assert len(repo.forks.compare("main", "from-middle").left.messages) == 2
    assert fsck(repo.store) == []


def test_bad_starts_and_names(repo: Repo) -> None:
    repo.forks.create("idea")
    with pytest.raises(AlreadyExistsError):
        repo.forks.create("idea")
    with pytest.raises(MessageNotFoundError):
        repo.forks.create("other", start="HEAD.7")
    with pytest.raises(RefNotFoundError):
        repo.forks.merge("main", "never")
    with pytest.raises(InvalidInputError):
        repo.forks.merge("main", "main")


def forked(repo: Repo) -> None:
    """Let `main` and `idea` diverge, with HEAD on main."""
    repo.forks.create("idea")
    repo.append("user", "Use JSON")
    repo.append("assistant", "I chose JSON because it is plain.")
    repo.branches.switch("idea")
    arguments = json.dumps({"file_path": "/src/db.py", "content": "x"})
    repo.append("assistant", [ToolCall("1", "Write", arguments)])
    repo.append("assistant", "SQLite is <b>twice</b> as fast.")
    repo.branches.switch("main")


def test_compare_shows_both_sides_since_the_fork(repo: Repo, tmp_path: Path) -> None:
    point = repo.resolve("HEAD")
    forked(repo)
    found = repo.forks.compare("main", "idea")
    assert found.point == point
    assert found.left.messages[0].text == "Use JSON"
    assert [d.reason for d in found.left.state.decisions] == ["because it is plain."]
    assert [(f.path, f.writes) for f in found.right.state.files] == [("/src/db.py", 1)]
    assert found.right.outcome.startswith("SQLite")
    before = repo.compile(point).message_token_count
    assert found.left.state.token_count == repo.compile("main").message_token_count - before
    file = tmp_path / "sides.html"
    for _ in range(2):  # its own page is replaced
        found.save_page(file)
    page = file.read_text(encoding="utf-8")
    body = page[page.index("<body>") :]
    assert [body.count(f">{side.name}<") for side in (found.left, found.right)] == [1, 1]
    assert "&lt;b&gt;twice" in page
    assert "<b>twice" not in page
    assert not re.search(r"<script|src=|https?://", page)
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(AlreadyExistsError):
        found.save_page(file)
    assert file.read_text(encoding="utf-8") == "mine"


def test_branches_without_a_common_start_are_shown_whole(repo: Repo) -> None:
    repo.checkpoints.save("s", soft=True)
    repo.checkpoints.inject("s", ref="unrelated")
    found = repo.forks.compare("main", "unrelated")
    assert not found.is_related
    assert found.start == "no common start: all messages of both are shown"
    for side in (found.left, found.right):
        assert len(side.messages) == len(repo.compile(side.name).messages)
    repo.forks.create("idea")
    assert repo.forks.compare("main", "idea").is_related


def test_the_loser_is_archived_with_its_conclusion(repo: Repo) -> None:
    forked(repo)
    tip = repo.resolve("idea")
    done = repo.forks.merge("main", "idea", reason="simpler")
    assert not done.is_moved
    assert repo.resolve("checkpoints/archived/idea^{commit}") == tip
    assert [branch.name for branch in repo.branches.list()] == ["main"]
    message = repo.compile().messages[-1]
    assert message.kind == "decision"
    assert "kept main, archived idea. simpler" in message.text
    assert "twice" in message.text
    assert repo.checkpoints.show("archived/idea").reason == done.conclusion
    assert fsck(repo.store) == []
    repo.undo()
    assert repo.resolve("idea") == tip
    assert repo.forks.of("refs/heads/idea") is not None


def test_a_winning_fork_takes_the_place_of_its_parent(repo: Repo) -> None:
    forked(repo)
    tip = repo.resolve("main")
    done = repo.forks.merge("idea", "main")
    assert done.is_moved
    assert repo.resolve("main") == repo.resolve("idea") == done.commit
    assert repo.resolve("ORIG_HEAD") == tip
    repo.undo()
    assert repo.resolve("main") == tip


def test_the_branch_that_one_is_on_is_not_deleted(repo: Repo) -> None:
    forked(repo)
    repo.branches.switch("idea")
    with pytest.raises(StateError, match="HEAD is on idea"):
        repo.forks.merge("main", "idea")
    assert repo.checkpoints.list("archived/*") == []
