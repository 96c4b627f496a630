"""`trace revert`: new commits that take earlier ones back."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, SECRETS, guarded_message
from trace_cli.porcelain.conflicts import conflict_records
from trace_cli.porcelain.in_progress import GOING_ON, STOPPED, Run
from trace_cli.render.records import address_text
from trace_store import merge
from trace_store.ident import is_count
from trace_store.merge.conflicts import OURS, THEIRS
from trace_store.merge.in_progress import REVERT
from trace_store.merge.revert import chosen
from trace_store.objects.commit import parents_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.merge.revert import Revert, RevertedCommit
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


@takes(
    Argument("REVISION...", "wanted", "Commits, or a range A..B", ANY, completes="COMMIT"),
    Option("-m --message", "message", "What to say about it", "MESSAGE", default=""),
    Option(
        "-X --favour --strategy-option",
        "favour",
        "Where something later changed the same: ours keeps that, theirs takes back all the same",
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
    as_json: bool,
    quiet: bool,
) -> None:
    """Take commits back by new commits.

    What a commit added is removed, what it removed is shown again, and so for edits, priorities, labels, moves,
    compressions and tools. History stays as it is. Several commits are taken back together, or none; those of a range
    newest first. Of a merge, what it brought to its first parent is taken back.

    Where something later changed the same message, nothing is written, and the exit code is 3. `trace resolve` settles
    that: --ours is what there is now, --theirs what there was before the commit. `trace revert --continue` goes on.

        trace revert HEAD~1            take back the commit before the last
        trace revert main~3..main      and three of them
    """
    run = Run(
        invocation,
        REVERT,
        go_on=go_on,
        abort=abort,
        skip=skip,
        secrets=secrets,
        as_json=as_json,
        quiet=quiet,
    )
    run.check("REVISION", wanted)

    def begin(store: Store, guard: Guard) -> Revert:
        if is_count(message):
            _refuse_mainline(store, wanted, message)
        said = guarded_message(invocation, store, message)
        author = invocation.environment.author
        return merge.revert.revert(
            store, wanted, author=author, message=said, favour=favour, guard=guard
        )

    def tell(store: Store, found: Revert) -> None:
        if found.step is not None:
            invocation.line(f"taking back {found.step.short()}")
        elif not quiet:
            for done in found.made:
                what = ", ".join(done.operations)
                invocation.line(f"{done.oid.short()} takes back {done.reverts.short()} ({what})")
            if not found.made:
                invocation.line("nothing is taken back")

    run.carry_out(begin, _records, tell)


def _refuse_mainline(store: Store, wanted: Sequence[str], number: str) -> None:
    """Raise a usage error when a merge is taken back with a number as what to say: in git it is that of a parent."""
    for oid in chosen(store, wanted):
        if len(parents_of(store.objects.read(oid))) > 1:
            raise usage_error(
                f"{oid.short()} is a merge, and -m {number} would be what to say about taking it back",
                "leave -m out: what the merge brought to its first parent is taken back",
            )


def _records(store: Store, found: Revert) -> list[dict[str, Any]]:
    """Return an object for each new commit; of what stopped one with its conflicts."""
    if found.outcome != STOPPED:
        return [_record(done) for done in found.made]
    return [
        {
            "outcome": found.outcome,
            "ref": found.ref,
            "stopped_at": str(found.step),
            "conflicts": conflict_records(store, found.conflicts),
        }
    ]


def _record(done: RevertedCommit) -> dict[str, Any]:
    return {
        "commit": str(done.oid),
        "reverts": str(done.reverts),
        "ref": done.ref,
        "operations": list(done.operations),
        "conflicts": [
            {
                "kind": each.kind,
                "address": address_text(each.addresses[0]) if each.addresses else None,
            }
            for each in done.conflicts
        ],
    }
