"""`trace merge-base`: the best common ancestors of two revisions.

One line with its id; with `--all` a line for each, sorted. When the histories share nothing, nothing is printed and the
exit code is 1. With `--is-ancestor` nothing is printed, and the exit code is 0 when the first is the second or lies in
its past, else 1.
"""

from __future__ import annotations

from trace_cli.arguments import Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.revision import commits_of, resolve_commit


@takes(
    Option("--all", "everything", "Print all of them, not the first alone"),
    Option("--is-ancestor", "is_ancestor", "Tell by the exit code whether A lies in the past of B"),
    Argument("A", "one", "A revision"),
    Argument("B", "other", "Another"),
)
def run(
    invocation: Invocation, *, everything: bool, is_ancestor: bool, one: str, other: str
) -> int:
    """Print the ids, or tell by the exit code."""
    if everything and is_ancestor:
        raise usage_error("--all prints, and --is-ancestor does not", "give one of them")
    with open_store(invocation) as store:
        commits = commits_of(store)
        first, second = (resolve_commit(store, each, commits) for each in (one, other))
        if is_ancestor:
            return int(not commits.is_ancestor(first, second))
        bases = commits.merge_bases(first, second)
    for oid in bases if everything else bases[:1]:
        invocation.line(str(oid))
    return int(not bases)
