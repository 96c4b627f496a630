"""`trace why`, and the subcommands of `trace trajectory` that work with git: links and notes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.porcelain.trajectory import TRAJECTORY
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, date, paint
from trace_cli.runtime import Invocation
from trace_store import Repo, Store, errors
from trace_store.base.ident import known_time
from trace_store.trajectories.events import Event
from trace_store.trajectories.why import LINKED, Basis, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

SHOWN_ID = 12


@takes(
    Argument("COMMIT...", "commits", "Commits of the code (default: HEAD)", ANY),
    TRAJECTORY,
    Option(
        "--agent",
        "agent",
        "Name of the agent (default: TRACE_AGENT, else the author)",
        "NAME",
        default="",
    ),
    JSON,
    QUIET,
)
def link(
    invocation: Invocation,
    *,
    commits: list[str],
    trajectory: str,
    agent: str,
) -> Results:
    """Link commits of the code to a trajectory.

    A link records the names of the commit's files, and its patch id, which survives a rebase. A commit is linked only
    once.

    trace trajectory link HEAD~1 HEAD
    """
    with opened(invocation) as repo:
        linked = repo.trajectories.code.link(
            commits or ["HEAD"], folder=invocation.folder, trajectory=trajectory, agent=agent
        )
        finish(invocation, repo)
    for each in linked:
        subject = one_line(str(each.event.data.get("subject", "")), 100)
        yield _link(each.event), f"{each.event.commit[:SHOWN_ID]} {subject}"
    if not (linked or invocation.quiet or invocation.as_json):
        invocation.note("linked already")


def _link(event: Event) -> dict[str, Any]:
    """Return the JSON of a link from a trajectory to a commit of the code."""
    data = event.data
    return {
        "event": event.id,
        "commit": event.commit,
        "patch_id": data.get("patch_id") or None,
        "subject": data.get("subject", ""),
        "files": data.get("files", []),
        "branch": data.get("branch") or None,
        "made": known_time(data.get("made", 0)),
    }


def write_notes(invocation: Invocation, trajectory: str, *, remove: bool) -> Results:
    """Write a note on each linked commit under refs/notes/trajectories, or remove these notes."""
    with opened(invocation) as repo:
        report = repo.trajectories.code.write_notes(
            trajectory, folder=invocation.folder, remove=remove
        )
    verb = "removed" if remove else "written"
    yield report, f"{counted(len(report.written), 'note')} {verb}"
    if report.missing:
        names = ", ".join(each[:SHOWN_ID] for each in report.missing[:4])
        invocation.note(
            f"note: {counted(len(report.missing), 'commit')} not in this repository: {names}"
        )


@takes(
    Argument("TARGET", "target", "A file, FILE:LINE, FILE:FIRST-LAST, a commit, or a range"),
    Option(
        "-n --max-count", "limit", "Show at most this many", "N", number=True, least=1, default=10
    ),
    JSON,
)
def why(invocation: Invocation, *, target: str, limit: int) -> Results:
    """Show the trajectories and decisions behind a change of the code.

    Links lead to trajectories: see `trace trajectory link` and `trace hooks install git`. A rebased commit
    is found by its change, the lines of a squashed one by the commits that wrote them. What is a guess is marked.

        trace why src/app.py
        trace why src/app.py:42
        trace why src/app.py:1-9
        trace why HEAD
        trace why main..HEAD
    """
    with opened(invocation) as repo:
        reasons = repo.trajectories.why(target, folder=invocation.folder, limit=limit)
    if reasons and not invocation.as_json:
        invocation.page()
    yield reasons, _reason_lines(invocation, reasons)
    if not (reasons or invocation.as_json):
        invocation.note(f"no trajectory leads to {safe(target)}")
        if below := _repository_of(invocation, target, repo):
            folder, inside = safe(below), safe(os.path.relpath(target, below))
            invocation.note(f"hint: {folder} has a repository: `trace -C {folder} why {inside}`")


def _repository_of(invocation: Invocation, target: str, repo: Repo) -> str:
    """Return the folder of another repository below that holds a file, as in a submodule; "" if there is none."""
    folder = os.path.join(invocation.folder, os.path.dirname(target))
    try:
        found = Store.find(folder, invocation.environment, trusting=True)
    except errors.TraceError:
        return ""
    below = os.path.relpath(os.path.dirname(found), invocation.folder)
    is_other = not os.path.samefile(found, repo.store.layout.root)
    return below if is_other and not below.startswith(os.pardir) else ""


def _reason_lines(invocation: Invocation, reasons: Sequence[Reason]) -> Iterator[str]:
    for number, each in enumerate(reasons):
        if number:
            yield ""
        yield from _one_reason_lines(invocation, each)


def _one_reason_lines(invocation: Invocation, reason: Reason) -> Iterator[str]:
    commit, state = reason.commit, reason.trajectory
    how = "" if reason.how == LINKED else f"  ({reason.how})"
    if commit.id:
        name = paint(invocation, commit.id[:SHOWN_ID], "yellow")
        yield f"{name}  {date(commit.made)[:10]}  {one_line(commit.subject, 100)}{how}"
    else:
        yield paint(invocation, "not committed yet", "yellow")
    chapter = f", chapter {one_line(reason.chapter, 60)}" if reason.chapter else ""
    yield f"  {state.id}  {one_line(state.title, 80)} ({state.status}){chapter}"
    guesses = [each for each in reason.decisions if each.is_guess]
    if reason.is_guess and reason.decisions and not guesses:
        said = "no decision of its own; the nearest one:" if commit.id else "decisions that wait:"
        yield f"  {said}"
    for basis in reason.decisions:
        if basis in guesses[:1]:
            yield "  perhaps about an earlier commit, which no hook saw:"
        yield from _decision_lines(invocation, basis)


def _decision_lines(invocation: Invocation, basis: Basis) -> Iterator[str]:
    event = basis.event
    asked = f"{one_line(event.question, 200)} " if event.question else ""
    chosen = paint(invocation, one_line(event.content, 200), "bold")
    yield f"  d{basis.number}  {asked}{chosen}"
    if event.reasoning:
        yield f"      because: {one_line(event.reasoning, 400)}"
    for option in event.alternatives:
        reason = f": {one_line(option.reason, 200)}" if option.reason else ""
        yield f"      not: {one_line(option.option, 100)}{reason}"
    facts = [safe(event.agent), date(event.time)[:16]]
    if event.confidence is not None:
        facts.append(f"confidence {event.confidence:.0%}")
    facts += event.standing
    facts += [short_address(address) for address in basis.messages]
    yield paint(invocation, f"      {'  '.join(facts)}", "dim")
