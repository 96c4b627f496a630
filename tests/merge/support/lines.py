"""A repository for merges, and helpers to set up its branches."""

from __future__ import annotations

from trace_store import Environment, Repo
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.repo.stopped import Stopped

ADA = Environment(author="ada")


def said(repo: Repo, revision: str = "HEAD") -> list[str]:
    """Return the texts of a context."""
    return [message.text for message in repo.compile(revision).messages]


def branch(repo: Repo, name: str, revision: str = "HEAD") -> None:
    """Create or move a branch to a revision."""
    edit = RefEdit(f"refs/heads/{name}", repo.resolve(revision), ANY)
    repo.store.transact(lambda _: Transaction([], [edit], "branch"), author="ada")


def on(repo: Repo, name: str) -> None:
    """Go to a branch."""
    repo.store.refs.set_head(f"refs/heads/{name}")


def pending(repo: Repo) -> Stopped:
    """Return the operation that stopped at conflicts."""
    found = repo.in_progress
    assert found is not None
    return found
