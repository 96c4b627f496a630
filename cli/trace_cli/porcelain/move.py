"""`trace move`: messages at another position."""

from __future__ import annotations

from trace_cli import porcelain
from trace_cli.arguments import SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    MESSAGE,
    QUIET,
    finish,
    guarded_message,
    opened,
)
from trace_cli.porcelain.in_progress import warn
from trace_cli.render.records import address_text, write_record
from trace_cli.render.tables import counted
from trace_store import repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


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
    as_json: bool,
    quiet: bool,
) -> None:
    """Move messages to another position in the context, with warnings if that may change their meaning.

    A tool call and its results move together, and nothing can be placed between them.
    """
    if sum(map(bool, (after, before, first, last))) != 1:
        raise usage_error("give one of --after, --before, --first and --last")
    with opened(invocation, quiet=quiet) as here:
        found = here.move(
            targets,
            after=after or None,
            before=before or None,
            last=last,
            message=guarded_message(invocation, here, message),
            dry_run=dry_run,
        )
        finish(invocation, here)
        waits = None if found.result is None or quiet else here.in_progress
        if found.result is not None:
            porcelain.in_progress.tell_stopped(invocation, waits, [found.result.ref])
        if as_json:
            record = {
                "commit": str(found.result.oid) if found.result else None,
                "waiting": repo.records.waiting(waits),
                "moved": [address_text(address) for address in found.moved],
                "after": address_text(found.after) if found.after else None,
                "warnings": repo.records.warnings(found.warnings),
            }
            write_record(invocation, record)
            return
        warn(invocation, found.warnings)
        if not quiet:
            done = f"{found.result.oid} " if found.result else ""
            count = len(found.moved)
            there = "is already there" if count == 1 else "are already there"
            said = "moved" if found.result else "would be moved" if dry_run else there
            invocation.line(f"{done}{counted(count, 'message')} {said}")
