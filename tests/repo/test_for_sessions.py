"""Library features below sessions: undo of one branch, links, ranges, estimates, the state of the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store import Message, Repo, ToolCall, ToolResult, errors
from trace_store.objects.commit import read_commit


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="Ada") as made:
        yield made


def texts(repo: Repo, ref: str = "") -> list[str]:
    return [each.text for each in repo.compile(ref=ref)]


def test_undo_takes_back_what_moved_a_branch(repo: Repo) -> None:
    repo.append("user", "One.")
    repo.branches.create("idea")
    repo.append("user", "Two.", ref="idea")
    repo.append("user", "Elsewhere.")
    done = repo.undo(ref="idea")
    assert [name for name, *_ in done.moves if "trash" not in name] == ["refs/heads/idea"]
    assert texts(repo, "idea") == ["One."]
    assert texts(repo) == ["One.", "Elsewhere."]
    repo.undo(ref="idea")  # its creation
    with pytest.raises(errors.RefNotFoundError):
        repo.undo(ref="idea")


def test_undo_of_a_branch_leaves_what_others_did(repo: Repo, tmp_path: Path) -> None:
    repo.append("user", "One.", ref="idea")
    with Repo.open(tmp_path, author="Grace") as other:
        other.append("user", "Two.", ref="idea")
        other.undo(ref="idea")
        with pytest.raises(errors.StateError, match=r"nothing to undo on idea; .* by Ada"):
            other.undo(ref="idea")
    assert texts(repo, "idea") == ["One."]


def test_commits_are_linked(repo: Repo) -> None:
    first = repo.append("user", "One.")
    second = repo.commit([Message("assistant", "Two.")], links=[("answers", first.oid)])
    links = read_commit(second.oid, repo.store.objects.read).links
    assert list(links) == [("answers", first.oid)]
    with pytest.raises(errors.RevisionNotFoundError):
        repo.commit([Message("user", "Three.")], links=[("answers", "nowhere")])


def test_a_soft_checkpoint_of_a_range(repo: Repo) -> None:
    first = repo.append("user", "Build the harbour.").addresses[0]
    repo.append("assistant", "It is built.")
    second = repo.append("user", "Paint the tower.").addresses[0]
    repo.append("assistant", "It is painted.")
    repo.checkpoints.save("tower", soft=True, range=f"{second}..")
    data = repo.checkpoints.data("tower")
    assert (data["request"], data["message_count"]) == ("Paint the tower.", 2)
    assert 0 < data["token_count"] < repo.compile().token_count
    assert repo.checkpoints.state(range=f"{first}..{first}").request == "Build the harbour."
    assert repo.checkpoints.state().message_count == 4
    with pytest.raises(errors.InvalidInputError, match="requires `soft`"):
        repo.checkpoints.save("state", range=f"{second}..")
    assert [each.name for each in repo.checkpoints.list()] == ["tower"]


def test_the_state_of_work_as_a_value(repo: Repo) -> None:
    todo = (
        '{"todos":[{"content":"Plan","status":"completed"},{"content":"Build","status":"in_progress"},'
        '{"content":"Paint","status":"pending"}]}'
    )
    repo.append("user", "Build the harbour. Never use wood.")
    repo.append("assistant", [ToolCall("c1", "TodoWrite", todo)])
    repo.append("tool", [ToolResult("c1", "ok")])
    repo.append("assistant", [ToolCall("c2", "Bash", '{"command":"pytest -q"}')])
    repo.append("tool", [ToolResult("c2", "1 failed, 2 passed in 0.1s", is_error=True)])
    state = repo.checkpoints.state()
    assert (state.done, state.in_progress, state.pending) == (("Plan",), ("Build",), ("Paint",))
    assert state.blockers[0].startswith("pytest")
    assert "1 failed" in state.blockers[0]
    assert state.constraints == ("Never use wood.",)
    assert [each.program for each in state.checks] == ["pytest"]
    assert repo.checkpoints.list() == []


def test_messages_are_picked_to_a_place(repo: Repo) -> None:
    repo.append("user", "One.")
    repo.branches.create("idea")
    picked = [repo.append("user", each, ref="idea").addresses[0] for each in ("A.", "B.")]
    call = repo.append("assistant", [ToolCall("c1", "Bash", "{}")]).addresses[0]
    repo.append("tool", [ToolResult("c1", "ok")])
    repo.append("user", "Two.")
    repo.cherry_pick(*picked, after=call)
    shown = [each.role if not each.text else each.text for each in repo.compile()]
    assert shown == ["One.", "assistant", "tool", "A.", "B.", "Two."]
    with pytest.raises(errors.InvalidInputError, match="only single messages"):
        repo.cherry_pick("idea", after=call)
    with pytest.raises(errors.NotFoundError):
        repo.cherry_pick(picked[0], after=f"{'0' * 32}.0")


def test_tokens_are_estimated_before_anything_is_added(repo: Repo) -> None:
    text = "The harbour was built in stages. " * 40
    message = Message("user", text)
    assert repo.compression.tokens([message]) > repo.compression.tokens(text) > 200
    estimated = repo.compression.tokens([message])
    before = repo.compile().token_count if repo.head.oid else 0
    repo.commit([message])
    first = repo.compile().token_count
    repo.commit([message])
    assert repo.compile().token_count - first == estimated
    assert before == 0
    assert repo.compression.tokens(text, model="claude-opus-4-6") > repo.compression.tokens(text)
    assert repo.compression.tokens([]) == 0
