"""A repository with an hour on its clock, and commands in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ok, repository, trace
from trace_store import Environment, FixedClock, Repo

__all__ = ["ok", "repository", "trace"]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Return a repository with one message, in which a second passes from event to event."""
    clock = FixedClock(1_700_000_000_000, step=1_000)
    environment = Environment(author="ada")
    with Repo.init(tmp_path / "r", environment=environment, clock=clock, durability="fast") as repo:
        repo.append("user", "Sign people in.")
        yield repo
