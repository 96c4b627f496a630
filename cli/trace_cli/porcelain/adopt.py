"""`trace adopt`: accept refs that git or another tool changed under a running process."""

from __future__ import annotations

from collections.abc import Iterator

from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, QUIET, opened
from trace_cli.render.escape import safe
from trace_cli.runtime import Invocation
from trace_store.maintenance.adopt import AdoptReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


@takes(
    Option("--keep-mine", "keep_mine", "Restore the refs that this working copy had"),
    JSON,
    QUIET,
)
def adopt(invocation: Invocation, *, keep_mine: bool) -> Results:
    """Accept refs that git or another tool moved under a running process.

    A process that has the repository open refuses to write to a branch that was moved back under it. After this command
    it can write again. The old tip of each ref is kept under refs/trash/recovered/ if its commit is here. With
    --keep-mine the refs get their old tips, and the tips on disk go to the trash. Nothing is lost either way.
    """
    with opened(invocation, quiet=True) as here:
        report = here.maintenance.adopt(keep_mine=keep_mine)
    yield report, _lines(invocation, report, keep_mine=keep_mine)


def _lines(invocation: Invocation, report: AdoptReport, *, keep_mine: bool) -> Iterator[str]:
    gone = dict(report.gone)
    for name, before, now in report.changed:
        was = before.short() if before else "nothing"
        became = now.short() if now else "nothing"
        if keep_mine and before is not None and name not in gone:
            yield f"{safe(name)} is back at {was}; it was at {became}"
        else:
            yield f"{safe(name)} is at {became}; it was at {was}"
    for name, oid in report.kept:
        yield f"kept {oid.short()} as {safe(name)}"
    for name, oid in report.gone:
        invocation.note(f"note: {oid.short()}, the old tip of {safe(name)}, is missing")
    if not report.changed:
        invocation.note("no ref had moved; open processes can write again")
