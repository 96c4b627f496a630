"""`trace merge-base`: the best common ancestors of two revisions.

One line with its id; with `--all` one line each, sorted. If there is no common ancestor, nothing is printed, and the
exit code is 1. With `--is-ancestor` nothing is printed, and the exit code is 0 if the first is an ancestor of the
second or the same commit, else 1.
"""

from __future__ import annotations

from trace_cli.arguments import Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.store.revision import commits_of, resolve_commit


@takes(
    Option("--all", "everything", "Print all of them, not only the first"),
    Option("--is-ancestor", "is_ancestor", "Exit with 0 if A is an ancestor of B, else with 1"),
    Argument("A", "one", "A revision"),
    Argument("B", "other", "Another"),
)
def run(
    invocation: Invocation, *, everything: bool, is_ancestor: bool, one: str, other: str
) -> int:
    """Print the ids, or answer with the exit code."""
    if everything and is_ancestor:
        raise usage_error("--all and --is-ancestor exclude each other", "give one of them")
    with open_store(invocation) as store:
        commits = commits_of(store)
        first, second = (resolve_commit(store, each, commits) for each in (one, other))
        if is_ancestor:
            return int(not commits.is_ancestor(first, second))
        bases = commits.merge_bases(first, second)
    for oid in bases if everything else bases[:1]:
        invocation.line(str(oid))
    return int(not bases)
