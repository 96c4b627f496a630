"""A repository of a user with settings of their own, whose times and ids are the same in every run."""

from __future__ import annotations

from pathlib import Path

from trace_store import Environment, FixedClock, Repo


def fixed_repo(folder: Path) -> Repo:
    """Return an empty repository in `project` below a folder."""
    environment = Environment(
        author="ada", config_dir=str(folder / "settings"), data_dir=str(folder / "data")
    )
    clock = FixedClock(1_700_000_000_000, step=1_000)
    return Repo.init(folder / "project", environment=environment, clock=clock, durability="fast")
