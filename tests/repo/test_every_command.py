"""A script can do from Python what each porcelain command does, on branches that are not checked out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.merge.support.lines import ADA
from tests.support.every_command import ON_A_BRANCH, work
from trace_cli.commands import COMMANDS, PLUMBING
from trace_store import Repo, capture

ROOT = Path(__file__).parents[2]
WITHOUT = {"mcp", "web"} | {"config", "model", "trust", "demo", "completion", "help", "version"}
"""Commands that need no open repository, or serve one until Ctrl-C."""
WITH_GIT = {"why"}
"""Commands that need a git repository, too; `tests/trajectories/test_why.py` runs them."""


def purge(repo: Repo) -> Any:
    repo.append("user", "to be purged")
    return repo.maintenance.purge(repo.maintenance.plan_purge(texts=["to be purged"]))


def undo_and_redo(repo: Repo) -> None:
    tip = repo.append("user", "undone").oid
    repo.undo()
    repo.redo()
    assert repo.head.oid == tip


def upkeep(name: str, repo: Repo) -> None:
    getattr(repo.maintenance, name)()


ON_THE_REPOSITORY: dict[str, Callable[[Repo], Any]] = {
    "switch": lambda repo: repo.branches.switch("side", create=True),
    "checkout": lambda repo: repo.branches.checkout("main"),
    "brief": lambda repo: repo.brief(),
    "undo": undo_and_redo,
    "redo": undo_and_redo,
    "purge": purge,
    "hooks": lambda repo: capture.catch_up(repo.writer),
    **{
        name: partial(upkeep, name)
        for name in ("doctor", "fsck", "seal", "adopt", "pack", "gc", "prune", "du")
    },
}
"""Commands that are about HEAD, the working copy or the whole store."""


def test_each_command_is_here() -> None:
    porcelain = {row.name for row in COMMANDS if row.category != PLUMBING}
    assert {*ON_A_BRANCH, *ON_THE_REPOSITORY, *WITHOUT, *WITH_GIT, "init"} == porcelain


def test_two_threads_and_two_processes_do_everything(tmp_path: Path) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        begun = repo.append("user", "on main").oid
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])}
    module = [sys.executable, "-m", "tests.support.every_command", str(tmp_path)]
    processes = [subprocess.Popen([*module, name], env=where) for name in ("p", "q")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, [tmp_path] * 2, ["t", "u"]))
    assert [each.wait() for each in processes] == [0, 0]
    with Repo.open(tmp_path, environment=ADA) as repo:
        assert (repo.head.ref, repo.head.oid) == ("refs/heads/main", begun)
        # Addresses are of the branch; all else is the same.
        said = [
            [
                re.sub(r"[0-9a-f]{8}\.\d+", "ADDRESS", each.text)
                for each in repo.line(name).compile()
            ]
            for name in "pqtu"
        ]
        assert said[0] == said[1] == said[2] == said[3]
        for run in ON_THE_REPOSITORY.values():
            run(repo)
        found = {each.code for each in repo.maintenance.fsck()}
        assert found == {"object-purged"}
