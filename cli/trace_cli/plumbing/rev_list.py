"""`trace rev-list`: commits reachable from revisions.

One line for each commit: its id. A commit comes before its parents; after a merge the line of its last parent
comes first. `^A` leaves out what A reaches, `A..B` is `B ^A`, `A...B` is what only one of them reaches. With
`--count` one line with the number of commits. With `--stdin`, further revisions stand on lines of standard input.
"""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.revision import all_commits, commits_of, reach_of_several


@takes(
    Option("--count", "count", "Print only how many there are"),
    Option("-n --max-count", "limit", "Stop after this many", "NUMBER", number=True, bare=True),
    Option("--first-parent", "first_parent", "Follow only first parents"),
    Option("--all", "everything", "Start from every ref and HEAD"),
    Option("--stdin", "stdin", "Take further revisions from standard input, one a line"),
    Argument("REVISION", "revisions", "Revisions; ^A and A..B leave out what A reaches", ANY),
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
    """Print the ids, or how many there are."""
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
