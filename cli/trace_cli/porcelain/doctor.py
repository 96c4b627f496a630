"""`trace doctor`: the environment of a repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trace_cli import porcelain
from trace_cli.arguments import Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted, paint
from trace_cli.runtime import Invocation
from trace_store import __version__, capture
from trace_store.maintenance.doctor import Diagnosis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import ResultsAndCode


@takes(
    JSON, Option("--fix", "fix", "Mend what can be mended, as `trace fsck --repair` does, first")
)
def doctor(invocation: Invocation, *, fix: bool) -> ResultsAndCode:
    """Check file system, permissions and git settings.

    Checks the file system, permissions and owners of files, the clock, versions, git's settings for .trace, free space,
    missing objects, leftovers of interrupted operations, and the hooks of agents. Without --fix nothing is changed and
    no program is run. Each finding has a stable code and a line of advice; the exit code is 7 if there is any. `trace
    fsck` checks the content.
    """
    if fix:
        yield from porcelain.fsck.repair_repository(invocation, source=None, dry_run=False)
    with opened(invocation, quiet=invocation.as_json) as here:
        found = here.maintenance.doctor()
        hooks = capture.capture_status(invocation.environment, here.store, folder=invocation.folder)
        found += hooks.problems
        surroundings = {"trace": __version__, **here.maintenance.versions()}
    yield {"findings": found, "facts": surroundings}, _lines(invocation, found, surroundings)
    return EXIT_INVALID if found else EXIT_OK


def _lines(
    invocation: Invocation, found: Sequence[Diagnosis], surroundings: Mapping[str, str]
) -> Iterator[str]:
    for each in found:
        code = paint(invocation, each.code, "yellow")
        yield f"{code} {one_line(each.what)}: {one_line(each.detail)}"
        yield f"    {one_line(each.advice)}"
    for name, version in surroundings.items():
        invocation.note(f"{name.replace('_', ' ')}: {safe(version)}")
    invocation.note(counted(len(found), "finding") if found else "nothing to do")
