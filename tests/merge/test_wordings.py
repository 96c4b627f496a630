"""Messages that both sides edited: no wording is lost, whatever the resolution, also of a hidden message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Message, Repo
from trace_store.merge.conflicts import Conflict, Resolution
from trace_store.objects.address import Address
from trace_store.repo.line import Line

CHOICES = {
    "ours": Resolution("ours"),
    "theirs": Resolution("theirs"),
    "both": Resolution("both"),
    "text": Resolution("text", "third"),
}
CURRENT = {"ours": "first", "theirs": "second", "both": "first\nsecond", "text": "third"}


def kept(line: Line, address: Address) -> None:
    pass


def removed(line: Line, address: Address) -> None:
    line.remove(address)


def removed_with_a_ghost(line: Line, address: Address) -> None:
    line.remove(address, ghost=True)


def replaced(line: Line, address: Address) -> None:
    line.replace([address], [Message("user", f"{line.head.ref} in short")])


Hide = Callable[[Line, Address], None]
HIDES: list[Hide] = [kept, removed, removed_with_a_ghost, replaced]


def edited_on_both(name: str, hide: Hide) -> tuple[Repo, Line, Address]:
    repo, line = repo_and_line(name)
    [address] = line.append("user", "original").addresses
    repo.branches.create("side", name)
    for each, text in ((line, "first"), (repo.line("side"), "second")):
        each.edit(address, text)
        hide(each, address)
    return repo, line, address


def wordings(line: Line, address: Address) -> list[str]:
    return [
        "".join(getattr(part, "text", "") for part in version.parts)
        for version in line.versions(address)
    ]


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("hide", HIDES)
@pytest.mark.parametrize("choice", CHOICES)
def test_both_wordings_of_an_edited_message_stay_readable(
    name: str, hide: Hide, choice: str
) -> None:
    repo, line, address = edited_on_both(name, hide)
    is_hidden = bool(line.message(address).hidden)
    stopped = line.merge("side")
    [conflict] = [each for each in stopped.conflicts if each.kind == "both-edited"]
    assert [each.text for each in (*conflict.ours, *conflict.theirs)] == ["first", "second"]
    assert conflict.choices == ("ours", "theirs", "both", "text")
    assert repo.in_progress is not None
    repo.in_progress.abort()

    def resolve(conflict: Conflict) -> Resolution:
        return CHOICES[choice if conflict.kind == "both-edited" else "both"]

    assert line.merge("side", resolver=resolve).outcome == "merged"
    assert {"original", "first", "second"} <= {*wordings(line, address)}
    assert bool(line.message(address).hidden) == is_hidden
    if is_hidden:
        line.restore(address)
    [shown] = [each.text for each in line.compile().messages if each.address == address]
    assert shown == CURRENT[choice]
