"""Fixtures: repositories with a fixed clock, fake task systems, and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ok, repository, trace
from tests.support.command_line import Trace
from tests.trajectories.support.fake_service import FakePrograms, FakeService
from trace_store import Environment, FixedClock, Repo

__all__ = ["ok", "repository", "trace"]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Return a repository with one message; its clock advances a second each time it is read."""
    clock = FixedClock(1_700_000_000_000, step=1_000)
    environment = Environment(author="ada")
    with Repo.init(tmp_path / "r", environment=environment, clock=clock, durability="fast") as repo:
        repo.append("user", "Sign people in.")
        yield repo


@pytest.fixture
def at(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command that has to succeed in a folder, and return what it printed."""

    def run(folder: Path, *words: str) -> str:
        monkeypatch.chdir(folder)
        outcome = trace(*words)
        assert outcome.code == 0, outcome.err
        return outcome.text

    return run


@pytest.fixture
def service() -> Iterator[FakeService]:
    found = FakeService()
    yield found
    found.close()


@pytest.fixture
def programs(tmp_path: Path) -> FakePrograms:
    return FakePrograms(tmp_path / "bin")


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Callable[..., Repo]]:
    """Return a function that opens the repository in the folder `project` with environment variables."""
    opened: list[Repo] = []

    def open_with(**variables: str) -> Repo:
        environment = Environment(author="ada", secrets=variables.items())
        clock = FixedClock(1_700_000_000_000, step=1_000)
        folder = tmp_path / "project"
        make = Repo.open if (folder / ".trace").exists() else Repo.init
        opened.append(make(folder, environment=environment, clock=clock, durability="fast"))
        return opened[-1]

    yield open_with
    for each in opened:
        each.close()
