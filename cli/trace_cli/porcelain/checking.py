"""`trace fsck`: every object, ref and link looked at."""

from __future__ import annotations

from trace_cli.arguments import takes
from trace_cli.failures import EXIT_DAMAGED, EXIT_OK
from trace_cli.porcelain.opening import JSON, opened_store
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, paint
from trace_store import context, errors
from trace_store.maintenance.checking import ERROR, INFO, WARNING, Finding
from trace_store.maintenance.checking import fsck as check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation
    from trace_store.store import Store

_STYLES = {ERROR: "red", WARNING: "yellow", INFO: "dim"}


@takes(JSON)
def fsck(invocation: Invocation, *, as_json: bool) -> int:
    """Check every object, ref and link.

    Every byte is read and every hash computed again. Each finding is a line with a stable code; the exit code is 12
    when one of them is an error, which means that content is damaged or missing. Tokens are not counted again: trace
    compile-index --verify does that.
    """
    with opened_store(invocation) as store:
        findings = check(store, also=[lambda: _check_indexes(store)])
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


def _check_indexes(store: Store) -> Iterator[Finding]:
    """Fold every branch, and compare those that have a compile index with what it says."""
    contexts = context.ContextCompiler(store)
    for name, _ in store.refs.iterate("refs/heads/"):
        try:
            if contexts.index_view(name) is None:
                contexts.compile(name, cold=True)
                continue
            outcome = contexts.verify(name, count_tokens=False)
        except errors.TraceError as error:
            yield Finding("context-unreadable", ERROR, name, error.message)
            continue
        if not outcome.matches:
            detail = "the compile index differs from the history; it can be deleted"
            yield Finding("compile-index-differs", WARNING, name, detail)
