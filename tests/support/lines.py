"""Lines of a repository: HEAD's branch, and one that is not checked out."""

from __future__ import annotations

from trace_store import FixedClock, Repo
from trace_store.repo.line import Line

LINES = ("main", "other")


def repo_and_line(name: str) -> tuple[Repo, Line]:
    """Return a repository in memory, on main, and one of LINES, whose context is a system message."""
    repo = Repo.memory(author="ada", clock=FixedClock())
    repo.append("system", "Be brief.")
    if name != "main":
        repo.branches.create(name)
        repo.append("user", "This is on main alone.")
    return repo, repo.line(name)
