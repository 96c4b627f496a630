"""`trace gc` and `trace prune`: delete unreachable objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import trace_store
from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, QUIET, opened
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line
from trace_cli.render.tables import LEFT, RIGHT, counted, size, table
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.history.retention import ExpiryReport
from trace_store.maintenance.gc import GcReport
from trace_store.maintenance.maintenance import GRACE_DAYS, Maintenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results
    from trace_store.maintenance.maintenance import Progress as Tell

DRY_RUN = Option("-n --dry-run", "dry_run", "Only print what would be done")
GRACE = Option(
    "--grace",
    "grace",
    "Remove only objects unreachable for this many days",
    "DAYS",
    number=True,
    default=GRACE_DAYS,
)
RULES = (
    Option(
        "--retention",
        "retention",
        "How long the trash keeps refs: `72 hours`, `30 days`, `5 sessions`, or `by hand`",
        "AGE",
    ),
    Option("--max-count", "max_count", "How many refs the trash keeps", "N", number=True),
    Option(
        "--max-size",
        "max_size",
        "Maximum size of data held only by the trash, such as 100M",
        "SIZE",
    ),
    Option(
        "--keep",
        "keep",
        "What the trash keeps regardless: pinned, checkpoints, tags, summaries, or nothing",
        "WHAT",
        many=True,
    ),
)


@takes(
    DRY_RUN,
    GRACE,
    *RULES,
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
    retention: str | None,
    max_count: int | None,
    max_size: str | None,
    keep: list[str],
) -> Results:
    """Seal, pack and delete unreachable data.

    Unreachable loose objects move to .trace/quarantine, and are deleted from there after another grace period. Old
    reflog entries and temporary files are deleted. Unreachable objects in packs stay until `trace prune`. Packs in
    git's index are not rewritten. If a ref or reflog cannot be read, nothing is deleted.

    Refs stay in the trash unless settings (trash_retention, trash_count, trash_size) or the options limit it.
    """
    return _collected(
        *(invocation, retention, max_count, max_size, keep),
        lambda upkeep, progress: upkeep.gc(
            grace_days=grace, reflog_days=expire, dry_run=dry_run, progress=progress
        ),
        _gc_lines,
        dry_run=dry_run,
    )


def _gc_lines(invocation: Invocation, report: GcReport) -> Iterator[str]:
    if report.packs:
        yield f"packed into {counted(report.packs, 'pack')}"
    if report.entries:
        what = counted(report.entries, "line")
        yield f"{what} expired from reflogs"
    if report.bytes_emptied:
        yield f"{size(report.bytes_emptied)} freed from quarantine"
    if report.sealed:
        what = counted(report.sealed, "object")
        invocation.note(f"{what} in packs unreachable: `trace prune` deletes them")
    _tell_rest(invocation, report)


@takes(
    DRY_RUN,
    GRACE,
    Option("--now", "now", "Same as --grace 0"),
    *RULES,
    JSON,
    QUIET,
)
def prune(
    invocation: Invocation,
    *,
    dry_run: bool,
    grace: int,
    now: bool,
    retention: str | None,
    max_count: int | None,
    max_size: str | None,
    keep: list[str],
) -> Results:
    """Delete unreachable objects, also from packs. This cannot be undone.

    Packs with such objects are rewritten. The objects stay readable in .trace/quarantine until `trace gc` deletes them.
    Objects that only another git branch uses count as unreachable, so check your other branches first. If a ref or
    reflog cannot be read, nothing is deleted.
    """
    if now and grace != GRACE_DAYS:
        raise errors.InvalidInputError("--now and --grace exclude each other")
    return _collected(
        *(invocation, retention, max_count, max_size, keep),
        lambda upkeep, progress: upkeep.prune(
            grace_days=0 if now else grace, dry_run=dry_run, progress=progress
        ),
        _prune_lines,
        dry_run=dry_run,
    )


def _prune_lines(invocation: Invocation, report: GcReport) -> Iterable[str]:
    if report.taken:
        invocation.note(
            "they stay readable in quarantine; `trace gc` deletes them later, `trace gc --grace 0` now"
        )
    if report.tracked:
        what = counted(report.tracked, "pack")
        invocation.note(f"note: {what} are in git; its other branches may need them")
    _tell_rest(invocation, report)
    return ()


def _collected(
    invocation: Invocation,
    retention: str | None,
    max_count: int | None,
    max_size: str | None,
    keep: list[str],
    collect: Callable[[Maintenance, Tell], GcReport],
    lines: Callable[[Invocation, GcReport], Iterable[str]],
    *,
    dry_run: bool,
) -> Results:
    """Expire refs in the trash, collect, and yield what was removed; `lines` are about the rest."""
    with opened(invocation) as here, Progress(invocation) as progress:
        expiry = here.trash.expire(
            retention=retention,
            max_count=max_count,
            max_size=max_size,
            keep=keep,
            dry_run=dry_run,
        )
        report = collect(here.maintenance, progress.tell)
    yield (
        lambda: trace_store.record(
            report,
            dry_run=dry_run,
            expired=[{"ref": each.ref, "rule": rule} for each, rule in expiry.expired],
            expired_bytes=expiry.freed.disk,
            kept=[{"ref": each.ref, "reason": reason} for each, reason in expiry.kept],
        ),
        _plan_lines(invocation, report, expiry)
        if dry_run
        else _removed_lines(invocation, report, expiry, lines),
    )


def _plan_lines(invocation: Invocation, report: GcReport, expiry: ExpiryReport) -> Iterator[str]:
    """Yield what a dry run found as a table."""
    rows: list[tuple[str, int | None, int | None]] = [
        (f"trash, by {rule}", sum(why == rule for _, why in expiry.expired), None)
        for rule in dict.fromkeys(why for _, why in expiry.expired)
    ]
    rows += [("held only by these", expiry.freed.objects, expiry.freed.disk)] if rows else []
    rows += [
        (f"trash, kept: {reason}", sum(why == reason for _, why in expiry.kept), None)
        for reason in dict.fromkeys(why for _, why in expiry.kept)
    ]
    rows += [
        ("objects to quarantine", report.taken, report.bytes_taken),
        ("objects too recent", report.young, None),
        ("objects in packs (trace prune)", report.sealed, None),
        ("reflog entries", report.entries, None),
        ("quarantine to free", None, report.bytes_emptied or None),
    ]
    cells = [
        (what, "" if count is None else f"{count:,}", "" if held is None else size(held))
        for what, count, held in rows
        if count or held
    ]
    if not cells:
        invocation.note("nothing to remove")
        return
    header = ("dry run", "number", "bytes")
    yield from table(invocation, header, cells, LEFT + RIGHT * 2)
    _tell_damaged(invocation, report)


def _removed_lines(
    invocation: Invocation,
    report: GcReport,
    expiry: ExpiryReport,
    rest: Callable[[Invocation, GcReport], Iterable[str]],
) -> Iterator[str]:
    if expiry.expired:
        what = counted(len(expiry.expired), "ref")
        yield f"{what} expired from the trash, {size(expiry.freed.disk)} on the disk"
    if expiry.kept:
        reasons = ", ".join(dict.fromkeys(reason for _, reason in expiry.kept))
        what = counted(len(expiry.kept), "ref")
        invocation.note(f"note: {what} stayed in the trash: {reasons}")
    if report.taken:
        what = counted(report.taken, "object")
        yield f"{what} removed as unreachable, {size(report.bytes_taken)}"
    else:
        invocation.note("nothing to remove")
    yield from rest(invocation, report)


def _tell_rest(invocation: Invocation, report: GcReport) -> None:
    if report.young:
        what = counted(report.young, "object")
        invocation.note(f"{what} unreachable, but too recent to delete")
    _tell_damaged(invocation, report)


def _tell_damaged(invocation: Invocation, report: GcReport) -> None:
    for name in report.damaged:
        invocation.note(f"note: pack {one_line(name)} is corrupt; it was kept")
