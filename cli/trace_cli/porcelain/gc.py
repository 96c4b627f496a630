"""`trace gc` and `trace prune`: delete unreachable objects."""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.porcelain.progress import Progress
from trace_cli.porcelain.seal import QUIET
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, size
from trace_store import errors
from trace_store.frozen import fields
from trace_store.maintenance import gc as collecting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation
    from trace_store.maintenance.gc import Collected

DRY_RUN = Option("-n --dry-run", "dry_run", "Only print what would be done")
GRACE = Option(
    "--grace",
    "grace",
    "Remove only objects unreachable for this many days",
    "DAYS",
    number=True,
    default=collecting.GRACE_DAYS,
)


@takes(
    DRY_RUN,
    GRACE,
    Option(
        "--expire",
        "expire",
        "Expire reflog entries after this many days (default: 90; 30 if unreachable)",
        "DAYS",
        number=True,
    ),
    JSON,
    QUIET,
)
def gc(
    invocation: Invocation,
    *,
    dry_run: bool,
    grace: int,
    expire: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Seal, pack and delete unreachable data.

    Loose objects that are unreachable move to .trace/quarantine, and are deleted after the same time again. Old reflog
    entries and temporary files are deleted. Unreachable objects in packs stay until `trace prune`. Packs in git's index
    are not rewritten. If a ref or reflog cannot be read, nothing is deleted.
    """
    progress = Progress(invocation, shown=invocation.interactive and not quiet)
    with opened_store(invocation) as store:
        report = collecting.gc(
            store,
            grace_days=grace,
            reflog_days=expire,
            dry_run=dry_run,
            progress=progress.tell,
        )
        progress.clear()
    if as_json:
        _record(invocation, report, dry_run)
        return
    if quiet:
        return
    _tell_taken(invocation, report, dry_run)
    if report.packs:
        invocation.line(f"packed into {counted(report.packs, 'pack')}")
    if report.entries:
        what = counted(report.entries, "line")
        invocation.line(f"{what} of reflogs {'would expire' if dry_run else 'expired'}")
    if report.bytes_emptied:
        done = "would be freed" if dry_run else "freed"
        invocation.line(f"{size(report.bytes_emptied)} {done} from quarantine")
    if report.sealed:
        what = counted(report.sealed, "object")
        invocation.note(f"{what} in packs unreachable: `trace prune` deletes them")
    _tell_rest(invocation, report)


@takes(
    DRY_RUN,
    GRACE,
    Option("--now", "now", "Same as --grace 0"),
    JSON,
    QUIET,
)
def prune(
    invocation: Invocation, *, dry_run: bool, grace: int, now: bool, as_json: bool, quiet: bool
) -> None:
    """Delete unreachable objects, also from packs. This cannot be undone.

    Packs with such objects are rewritten. The objects stay readable in .trace/quarantine until `trace gc` deletes them.
    Objects that only another git branch uses count as unreachable, so check your other branches first. If a ref or
    reflog cannot be read, nothing is deleted.
    """
    if now and grace != collecting.GRACE_DAYS:
        raise errors.InvalidInputError("--now and --grace exclude each other")
    progress = Progress(invocation, shown=invocation.interactive and not quiet)
    with opened_store(invocation) as store:
        report = collecting.prune(
            store, grace_days=0 if now else grace, dry_run=dry_run, progress=progress.tell
        )
        progress.clear()
    if as_json:
        _record(invocation, report, dry_run)
        return
    if quiet:
        return
    _tell_taken(invocation, report, dry_run)
    if report.taken and not dry_run:
        invocation.note(
            "they stay readable until `trace gc` deletes them; `trace gc --grace 0` does so now"
        )
    if report.tracked:
        what = counted(report.tracked, "pack")
        invocation.note(f"note: {what} are in git; its other branches may need them")
    _tell_rest(invocation, report)


def _record(invocation: Invocation, report: Collected, dry_run: bool) -> None:
    found = {name: getattr(report, name) for name in fields(report)}
    write_record(invocation, {"dry_run": dry_run, **found, "damaged": list(report.damaged)})


def _tell_taken(invocation: Invocation, report: Collected, dry_run: bool) -> None:
    if report.taken:
        what = counted(report.taken, "object")
        done = "would go" if dry_run else f"went, {size(report.bytes_taken)}"
        invocation.line(f"{what} that nothing leads to {done}")
    else:
        invocation.note("nothing to remove")


def _tell_rest(invocation: Invocation, report: Collected) -> None:
    if report.young:
        what = counted(report.young, "object")
        invocation.note(f"{what} unreachable, but too recent to delete")
    for name in report.damaged:
        invocation.note(f"note: pack {one_line(name)} is corrupt; it was kept")
