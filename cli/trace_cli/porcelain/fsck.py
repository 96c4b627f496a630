"""`trace fsck`, and `trace fsck --repair`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trace_cli import porcelain
from trace_cli.arguments import Option, takes
from trace_cli.failures import EXIT_DAMAGED, EXIT_OK, usage_error
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted, paint
from trace_cli.runtime import Invocation
from trace_store.maintenance.fsck_objects import ERROR, INFO, WARNING, Finding
from trace_store.maintenance.repair_report import RepairReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import ResultsAndCode

_STYLES = {ERROR: "red", WARNING: "yellow", INFO: "dim"}


@takes(
    Option("--repair", "repair", "Recover what is possible, and set corrupt files aside"),
    Option("--from", "source", "Take missing objects from this copy of the repository", "PATH"),
    Option("-n --dry-run", "dry_run", "With --repair: only print what would be done"),
    JSON,
)
def fsck(
    invocation: Invocation, *, repair: bool, source: str | None, dry_run: bool
) -> ResultsAndCode:
    """Verify every object, ref and link.

    All bytes are read and all hashes recomputed. Each finding is a line with a stable code. The exit code is 12 if one
    is an error: content is corrupt or missing. `trace compile-index --verify` checks the token counts.

    --repair recovers objects from other copies: loose files, other packs, journals, quarantine, and the repository
    given with --from. It rewrites corrupt packs, refs, indexes and tables, and a corrupt or missing configuration.
    Nothing is deleted: corrupt files go to .trace/lost-found. A report there lists the objects that could not be
    recovered, and the commits and branches that need them. The exit code is 12 if errors remain.
    """
    if not repair and (source is not None or dry_run):
        raise usage_error("--from and --dry-run require --repair")
    if repair:
        return (yield from repair_repository(invocation, source=source, dry_run=dry_run))
    with opened(invocation) as here:
        findings = here.maintenance.fsck()
    yield findings, finding_lines(invocation, findings)
    return _exit_code(findings)


def finding_lines(invocation: Invocation, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield findings, one per line; their number is a note."""
    for finding in findings:
        severity = paint(invocation, finding.severity, _STYLES[finding.severity])
        where = one_line(finding.what)
        yield f"{severity} {finding.code} {where}: {one_line(finding.detail)}"
    wrong = sum(finding.severity == ERROR for finding in findings)
    others = len(findings) - wrong
    said = [counted(wrong, "error")] + ([counted(others, "remark")] if others else [])
    invocation.note(", ".join(said) if findings else "no problems found")


def repair_repository(
    invocation: Invocation, *, source: str | None, dry_run: bool
) -> ResultsAndCode:
    """Repair the repository, print what was repaired or lost; return the exit code."""
    bar = porcelain.progress.Progress(invocation)
    with bar, opened(invocation, quiet=invocation.as_json, damaged=True) as here:
        report = here.maintenance.repair(source, dry_run=dry_run, progress=bar.tell)
    yield report, _repair_lines(invocation, report)
    return _exit_code(report.remaining)


def _repair_lines(invocation: Invocation, report: RepairReport) -> Iterator[str]:
    for each in report.mended:
        kind = paint(invocation, each.kind, "green")
        yield f"{kind} {one_line(each.what)}: {one_line(each.detail)}"
    for lost in report.lost:
        where = f", on {', '.join(map(one_line, lost.refs))}" if lost.refs else ""
        yield f"{paint(invocation, 'lost', 'red')} {lost.oid}: {one_line(lost.why)}{where}"
    if report.dry_run:
        invocation.note(f"{counted(len(report.mended), 'step')} to do; nothing was written")
    elif report.kept:
        kept = counted(len(report.kept), "file")
        invocation.note(
            f"{kept} set aside in .trace/lost-found; the report is {safe(report.report)}"
        )
    yield from finding_lines(invocation, report.remaining)


def _exit_code(findings: Sequence[Finding]) -> int:
    wrong = any(finding.severity == ERROR for finding in findings)
    return EXIT_DAMAGED if wrong else EXIT_OK
