"""`trace trajectory export`, `bundle` and `timeline`: trajectories as files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from trace_cli.arguments import SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, opened
from trace_cli.porcelain.trajectory import ID
from trace_cli.porcelain.trajectory_git import write_notes
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_data
from trace_cli.render.tables import counted, paint, size, terminal_width
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.exporters.contract import Exported
from trace_store.trajectories.exports import (
    DATA_FORMS,
    FORMS,
    PULL_REQUEST,
    SYNONYMS,
    TRAIL,
    Exports,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

FOLDER, MARKDOWN = "folder", "markdown"
ENDINGS = {".html": "page", ".htm": "page", ".txt": "timeline", ".json": TRAIL}
"""The form by file extension; Markdown for any other extension."""
OUTPUT = Option(
    "-o --output",
    "output",
    "Write to FILE; if it is a folder, to a generated name in it",
    "FILE",
    default="",
)
FORCE = Option("--force", "force", "Overwrite files")
THINKING = Option("--thinking", "thinking", "Include the agents' thinking")
WITH_SESSIONS = Option(
    "--with-sessions", "sessions", "Include the messages of the agents' sessions, one a line"
)
NO_THINKING = Option("--no-thinking", "no_thinking", "Leave out the agents' thinking (default)")


@takes(
    ID,
    Option(
        "-f --format",
        "form",
        "Output format (default: from the extension of FILE, else markdown)",
        "FORMAT",
        default="",
        choices=(*FORMS, *DATA_FORMS, *SYNONYMS, FOLDER),
    ),
    OUTPUT,
    Option(
        "--since",
        "since",
        "With pr: leave out the commits that REV has, and their decisions",
        "REV",
        default="",
    ),
    THINKING,
    NO_THINKING,
    WITH_SESSIONS,
    Option("--git-notes", "git_notes", "Write the decisions to git notes on the linked commits"),
    Option("--remove", "remove", "With --git-notes: remove these notes"),
    FORCE,
    JSON,
)
def export(
    invocation: Invocation,
    *,
    trajectory: str,
    form: str,
    output: str,
    since: str,
    thinking: bool,
    no_thinking: bool,
    sessions: bool,
    git_notes: bool,
    remove: bool,
    force: bool,
) -> Results:
    """Export a trajectory to a file or to standard output.

    `page` (or `html`) is one HTML file that needs no network. `timeline` is plain text: a vertical timeline with the
    events in order of time; `timeline-html` is the same as one HTML file. `pr` is the text of a pull request. `folder`
    is a page, a file for each chapter, and raw data. `trail` (or `json`) is JSON for the `trail` command (npm
    agent-trajectories); what it cannot represent is listed on standard error. `agent-trace` is the Agent Trace record
    that was imported with a trajectory. Secrets that Trace detects are redacted in every format. Thinking and the
    messages of sessions are left out unless you give --thinking and --with-sessions.

    A decision belongs to the first commit that was linked after it. With --since main, `pr` leaves out the commits that
    main has, and their decisions. --git-notes writes a note to each linked commit, under refs/notes/trajectories.
    `git log --notes=trajectories` shows the notes.

        trace trajectory export -o why.html
        trace trajectory export --format pr --since main | gh pr create --title "Sign in" --body-file -
    """
    if remove and not git_notes:
        raise usage_error("--remove requires --git-notes")
    if git_notes:
        yield from write_notes(invocation, trajectory, remove=remove)
        return
    _check(invocation, thinking, no_thinking, output, force=force)
    form = form or ENDINGS.get(os.path.splitext(output)[1].lower(), MARKDOWN)
    if since and form != PULL_REQUEST:
        raise usage_error("--since requires --format pr")
    if form == FOLDER and output in ("", "-"):
        raise usage_error("--format folder requires a folder", "-o FOLDER")
    with opened(invocation) as repo:
        exports = repo.trajectories.exports
        name = repo.trajectories.find(trajectory, ended=True).id
        if form == FOLDER:
            flags = {"thinking": thinking, "sessions": sessions, "force": force}
            yield from _write_folder(invocation, exports, name, output, **flags)
            return
        shown = {"thinking": thinking, "sessions": sessions}
        made = exports.export(form, name, **shown, since=since, folder=invocation.folder)
        yield from _write(invocation, exports, [name], form, made, output, force=force)


@takes(
    Argument("ID...", "names", "The trajectories", SOME, completes="TRAJECTORY"),
    OUTPUT,
    THINKING,
    NO_THINKING,
    WITH_SESSIONS,
    FORCE,
    JSON,
)
def bundle(
    invocation: Invocation,
    *,
    names: list[str],
    output: str,
    thinking: bool,
    no_thinking: bool,
    sessions: bool,
    force: bool,
) -> Results:
    """Write several trajectories as one Markdown file.

    trace trajectory bundle traj_01 traj_02 -o release.md
    """
    _check(invocation, thinking, no_thinking, output, force=force)
    with opened(invocation) as repo:
        exports = repo.trajectories.exports
        ids = list(dict.fromkeys(repo.trajectories.find(name).id for name in names))
        made = exports.bundle(ids, thinking=thinking, sessions=sessions)
        yield from _write(invocation, exports, ids, MARKDOWN, made, output, force=force)


@takes(Argument("FOLDER", "folder", "The folder, such as docs/decisions"), JSON, QUIET)
def mirror(invocation: Invocation, *, folder: str) -> Results:
    """Write the decisions of each trajectory to a Markdown file, for searches and reviews.

    Files are named after the trajectories; one with the same content is left as it is, and other files stay.

    trace trajectory mirror docs/decisions
    """
    with opened(invocation) as repo:
        found = repo.trajectories.exports.mirror(os.path.join(invocation.folder, folder))
    for each in found:
        yield each, f"{safe(_shown(each.path, folder))}: {each.action}"
    if not (found or invocation.quiet or invocation.as_json):
        invocation.note("no trajectory has a decision")


@takes(ID, THINKING)
def timeline(invocation: Invocation, *, trajectory: str, thinking: bool) -> None:
    """Show a vertical timeline of a trajectory: time, type, agent and significance of each event."""
    with opened(invocation) as repo:
        lines = repo.trajectories.exports.timeline(
            trajectory,
            thinking=thinking,
            width=terminal_width(invocation),
            paint=lambda text, style: paint(invocation, safe(text), style),
        )
    invocation.page()
    for line in lines:
        invocation.line(line)


def _check(
    invocation: Invocation, thinking: bool, no_thinking: bool, output: str, *, force: bool
) -> None:
    if thinking and no_thinking:
        raise usage_error("give --thinking or --no-thinking, not both")
    if invocation.as_json and output == "-":
        raise usage_error("--json and `-o -` cannot be combined: both write to standard output")
    if force and output in ("", "-"):
        raise usage_error("--force requires -o FILE")


def _write(
    invocation: Invocation,
    exports: Exports,
    ids: Sequence[str],
    form: str,
    made: Exported,
    output: str,
    *,
    force: bool,
) -> Results:
    """Write an export to a file, and print its path, or write it to standard output."""
    data, path = made.to_bytes(), None
    if output not in ("", "-"):
        try:
            target = os.path.join(invocation.folder, output)
            path = made.save(target, overwrite=force).path
        except errors.AlreadyExistsError as error:
            error.data.setdefault("hint", "--force overwrites it")
            raise
    for loss in made.losses:
        invocation.note(f"lost: {one_line(str(loss), 300)}")
    if path is None and not invocation.as_json:
        write_data(invocation, data)
        return
    shown = "" if path is None else safe(_shown(path, output))
    result = {"trajectories": ids, "format": form, "path": path, "size": len(data), "files": []}
    yield result, f"{shown}: {size(len(data))}"


def _write_folder(
    invocation: Invocation,
    exports: Exports,
    name: str,
    output: str,
    *,
    thinking: bool,
    sessions: bool,
    force: bool,
) -> Results:
    try:
        target = os.path.join(invocation.folder, output)
        made = exports.save_folder(
            target, name, thinking=thinking, sessions=sessions, overwrite=force
        )
    except errors.AlreadyExistsError as error:
        error.data.setdefault("hint", "--force overwrites its files")
        raise
    result = {
        "trajectories": [name],
        "format": FOLDER,
        "path": made.path,
        "size": made.size,
        "files": made.files,
    }
    shown = safe(_shown(made.path, output))
    yield result, f"{shown}: {counted(len(made.files), 'file')}, {size(made.size)}"


def _shown(path: str, output: str) -> str:
    """Return a path as the user named it: absolute or relative."""
    return path if os.path.isabs(output) else os.path.relpath(path)
