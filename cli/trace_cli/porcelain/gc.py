"""`trace gc` and `trace prune`: what nothing leads to goes, first aside and then for good."""

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
    from trace_store.maintenance.gc import GcReport

DRY_RUN = Option("-n --dry-run", "dry_run", "Say what would be done, and change nothing")
GRACE = Option(
    "--grace",
    "grace",
    "For how many days nothing must have led to what goes",
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
        "Days after which entries of reflogs go; 90 if not given, 30 for those that no ref leads to",
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
    """Seal, pack, and clear away what nothing has led to for a while.

    Loose objects that nothing leads to go to .trace/quarantine, and what has been there for as long goes for good. Old
    entries of reflogs and temporary files go too. What is in packs stays: trace prune takes that. Packs that git has in
    its index stay as they are. Nothing is removed when a ref or a reflog cannot be read.
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
        invocation.note(f"{what} in packs that nothing leads to: `trace prune` takes them")
    _tell_rest(invocation, report)


@takes(
    DRY_RUN,
    GRACE,
    Option("--now", "now", "The same as --grace 0"),
    JSON,
    QUIET,
)
def prune(
    invocation: Invocation, *, dry_run: bool, grace: int, now: bool, as_json: bool, quiet: bool
) -> None:
    """Remove what nothing has led to for a while, also from packs. It cannot be undone.

    Packs that hold some of it are written anew. What is removed stays readable in .trace/quarantine until trace gc lets
    it go. A branch that is only in another branch of your git leads to nothing here: look at them first. Nothing is
    removed when a ref or a reflog cannot be read.
    """
    if now and grace != collecting.GRACE_DAYS:
        raise errors.InvalidInputError("--now and --grace say different things")
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
            "it can be read until `trace gc` lets it go; `trace gc --grace 0` does so now"
        )
    if report.tracked:
        what = counted(report.tracked, "pack")
        invocation.note(
            f"note: git has {what} of these; its other branches may need what was in them"
        )
    _tell_rest(invocation, report)


def _record(invocation: Invocation, report: GcReport, dry_run: bool) -> None:
    found = {name: getattr(report, name) for name in fields(report)}
    write_record(invocation, {"dry_run": dry_run, **found, "damaged": list(report.damaged)})


def _tell_taken(invocation: Invocation, report: GcReport, dry_run: bool) -> None:
    if report.taken:
        what = counted(report.taken, "object")
        done = "would go" if dry_run else f"went, {size(report.bytes_taken)}"
        invocation.line(f"{what} that nothing leads to {done}")
    else:
        invocation.note("nothing to remove")


def _tell_rest(invocation: Invocation, report: GcReport) -> None:
    if report.young:
        what = counted(report.young, "object")
        invocation.note(f"{what} that nothing leads to may still be needed: not old enough")
    for name in report.damaged:
        invocation.note(f"note: pack {one_line(name)} cannot be read to its end; it was kept")
