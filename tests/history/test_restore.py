"""`restore` takes an edited message back by one wording, `expand` to the first, on any branch."""

from __future__ import annotations

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Message, Text, ToolCall, ToolResult
from trace_store.errors import InvalidOperationError
from trace_store.objects.address import Address
from trace_store.repo.line import Line

LONG = " ".join(f"line {number} of the output" for number in range(600))


def text_of(line: Line, address: Address) -> str:
    return line.message(address).message.text


def worded(line: Line, *wordings: str) -> Address:
    """Return a message that was reworded."""
    address = line.append("user", wordings[0]).addresses[0]
    for each in wordings[1:]:
        line.edit(address, each)
    return address


@pytest.mark.parametrize("name", LINES)
def test_one_wording_at_a_time(name: str) -> None:
    _, line = repo_and_line(name)
    address = worded(line, "first", "second", "third")
    found = []
    for _ in range(3):
        done = line.restore(address)
        found.append((done.changed, text_of(line, address)))
    assert found == [(True, "second"), (True, "first"), (False, "first")]
    assert next(iter(line.log(limit=1))).summary() == f"restore: {address.short(8)} to version 0"
    assert line.restore(address, version=2).changed
    assert text_of(line, address) == "third"


@pytest.mark.parametrize("name", LINES)
def test_expand_goes_to_the_original(name: str) -> None:
    repo, line = repo_and_line(name)
    address = worded(line, "first", "second", "third")
    done = repo.compression.expand(address, ref=name)
    assert (done.what, done.result.changed, text_of(line, address)) == ("edited", True, "first")
    line.restore(address, version=2)
    line.remove(address)
    assert repo.compression.expand(address, ref=name).what == "removed"
    assert (line.message(address).hidden, text_of(line, address)) == ("", "first")


@pytest.mark.parametrize("name", LINES)
def test_a_hidden_message_is_shown_first_as_it_was(name: str) -> None:
    _, line = repo_and_line(name)
    address = worded(line, "first", "second")
    line.remove(address, ghost=True)
    assert line.restore(address).changed
    assert (line.message(address).hidden, text_of(line, address)) == ("", "second")
    assert line.restore(address).changed
    assert text_of(line, address) == "first"


@pytest.mark.parametrize("name", LINES)
def test_several_messages_each_by_its_own_step(name: str) -> None:
    _, line = repo_and_line(name)
    two, three = worded(line, "a", "b"), worded(line, "a", "b", "c")
    hidden, plain = worded(line, "x", "y"), worded(line, "plain")
    line.remove(hidden)
    line.restore([two, three, hidden, plain])
    found = [text_of(line, each) for each in (two, three, hidden, plain)]
    assert found == ["a", "b", "y", "plain"]
    assert line.message(hidden).is_shown


@pytest.mark.parametrize("name", LINES)
def test_equal_wordings_are_one(name: str) -> None:
    """The same text again, from before an edit that changes nothing was none."""
    _, line = repo_and_line(name)
    address = worded(line, "first", "second", "first")
    assert len(line.versions(address)) == 3
    assert line.restore(address).changed
    assert text_of(line, address) == "second"
    line.edit(address, "first")
    assert line.edit(address, "first").changed is False


@pytest.mark.parametrize("name", LINES)
def test_the_steps_of_a_batch_follow_its_other_operations(name: str) -> None:
    _, line = repo_and_line(name)
    address = worded(line, "first", "second")
    with line.batch() as draft:
        added = draft.append("user", "another")
        draft.edit(address, "third")
        draft.edit(added, "another wording")
        draft.restore(address)
        draft.restore(added)
    assert draft.result is not None
    assert text_of(line, address) == "second"
    assert text_of(line, draft.result.addresses[0]) == "another"


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", ["restore", "expand"])
def test_a_trimmed_output_comes_back(name: str, verb: str) -> None:
    repo, line = repo_and_line(name)
    for number in range(6):
        line.append("user", f"question {number}")
        line.commit([Message("assistant", [ToolCall(f"c{number}", "Bash", '{"command": "ls"}')])])
        line.commit([Message("tool", [ToolResult(f"c{number}", [Text(f"{number} {LONG}")])])])
        line.append("assistant", "seen")
    before = line.compile()
    done = repo.compression.trim(before.token_count // 2, ref=name)
    address = done.changes[0][0]
    whole = next(each for each in before.messages if each.address == address)
    assert line.message(address).message.parts != whole.parts
    if verb == "restore":
        assert line.restore(address).changed
        assert not line.restore(address).changed
    else:
        assert repo.compression.expand(address, ref=name).result.changed
        assert not repo.compression.expand(address, ref=name).result.changed
    assert line.message(address).message.parts == whole.parts


def test_a_version_that_does_not_exist() -> None:
    _, line = repo_and_line("other")
    address = worded(line, "first")
    with pytest.raises(InvalidOperationError, match="1 versions, none numbered 1"):
        line.restore(address, version=1)
