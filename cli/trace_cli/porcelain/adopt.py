"""`trace adopt`: going on after git, or another tool, has taken the repository back under a running process."""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

QUIET = Option("-q --quiet", "quiet", "Print nothing")


@takes(
    Option("--keep-mine", "keep_mine", "Take refs back to what this working copy had last"),
    JSON,
    QUIET,
)
def adopt(invocation: Invocation, *, keep_mine: bool, as_json: bool, quiet: bool) -> None:
    """Go on from what is on the disk, after git or another tool has moved refs under a running process.

    A process that has the repository open refuses to write on top of a branch that was taken back under it. This lets
    it go on. What a ref had before is kept under refs/trash/recovered/ when its commit is here; with --keep-mine the
    ref has it again, and what was on the disk is kept. Nothing is given up either way.
    """
    with opened(invocation, quiet=True) as here:
        report = here.maintenance.adopt(keep_mine=keep_mine)
    if as_json:
        write_record(
            invocation,
            {
                "changed": [
                    {
                        "ref": name,
                        "before": None if before is None else str(before),
                        "now": None if now is None else str(now),
                    }
                    for name, before, now in report.changed
                ],
                "kept": [{"ref": name, "commit": str(oid)} for name, oid in report.kept],
                "gone": [{"ref": name, "commit": str(oid)} for name, oid in report.gone],
            },
        )
        return
    if quiet:
        return
    gone = dict(report.gone)
    for name, before, now in report.changed:
        was = before.short() if before else "nothing"
        became = now.short() if now else "nothing"
        if keep_mine and before is not None and name not in gone:
            invocation.line(f"{safe(name)} is back at {was}; it was at {became}")
        else:
            invocation.line(f"{safe(name)} is at {became}; it was at {was}")
    for name, oid in report.kept:
        invocation.line(f"kept {oid.short()} as {safe(name)}")
    for name, oid in report.gone:
        invocation.note(f"note: {oid.short()}, where {safe(name)} was, is not here any more")
    if not report.changed:
        invocation.note("nothing was moved; whoever has the repository open may go on")
