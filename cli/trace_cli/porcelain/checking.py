"""`trace fsck`: every object, ref and link looked at."""

from __future__ import annotations

from trace_cli.arguments import takes
from trace_cli.failures import EXIT_DAMAGED, EXIT_OK
from trace_cli.porcelain.opening import JSON, opened_store
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, paint
from trace_store.maintenance.checking import ERROR, INFO, WARNING
from trace_store.maintenance.checking import fsck as check
from trace_store.maintenance.index_checks import check_derived

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

_STYLES = {ERROR: "red", WARNING: "yellow", INFO: "dim"}


@takes(JSON)
def fsck(invocation: Invocation, *, as_json: bool) -> int:
    """Check every object, ref and link.

    Every byte is read and every hash computed again. Each finding is a line with a stable code; the exit code is 12
    when one of them is an error, which means that content is damaged or missing. Tokens are not counted again: trace
    compile-index --verify does that.
    """
    with opened_store(invocation) as store:
        findings = check(store, also=[lambda: check_derived(store)])
    for finding in findings:
        if as_json:
            fields = ("severity", "code", "what", "detail")
            write_record(invocation, {name: getattr(finding, name) for name in fields})
        else:
            severity = paint(invocation, finding.severity, _STYLES[finding.severity])
            where = one_line(finding.what)
            invocation.line(f"{severity} {finding.code} {where}: {one_line(finding.detail)}")
    wrong = sum(finding.severity == ERROR for finding in findings)
    if not as_json:
        others = len(findings) - wrong
        said = [counted(wrong, "error")] + ([counted(others, "remark")] if others else [])
        invocation.note(", ".join(said) if findings else "everything is in order")
    return EXIT_DAMAGED if wrong else EXIT_OK
