"""`trace fsck --repair`: what can be recovered is, and what cannot is set aside and told."""

from __future__ import annotations

from trace_cli.failures import EXIT_DAMAGED, EXIT_OK
from trace_cli.porcelain.checking import tell_findings
from trace_cli.porcelain.opening import ready
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, paint
from trace_store.maintenance.findings import ERROR
from trace_store.maintenance.salvaging import salvage
from trace_store.maintenance.salvaging_config import open_damaged
from trace_store.store import Store, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation
    from trace_store.maintenance.salvage_report import SalvageReport


def repair_repository(
    invocation: Invocation, *, source: str | None, dry_run: bool, as_json: bool
) -> int:
    """Repair the repository at hand, say what was done and what is left, and return the exit code."""
    progress = Progress(invocation, shown=invocation.interactive and not as_json)
    folder, environment = invocation.folder, invocation.environment
    path = find(folder, environment, explicit=invocation.directory, damaged=True)
    other = None
    try:
        if source is not None:
            other = Store.open(find(folder, environment, explicit=source))
        opened = open_damaged(path, source=other, dry_run=dry_run)
        with ready(invocation, opened.store, quiet=as_json) as store:
            report = salvage(
                store, source=other, dry_run=dry_run, progress=progress.tell, opened=opened
            )
    finally:
        progress.clear()
        if other is not None:
            other.close()
    if as_json:
        write_record(invocation, report.record())
        return _exit_code(report)
    for each in report.mended:
        kind = paint(invocation, each.kind, "green")
        invocation.line(f"{kind} {one_line(each.what)}: {one_line(each.detail)}")
    for lost in report.lost:
        where = f", on {', '.join(map(one_line, lost.refs))}" if lost.refs else ""
        invocation.line(
            f"{paint(invocation, 'lost', 'red')} {lost.oid}: {one_line(lost.why)}{where}"
        )
    if dry_run:
        invocation.note(f"{counted(len(report.mended), 'step')} to do; nothing was written")
    elif report.kept:
        kept = counted(len(report.kept), "file")
        invocation.note(
            f"{kept} set aside in .trace/lost-found; the report is {safe(report.report)}"
        )
    return tell_findings(invocation, report.remaining)


def _exit_code(report: SalvageReport) -> int:
    wrong = any(finding.severity == ERROR for finding in report.remaining)
    return EXIT_DAMAGED if wrong else EXIT_OK
