"""`trace doctor`: what a repository stands on."""

from __future__ import annotations

from trace_cli.arguments import takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, paint
from trace_store import __version__
from trace_store.maintenance.doctor import diagnose, facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


@takes(JSON)
def doctor(invocation: Invocation, *, as_json: bool) -> int:
    """Scan at what the repository stands on, and say what to do.

    The kind of file system, rights and owners of files, the clock, versions, what git is told about .trace, free room,
    and what interrupted operations left. Nothing is changed, and no program is run. Each finding is a line with a
    stable code, and one that says what to do; the exit code is 7 when there is any. trace fsck looks at the content.
    """
    with opened_store(invocation, quiet=as_json) as store:
        found = diagnose(store, invocation.environment)
        surroundings = {"trace": __version__, **facts(store)}
    if as_json:
        write_record(
            invocation,
            {
                "findings": [
                    {"code": e.code, "what": e.what, "detail": e.detail, "advice": e.advice}
                    for e in found
                ],
                "facts": surroundings,
            },
        )
        return EXIT_INVALID if found else EXIT_OK
    for each in found:
        code = paint(invocation, each.code, "yellow")
        invocation.line(f"{code} {one_line(each.what)}: {one_line(each.detail)}")
        invocation.line(f"    {one_line(each.advice)}")
    for name, version in surroundings.items():
        invocation.note(f"{name.replace('_', ' ')}: {safe(version)}")
    invocation.note(counted(len(found), "finding") if found else "nothing to do")
    return EXIT_INVALID if found else EXIT_OK
