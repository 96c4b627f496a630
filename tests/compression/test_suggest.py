"""Proposals to make room: their reasons, what they point to, and carrying them out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compression.support.agent_session import LONG, agent_session, call, result
from trace_store import Message, Repo
from trace_store.compression.suggest import Suggestion
from trace_store.context.activity import READ, RUN, action_of, outcome_of
from trace_store.errors import InvalidOperationError, MessageNotFoundError
from trace_store.objects.parts import ToolCall, ToolResult


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
    assert "the same output as" in same.explanation
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


@pytest.mark.parametrize(
    ("changed", "said"),
    [(0, ""), (20, "7% of its lines"), (300, "100% of its lines"), (None, "is gone")],
)
def test_a_file_that_was_rewritten_is_changed_and_not_gone(
    tmp_path: Path, changed: int | None, said: str
) -> None:
    lines = [f"value_{number} = {number * 7919 % 10007}" for number in range(300)]
    path = tmp_path / "values.py"
    with Repo.init(tmp_path) as repo:
        repo.append("user", "Read the values.")
        repo.commit([Message("assistant", [call(1, "Read", file_path=str(path))])])
        numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, 1))
        repo.commit([Message("tool", [result(1, numbered)])])
        repo.append("user", "Go on.")
        if changed is not None:
            path.write_text("\n".join(["new"] * changed + lines[changed:]))
        found = [each.explanation for each in proposed(repo).get("stale", [])]
        assert found == (
            [f"values.py: {said}{'' if changed is None else ' have changed on disk since'}"]
            if said
            else []
        )


def test_topics_are_turns_that_name_the_same_things() -> None:
    with Repo.memory() as repo:
        names = [f"part_{letter}" for letter in "abcdefg"]
        for name in names * 3:
            repo.append("user", f"Look at src/{name}.py and `open_{name}` again.")
            repo.append(
                "assistant", f"In src/{name}.py, `open_{name}` and `close_{name}` are slow."
            )
        found = repo.compression.suggest().topics
        assert [len(each.turns) for each in found] == [3] * 7
        assert all(
            name in said for name, each in zip(names, found, strict=True) for said in each.names
        )
        assert sum(each.tokens for each in found) == sum(repo.compression.suggest().sizes)


def test_what_a_tool_printed_is_not_to_be_pinned() -> None:
    """Some formats file the output of a tool, such as of `pwd`, under the user."""
    with Repo.memory() as repo:
        repo.append("user", "Make src/gateway.py faster, please.")
        repo.append("user", "OBSERVATION: /home/ada/src/gateway.py", kind="tool_io")
        repo.append("user", "<bash-stdout>/home/ada/src/gateway.py</bash-stdout>")
        for number in range(60):
            repo.append(
                "assistant",
                f"Step {number}: `step_{number}` in src/gateway.py" if number < 10 else "-",
            )
        (pin,) = proposed(repo)["pin"]
        assert "Make src/gateway.py faster" in pin.explanation


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


def test_pins_are_proposed_from_the_most_used_message_on() -> None:
    """One fixed session: four messages of the user; later work uses each more than the one before."""
    with Repo.memory() as repo:
        for name in "abcd":
            repo.append("user", f"Part {name} goes through src/part_{name}.py only.")
        for number in range(80):
            used = [name for at, name in enumerate("abcd") if number < 9 + 2 * at]
            paths = " and ".join(f"src/part_{name}.py" for name in used)
            repo.append("assistant", f"Step {number}: `step_{number}` {paths} is called.")
        found = proposed(repo)["pin"]
        said = [each.explanation.split(" ", 1)[0] for each in found]
        assert said == ["15", "13", "11"], "how many later messages use each"
        messages = repo.compile().messages
        assert [each.addresses for each in found] == [(messages[at].address,) for at in (3, 2, 1)]


@pytest.mark.parametrize(("uses", "is_proposed"), [(7, False), (8, True)])
def test_a_message_is_to_be_pinned_if_eight_later_ones_use_it(uses: int, is_proposed: bool) -> None:
    with Repo.memory() as repo:
        repo.append("user", "Everything goes through src/gateway.py, please.")
        for number in range(60):
            path = "src/gateway.py" if number < uses else "nothing"
            repo.append("assistant", f"Step {number}: `step_{number}` in {path} is called.")
        assert ("pin" in proposed(repo)) is is_proposed


def test_a_recent_read_is_not_to_go_though_its_file_was_changed() -> None:
    text = "\n".join(f"note {number}: ask {number * 7919 % 101} people" for number in range(40))
    with Repo.memory() as repo:
        repo.append("user", "Read the notes, and change them.")
        repo.commit([Message("assistant", [call(1, "Read", file_path="notes.md")])])
        repo.commit([Message("tool", [result(1, text)])])
        newer = text.replace("note 0", "note zero")
        write = call(2, "Write", file_path="notes.md", content=newer)
        repo.commit([Message("assistant", [write])])
        repo.commit([Message("tool", [result(2, "ok")])])
        repo.append("user", "Go on.")
        assert "superseded" not in proposed(repo), "one of the last two turns"
        repo.append("user", "And on.")
        (read,) = proposed(repo)["superseded"]
        assert read.explanation.startswith("notes.md was written again in ")


@pytest.mark.parametrize(
    ("text", "failed", "code"),
    [
        ("Exit code 0\n", False, 0),
        ("Exit code 1\nno such file", True, 1),
        ("Process exited with code -9\nOutput:\n", True, -9),
        ('{"output":"","metadata":{"exit_code":-15}}', True, -15),
        ("exit status -1", True, -1),
        ("exit statement 5", False, None),
    ],
)
def test_how_a_command_ended_is_read_from_its_output(
    text: str, failed: bool, code: int | None
) -> None:
    """A program that a signal killed has a negative code."""
    outcome = outcome_of(ToolResult("1", text))
    assert (outcome.failed, outcome.exit_code) == (failed, code)
