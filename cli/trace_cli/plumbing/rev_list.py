"""`trace rev-list`: commits reachable from revisions.

One line per commit: its id. A commit comes before its parents; after a merge, the history of its last parent comes
first. `^A` excludes what A reaches, `A..B` is `B ^A`, `A...B` is what only one of them reaches. With `--count`, one
line with the number of commits. With `--stdin`, more revisions are read from standard input.
"""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.store.revision import all_commits, commits_of, reach_of_several


@takes(
    Option("--count", "count", "Print only the number of commits"),
    Option("-n --max-count", "limit", "Stop after this many", "NUMBER", number=True, bare=True),
    Option("--first-parent", "first_parent", "Follow first parents only"),
    Option("--all", "everything", "Start from all refs and HEAD"),
    Option("--stdin", "stdin", "Read more revisions from standard input, one per line"),
    Argument("REVISION", "revisions", "Revisions; ^A and A..B exclude what A reaches", ANY),
)
def run(
    invocation: Invocation,
    *,
    count: bool,
    limit: int | None,
    first_parent: bool,
    everything: bool,
    stdin: bool,
    revisions: list[str],
) -> int:
    """Print the ids, or their number."""
    words = [*revisions, *(invocation.input_lines() if stdin else ())]
    if not (words or everything):
        raise usage_error("no revision to start from", "give one, or --all")
    with open_store(invocation) as store:
        wanted, hidden = reach_of_several(store, words)
        if everything:
            wanted += all_commits(store)
        commits = commits_of(store)
        number = 0
        for oid in commits.topological(wanted, hidden, limit=limit, first_parent=first_parent):
            number += 1
            if not count:
                invocation.line(str(oid))
        if count:
            invocation.line(str(number))
    return 0
