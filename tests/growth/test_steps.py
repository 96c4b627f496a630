"""A rebase folds the contexts once; each step then costs as much as what it changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.growth.support.counting import calls_of
from trace_store import Message, Repo
from trace_store.base.environment import Environment
from trace_store.objects.address import Address

CALLS_OF_A_STEP = 1400

Change = Callable[[Repo, Address, int], object]
CHANGES: dict[str, Change] = {
    "edit": lambda repo, address, number: repo.edit(address, f"edited {number}"),
    "label": lambda repo, address, number: repo.annotate([address], labels=[f"x{number}"]),
    "pin": lambda repo, address, number: repo.annotate([address], priority="pinned"),
    "remove": lambda repo, address, number: repo.remove([address]),
    "append": lambda repo, address, number: repo.append("user", f"new {number}"),
}


def calls_of_a_rebase(folder: Path, messages: int, steps: int, change: Change) -> int:
    """Return the number of calls of a rebase of some commits over one."""
    with Repo.init(folder, author="ada", environment=Environment()) as repo:
        texts = [Message("user", f"message {number}") for number in range(messages)]
        at = repo.commit(texts).addresses
        repo.branches.switch("side", create=True)
        for number in range(steps):
            change(repo, at[-2 * number - 3], number)
        repo.branches.switch("main")
        repo.edit(at[0], "changed on main")
        repo.branches.switch("side")
        calls = calls_of(lambda: repo.rebase("main"))
        assert repo.compile().messages[0].text == "changed on main"
    return calls.total()


@pytest.mark.parametrize("kind", CHANGES)
def test_a_step_costs_the_same_in_a_long_context(tmp_path: Path, kind: str) -> None:
    def step(messages: int) -> float:
        few, many = (
            calls_of_a_rebase(tmp_path / f"{messages}-{steps}", messages, steps, CHANGES[kind])
            for steps in (2, 10)
        )
        return (many - few) / 8

    small, large = step(50), step(600)
    assert large <= small * 1.25  # binary searches
    assert large <= CALLS_OF_A_STEP
