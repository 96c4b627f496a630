"""`trace doctor`: the environment of a repository."""

from __future__ import annotations

from trace_cli.arguments import takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, paint
from trace_store import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


@takes(JSON)
def doctor(invocation: Invocation, *, as_json: bool) -> int:
    """Check file system, permissions and git settings.

    Checks the file system, permissions and owners of files, the clock, versions, git's settings for .trace, free space,
    and leftovers of interrupted operations. Nothing is changed and no program is run. Each finding has a stable code
    and a line of advice; the exit code is 7 if there is any. `trace fsck` checks the content.
    """
    with opened(invocation, quiet=as_json) as here:
        found = here.maintenance.doctor()
        surroundings = {"trace": __version__, **here.maintenance.versions()}
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
