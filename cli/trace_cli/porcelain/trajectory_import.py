"""`trace trajectory import`: trajectories of `trail` (npm agent-trajectories)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, SECRETS, finish, opened
from trace_cli.render.escape import one_line
from trace_cli.render.tables import counted, number
from trace_cli.runtime import Invocation
from trace_store.trajectories import trail_folders
from trace_store.trajectories.trail_import import OUTCOMES, UNCHANGED, ImportedFile, TrailImport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

SHOWN_PROBLEMS = 5
"""How many problems of a file are listed for people; --json lists all."""
MOST_FILES = 20
"""If there are more files, unchanged ones are not listed."""


@takes(
    Argument(
        "PATH...", "paths", "Files or folders (default: the folders of trail in this folder)", ANY
    ),
    Option("-n --dry-run", "dry_run", "Only report what would be imported"),
    SECRETS,
    JSON,
    QUIET,
)
def import_(
    invocation: Invocation,
    *,
    paths: list[str],
    dry_run: bool,
    secrets: str,
) -> Results:
    """Import trajectories of the `trail` command (npm agent-trajectories).

    Reads `.trajectories/` and `.agentworkforce/trajectories/`, or the files and folders that you name. Importing again
    adds only new events. A file that cannot be read does not stop the others, but the first one sets the exit code.
    `trace trajectory export --format trail` writes a trajectory as it was imported.

        trace trajectory import
        trace trajectory import traj_5q8i0iz4klpo.json --dry-run
    """
    named = [os.path.join(invocation.folder, path) for path in paths]
    named = named or trail_folders(invocation.folder)
    if not named:
        raise usage_error("nothing to import: there is no folder of trail here", "name files")
    with opened(invocation, secrets=secrets) as repo:
        report = repo.trajectories.import_trail(*named, dry_run=dry_run)
        finish(invocation, repo)
    yield report, _lines(invocation, report, dry_run=dry_run)
    if failures := report.failures:
        if len(failures) > 1:
            invocation.note(f"note: {len(failures)} files could not be imported; the first:")
        raise failures[0]


def _lines(invocation: Invocation, report: TrailImport, *, dry_run: bool) -> Iterator[str]:
    """Yield a line for each file, and a summary."""
    for each in report.files:
        if len(report.files) <= MOST_FILES or each.outcome != UNCHANGED:
            yield _line(invocation, each)
        for problem in each.problems[:SHOWN_PROBLEMS]:
            yield f"  {one_line(problem, 200)}"
        if (more := len(each.problems) - SHOWN_PROBLEMS) > 0:
            yield f"  … and {counted(more, 'problem')} more"
    counts = [
        f"{number(count)} {outcome}" for outcome in OUTCOMES if (count := report.count(outcome))
    ]
    would = "would import" if dry_run else "imported"
    yield f"{would} {counted(report.events, 'event')} ({', '.join(counts) or 'no file'})"


def _line(invocation: Invocation, file: ImportedFile) -> str:
    path = os.path.relpath(file.path, invocation.folder)
    shown = one_line(file.path if path.startswith("..") else path, 200)
    events = f", {counted(file.events, 'event')}" if file.events else ""
    id_ = f" {one_line(file.trajectory, 80)}" if file.trajectory else ""
    why = f": {one_line(file.error.message, 300)}" if file.error is not None else ""
    return f"{file.outcome}{id_}{events} ({shown}){why}"
