"""`trace revert`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    NOTHING,
    QUIET,
    SECRETS,
    entry_of,
    guarded_message,
)
from trace_cli.porcelain.in_progress import GOING_ON, ResumableCommand
from trace_cli.runtime import Invocation
from trace_store.base.ident import is_count
from trace_store.merge.conflicts import OURS, THEIRS
from trace_store.merge.in_progress import REVERT
from trace_store.merge.revert import Revert
from trace_store.merge.stopped import Stopped
from trace_store.repo.repository import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


@takes(
    Argument("REVISION...", "wanted", "Commits, or a range A..B", ANY, completes="COMMIT"),
    Option("-m --message", "message", "The commit message", "MESSAGE", default=""),
    Option(
        "-X --favour --strategy-option",
        "favour",
        "On conflicts with later changes: ours keeps them, theirs reverts anyway",
        "SIDE",
        default="",
        choices=(OURS, THEIRS),
    ),
    *GOING_ON,
    SECRETS,
    JSON,
    QUIET,
)
def revert(
    invocation: Invocation,
    *,
    wanted: list[str],
    message: str,
    favour: str,
    go_on: bool,
    abort: bool,
    skip: bool,
    secrets: str,
) -> Results:
    """Revert commits by adding new ones.

    Added messages are removed, removed ones restored, and edits, priorities, labels, moves, compressions and tools
    undone. History is not changed. Several commits are reverted together or not at all, those of a range newest first.
    Reverting a merge undoes what it added to its first parent.

    If a later commit changed the same message, nothing is written, and the exit code is 3. `trace resolve` resolves
    that: --ours keeps the current version, --theirs restores the one before the commit. `trace revert --continue`
    finishes.

        trace revert HEAD~1            revert the commit before the last
        trace revert main~3..main      revert three commits
    """
    command = ResumableCommand(invocation, REVERT, (go_on, abort, skip), secrets)
    command.check("REVISION", wanted)

    def begin(here: Repo) -> Revert | Stopped:
        if is_count(message):
            _refuse_mainline(here, wanted, message)
        said = guarded_message(invocation, here, message)
        return here.revert(*wanted, message=said, favour=favour)

    def lines(here: Repo, found: Revert) -> Iterator[str]:
        if found.step is not None:
            yield f"reverting {found.step.short()}"
            return
        for done in found.made:
            what = ", ".join(done.operations)
            yield f"{done.oid.short()} reverts {done.reverts.short()} ({what})"
        if not found.made:
            names = ", ".join(oid.short() for oid in found.there[:3])
            more = f" and {len(found.there) - 3} more" if len(found.there) > 3 else ""
            why = f": no change of {names}{more} is visible" if names else ""
            yield f"{NOTHING}{why}"

    return command.carry_out(begin, lines)


def _refuse_mainline(here: Repo, wanted: Sequence[str], number: str) -> None:
    """Raise a usage error for `-m 1` on a merge, which in git selects a parent."""
    for each in wanted:
        found = (
            here.log(each, first_parent=True, merges=True)
            if ".." in each
            else [entry_of(here, here.resolve(each))]
        )
        for entry in found:
            if len(entry.parents) > 1:
                raise usage_error(
                    f"{entry.oid.short()} is a merge, and -m {number} would be the commit message",
                    "omit -m: a merge is reverted relative to its first parent",
                )
