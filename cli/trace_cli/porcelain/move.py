"""`trace move`: messages at another position."""

from __future__ import annotations

import trace_store
from trace_cli import porcelain
from trace_cli.arguments import SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    MESSAGE,
    NOTHING,
    QUIET,
    finish,
    guarded_message,
    opened,
    waiting,
)
from trace_cli.porcelain.in_progress import warn
from trace_cli.render.tables import counted
from trace_cli.runtime import Invocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


@takes(
    Argument("ADDRESS...", "targets", "Messages, such as ab12cd.0", SOME, completes="ADDRESS"),
    Option("--after", "after", "Move them after this message", "ADDRESS", default=""),
    Option("--before", "before", "Move them before this message", "ADDRESS", default=""),
    Option("--first", "first", "Move them to the beginning"),
    Option("--last", "last", "Move them to the end"),
    Option("-n --dry-run", "dry_run", "Only print warnings"),
    MESSAGE,
    JSON,
    QUIET,
)
def move(
    invocation: Invocation,
    *,
    targets: list[str],
    after: str,
    before: str,
    first: bool,
    last: bool,
    dry_run: bool,
    message: str,
) -> Results:
    """Move messages to another position in the context, with warnings if that may change their meaning.

    A tool call and its results move together, and nothing can be placed between them.
    """
    if sum(map(bool, (after, before, first, last))) != 1:
        raise usage_error("give one of --after, --before, --first and --last")
    with opened(invocation) as here:
        found = here.move(
            targets,
            after=after or None,
            before=before or None,
            last=last,
            message=guarded_message(invocation, here, message),
            dry_run=dry_run,
        )
        finish(invocation, here)
        result, stopped = found.result, here.in_progress if found.result else None
        if result is not None and not invocation.quiet:
            porcelain.in_progress.tell_stopped(invocation, stopped, [result.ref])
        if not invocation.as_json:
            warn(invocation, found.warnings)
        done = f"{result.oid} " if result else ""
        count = len(found.moved)
        there = "is already there" if count == 1 else "are already there"
        said = f"{counted(count, 'message')} {'would be moved' if dry_run else 'moved'}"
        said = (
            said if found.changed or dry_run else f"{NOTHING}: {counted(count, 'message')} {there}"
        )
        yield lambda: trace_store.record(found, waiting=waiting(stopped)), f"{done}{said}"
