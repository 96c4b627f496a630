"""Proposals to make room: their reasons, what they point to, and carrying them out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compression.support.agent_session import LONG, agent_session, call, result
from trace_store import Message, Repo
from trace_store.compression.suggest import Suggestion
from trace_store.context.activity import READ, RUN, action_of
from trace_store.errors import InvalidOperationError, MessageNotFoundError
from trace_store.objects.parts import ToolCall


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory() as made:
        agent_session(made)
        yield made


def proposed(repo: Repo) -> dict[str, list[Suggestion]]:
    found: dict[str, list[Suggestion]] = {}
    for each in repo.compression.suggest().proposals:
        found.setdefault(each.reason, []).append(each)
    return found


def test_an_output_is_proposed_for_one_reason(repo: Repo) -> None:
    found = proposed(repo)
    (read,) = found["superseded"]
    assert "parser.py was read again in" in read.explanation
    (same,) = found["duplicate"]
    assert "has the same output as" in same.explanation
    targets = [(each.addresses, each.call_id) for group in found.values() for each in group]
    assert len(set(targets)) == len(targets)


def test_savings_are_measured_and_sorted(repo: Repo) -> None:
    found = repo.compression.suggest()
    saved = [each.tokens for each in found.proposals]
    assert saved == sorted(saved, reverse=True)
    before = repo.compile().token_count
    repo.compression.apply([each for each in found.proposals if each.action != "pin"])
    assert repo.compile().token_count == before - sum(saved)


def test_applied_proposals_are_undone_together(repo: Repo) -> None:
    before = repo.compile().prefix_hash
    repo.compression.apply(repo.compression.suggest().proposals, message="make room")
    assert repo.compile().prefix_hash != before
    assert next(repo.log(limit=1)).message == "make room"
    repo.undo()
    assert repo.compile().prefix_hash == before


def test_a_copy_that_is_pointed_to_stays(repo: Repo) -> None:
    """The newest of two equal outputs is cold; shortened as well, it would be gone."""
    found = repo.compression.suggest().proposals
    named = {each.explanation.rsplit(" ", 1)[1] for each in found if each.reason == "duplicate"}
    short = {f"{each.addresses[0].birth.hex()[:8]}.{each.addresses[0].number}" for each in found}
    assert named
    assert not named & short


def test_a_file_that_changed_on_disk_makes_a_read_stale(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "Read the notes.")
        repo.commit([Message("assistant", [call(1, "Read", file_path="notes.md")])])
        repo.commit([Message("tool", [result(1, LONG)])])
        repo.append("user", "Go on.")
        repo.append("assistant", "Done.")
        (stale,) = proposed(repo)["stale"]
        assert stale.explanation == "notes.md: is gone"


def test_a_failed_call_keeps_its_error_and_little_else() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Run the tests.")
        repo.commit([Message("assistant", [call(1, "Bash", command="pytest -q")])])
        failure = f"ImportError: no module named lexer\n{LONG}\nExit code 2"
        repo.commit([Message("tool", [result(1, failure, failed=True)])])
        for text in ("It failed.", "Try again.", "Again.", "Go on."):
            repo.append("assistant" if text.startswith(("It", "Again")) else "user", text)
        (failed,) = proposed(repo)["failed"]
        assert "ImportError" in failed.explanation
        assert "ImportError" in failed.text


def test_a_message_that_much_later_work_uses_is_to_be_pinned() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Everything goes through src/gateway.py and `open_gateway`.")
        for number in range(40):
            used = "`open_gateway` in src/gateway.py" if number % 4 == 0 else f"`step_{number}`"
            repo.append("assistant", f"Step {number}: {used} is called.")
            repo.append("user", "Go on.")
        assert [each.action for each in proposed(repo)["pin"]] == ["pin"]


def test_nothing_to_apply_and_messages_that_are_gone(repo: Repo) -> None:
    with pytest.raises(InvalidOperationError, match="no proposal"):
        repo.compression.apply([])
    chosen = proposed(repo)["duplicate"]
    repo.remove(chosen[0].addresses)
    with pytest.raises(MessageNotFoundError):
        repo.compression.apply(chosen)


@pytest.mark.parametrize(
    ("script", "kind", "text"),
    [
        ('const r = await tools.exec_command({\n  cmd: "sed -n \'1,9p\' a.md"\n});', READ, "a.md"),
        ("await Promise.all([tools.exec_command({cmd: `ls`}), tools.exec_command({cmd: 'pwd'})]);",
         RUN, "ls; pwd"),
        ("text(ALL_TOOLS.length);", RUN, "text(ALL_TOOLS.length);"),
    ],
)  # fmt: skip
def test_the_commands_in_a_script_of_codex_are_known(script: str, kind: str, text: str) -> None:
    action = action_of(ToolCall("1", "exec", script))
    assert action.kind == kind
    assert text in (action.text, *action.paths)
