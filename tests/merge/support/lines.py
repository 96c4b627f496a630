"""A repository for merges, and helpers to set up its branches."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.store.support.histories import move
from trace_store import Environment, ObjectId, Repo
from trace_store.merge.stopped import Stopped
from trace_store.objects.commit import Commit

ADA = Environment(author="ada")


def said(repo: Repo, revision: str = "HEAD") -> list[str]:
    """Return the texts of a context."""
    return [message.text for message in repo.compile(revision).messages]


def branch(repo: Repo, name: str, revision: str = "HEAD") -> None:
    """Create or move a branch to a revision."""
    move(repo.store, f"refs/heads/{name}", repo.resolve(revision))


def on(repo: Repo, name: str) -> None:
    """Go to a branch."""
    repo.store.refs.set_head(f"refs/heads/{name}")


def apart(repo: Repo, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Let `side` and `main` go on from HEAD, each its own way; HEAD ends on main."""
    branch(repo, "side")
    on(repo, "side")
    theirs()
    on(repo, "main")
    ours()


def commit_of(repo: Repo, oid: ObjectId | None) -> Commit:
    assert oid is not None
    return Commit.decode(repo.store.objects.read(oid))


def files(repo: Repo) -> dict[str, str]:
    """Return the content of all files of a repository that a command must not touch before all is settled."""
    root = repo.store.layout.root
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            where = os.path.relpath(os.path.join(folder, name), root)
            if where.split(os.sep)[0] in ("journal", "refs", "objects", "HEAD", "logs"):
                found[where] = hashlib.sha256(Path(root, where).read_bytes()).hexdigest()
    return found


def pending(repo: Repo) -> Stopped:
    """Return the operation that stopped at conflicts."""
    found = repo.in_progress
    assert found is not None
    return found
