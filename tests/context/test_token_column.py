"""The tokens column beside a compile index."""

from __future__ import annotations

from pathlib import Path

from trace_store import FixedClock, Repo
from trace_store.contracts import ANY, RefEdit, Transaction


def test_counts_of_messages_that_a_branch_left_are_not_taken_for_those_that_came(
    tmp_path: Path,
) -> None:
    """The branch goes back to where its index was first written, and on by another way."""
    with Repo.init(tmp_path, clock=FixedClock()) as repo:
        first = repo.append("user", "Plan the release.")
        assert repo.compile().token_count > 0
        repo.append("user", "One word.")
        assert repo.compile().token_count > 0
        back = RefEdit("refs/heads/main", first.oid, ANY)
        repo.store.transact(lambda _: Transaction([], [back]), author="ada")
        assert len(repo.compile()) == 1
        repo.append("user", "Many more words than there were before, in another message.")
        warm = repo.compile().token_count
    with Repo.memory() as cold:
        cold.append("user", "Plan the release.")
        cold.append("user", "Many more words than there were before, in another message.")
        assert warm == cold.compile().token_count
