"""`trace import`: transcripts of agent runs become branches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from trace_cli import porcelain
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    QUIET,
    SECRETS,
    finish,
    opened,
    tell_secrets,
)
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, RIGHT, counted, number, paint, table
from trace_cli.runtime import Invocation
from trace_store import Repo, Store
from trace_store.base.environment import Environment
from trace_store.errors import NotFoundError, RepositoryNotFoundError, UnreadableInputError
from trace_store.importers import format_names, project_folder
from trace_store.importers.discovery import EMPTY, TRAJECTORY
from trace_store.importers.registry import BUILT_IN
from trace_store.importers.report import NOT_READ, FileReport, ImportReport
from trace_store.sessions.transcripts import Transcripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


def formats_of(incomplete: str) -> list[str]:
    """Complete the name of a format."""
    return [name for name in format_names() if name.startswith(incomplete)]


SHOWN_FOLDERS = 5
MOST_FILES = 20
"""With more files, only failed ones get a line, unless -v is given."""
NAMED_SKIPS = 5
"""How many skipped records of a file are listed for people; --json lists up to a thousand."""


@takes(
    Argument("PATH...", "paths", "Transcripts or folders; - reads standard input", ANY),
    Option(
        "--format",
        "form",
        f"{', '.join(sorted(own.NAME for own in BUILT_IN))} (default: detected)",
        "FORMAT",
        completes="IMPORTED",
    ),
    Option("--onto", "onto", "Append to this branch", "BRANCH"),
    Option(
        "--source",
        "source",
        "Keep fields of records that messages cannot represent",
        off="--no-source",
    ),
    Option(
        "--all",
        "everything",
        "Import this project's sessions from the default folder of each agent, or of --format",
    ),
    Option("--dry-run", "dry_run", "Say what would be imported, and write nothing"),
    Option(
        "-v --verbose",
        "verbose",
        f"Print a line for each file even if there are more than {MOST_FILES}",
    ),
    SECRETS,
    JSON,
    QUIET,
)
def import_(
    invocation: Invocation,
    *,
    paths: list[str],
    form: str | None,
    onto: str | None,
    source: bool,
    everything: bool,
    dry_run: bool,
    verbose: bool,
    secrets: str,
) -> Results:
    """Import transcripts of agent sessions.

    Each session becomes a branch `sessions/FORMAT/ID`. Subagents and rewinds become branches from the message where
    they started. If HEAD has no commit yet, it moves to the session that ended last. Importing again adds only what is
    new. Skipped records are counted and reported on standard error. A file that cannot be imported does not stop the
    others; the exit code is that of the first such file.

    Secrets are replaced by placeholders, in messages and in the kept source files, unless --secrets or your settings
    say otherwise.

    --all imports the sessions of this folder and of those above it, up to the project's. Without a repository, it
    creates one at the root of the git work tree, or here.

    --dry-run imports into a copy of the repository in memory, so its report is what an import would print.

        trace import session.jsonl
        trace import --all
    """
    if everything and not dry_run:
        _create_if_none(invocation, form or "")
    with opened(invocation, secrets=secrets) as here:
        found = _discover(invocation, here.transcripts, form or "") if everything else []
        if not paths and not found:
            raise usage_error("nothing to import", "name transcripts or use --all")
        progress, is_interrupted = Progress(invocation), False
        try:
            report = here.transcripts.import_(
                *paths,
                format=form or "",
                onto=onto or "",
                source=source,
                discovered=found,
                stdin=invocation.stdin,
                dry_run=dry_run,
                progress=progress.tell,
            )
        except KeyboardInterrupt:
            is_interrupted = True  # what is imported is durable; sealing it may take seconds
            progress.clear()
            invocation.note(_interruption(progress.path, dry_run=dry_run))
            raise
        finally:
            progress.clear()
            if not is_interrupted:
                finish(invocation, here)
        if not invocation.quiet and not dry_run:
            moved = {branch.ref for file in report.files for branch in file.branches}
            porcelain.in_progress.tell_stopped(invocation, here.in_progress, moved)
    yield report, report_lines(invocation, report, verbose=verbose)
    if not invocation.quiet:
        tell_secrets(invocation, report.secrets, here.guard)
        _tell_trajectories(invocation, report)
    if report.errors:
        if len(report.errors) > 1:
            invocation.note(f"note: {len(report.errors)} files could not be imported; the first:")
        raise report.errors[0]
    if report.hidden:
        unread = f"{counted(report.hidden, 'message')} of {number(report.messages)}"
        raise UnreadableInputError(
            f"{unread} could not be read; they are kept, but not shown to models",
            reason=NOT_READ,
            hint="--format NAME forces a format; `trace import --help` lists them",
        )


def _tell_trajectories(invocation: Invocation, report: ImportReport) -> None:
    """Say how to import the trajectories among the files, which are no transcripts."""
    if count := sum(file.skipped == TRAJECTORY for file in report.files):
        what = "1 file is a trajectory" if count == 1 else f"{number(count)} files are trajectories"
        invocation.note(f"note: {what} of trail; `trace trajectory import` reads them")


def _interruption(path: str, *, dry_run: bool) -> str:
    """Return the message of an interrupted import, given the path last read."""
    if not path or dry_run:
        return "interrupted before anything was imported"
    return f"interrupted at {one_line(path, 200)}; everything read so far is imported; repeat the command to continue"


def _create_if_none(invocation: Invocation, form: str) -> None:
    """Create a repository in the project folder if there is none, but agents worked in it."""
    environment, folder = invocation.environment, invocation.folder
    if invocation.directory is not None or environment.trace_dir is not None:
        return
    try:
        Store.find(folder, environment, trusting=True, damaged=True)
    except RepositoryNotFoundError:
        _discover(invocation, Repo(Store.memory(), environment=environment).transcripts, form)
        with Repo.init(project_folder(folder), environment=environment) as made:
            where = safe(made.store.layout.root)
        invocation.note(f"note: created an empty repository in {where}")


def _discover(invocation: Invocation, transcripts: Transcripts, form: str) -> list[str]:
    environment, folder = invocation.environment, invocation.folder
    found = transcripts.discover(folder, form)
    if not found:
        others = list(transcripts.projects())
        shown = ", ".join(one_line(each, 80) for each in others[:SHOWN_FOLDERS])
        more = len(others) - SHOWN_FOLDERS
        shown += f" and {more:,} more" if more > 0 else ""
        places = ", ".join(_short(path, environment) for path in _places(environment))
        raise NotFoundError(
            f"no agent sessions found for {one_line(folder, 200)} (looked in {places})",
            hint=f"sessions exist for {shown}; name a file or folder to import them, as in "
            f"`trace import {_first_place(environment)}`"
            if others
            else "name the transcripts: `trace import FILE`",
        )
    return found


def _first_place(environment: Environment) -> str:
    """Return the first folder that exists and may hold sessions of agents."""
    there = (path for path in _places(environment) if os.path.exists(path))
    return next((_short(path, environment) for path in there), "FOLDER")


def _places(environment: Environment) -> list[str]:
    """Return the best-known folders of agent sessions, to name in a message."""
    data = os.path.join(environment.data_dir, "opencode") if environment.data_dir else ""
    places = [environment.claude_dir, environment.codex_dir, environment.gemini_dir, data]
    return [path for path in places if path]


def _short(path: str, environment: Environment) -> str:
    """Return a path for people, with `~` for the home folder."""
    home = environment.home
    is_below = bool(home) and f"{path}{os.sep}".startswith(f"{home}{os.sep}")
    return f"~{path.removeprefix(home)}" if is_below else path


def report_lines(
    invocation: Invocation, report: ImportReport, *, verbose: bool = False
) -> Iterator[str]:
    """Yield an import's result: a line per file, then totals.

    With many files, only failed ones get a line.
    """
    many = len(report.files) > MOST_FILES and not verbose
    for file in report.files:
        if many and file.error is None:
            continue
        yield from _file_lines(invocation, file)
        for note in _skip_notes(file):
            invocation.note(note)
    yield from _formats_table(invocation, report)
    outcomes = ", ".join(f"{number(count)} {name}" for name, count in report.outcomes().items())
    present = sum(file.commits_present for file in report.files)
    made = f"{counted(report.commits, 'commit')}, {counted(report.messages, 'message')}"
    made += f", {counted(present, 'commit')} already present" if present else ""
    yield f"{'dry run: ' if report.dry_run else ''}{_file_counts(report)}: {made}"
    if outcomes:
        yield f"records: {outcomes}"


def _file_counts(report: ImportReport) -> str:
    """Return the number of files, by outcome if some were not imported."""
    files = [file for file in report.files if not file.is_stray]
    kinds = Counter(file.skipped.replace("-", " ") or "imported" for file in files)
    total = counted(len(files), "file")
    if len(files) < 2 or set(kinds) <= {"imported"}:
        return total
    return f"{total} ({', '.join(f'{number(count)} {kind}' for kind, count in kinds.items())})"


def _formats_table(invocation: Invocation, report: ImportReport) -> list[str]:
    """Return a table of the results per format, if there are several."""
    names = sorted({file.format for file in report.files if file.format})
    if len(names) < 2:
        return []
    header = ["FILES", "BYTES", "RECORDS", "MESSAGES", "CALLS", "RESULTS", "SKIPPED", "FORMAT"]
    rows = []
    for name in names:
        files = [file for file in report.files if file.format == name]
        sums = [
            len(files),
            sum(file.size for file in files),
            sum(file.record_count for file in files),
            sum(file.messages for file in files),
            sum(file.calls for file in files),
            sum(file.results for file in files),
            sum(file.skipped_count for file in files),
        ]
        rows.append([*map(number, sums), safe(name)])
    return ["", *table(invocation, header, rows, RIGHT * 7 + LEFT), ""]


def _file_lines(invocation: Invocation, file: FileReport) -> Iterator[str]:
    name = one_line(file.path, 200)
    if file.skipped:
        # An empty file needs no explanation.
        has_reason = file.error is not None and file.skipped != EMPTY
        why = f": {one_line(str(file.error), 200)}" if has_reason else ""
        yield f"{name}: {file.skipped.replace('-', ' ')}{why}"
        return
    made = f"{counted(file.commits, 'commit')}, {counted(file.messages, 'message')}"
    present = (
        f", {counted(file.commits_present, 'commit')} already present"
        if file.commits_present
        else ""
    )
    yield f"{name}: {made}{present}"
    for branch in file.branches:
        short = safe(branch.ref.removeprefix("refs/heads/"))
        yield f"    {paint(invocation, short, 'green')} at {branch.oid.short()}"


def _skip_notes(file: FileReport) -> Iterator[str]:
    name = one_line(file.path, 200)
    if file.unread:
        blocks = counted(file.unread, "block")
        yield f"note: {name}: {blocks} could not be read; kept, but not shown to models"
    for skip in file.unread_at[:NAMED_SKIPS]:
        yield f"note: {name}:{skip.line}: not read: {one_line(skip.detail, 120)}"
    for skip in file.skips[:NAMED_SKIPS]:
        yield f"note: {name}:{skip.line}: skipped, {skip.reason}: {one_line(skip.detail, 120)}"
    if len(file.skips) > NAMED_SKIPS:
        yield f"note: {name}: {len(file.skips) - NAMED_SKIPS} more were skipped; --json lists up to 1,000"
