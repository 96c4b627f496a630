"""`trace why`, and the subcommands of `trace trajectory` that work with git: links, hooks, notes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.porcelain.trajectory import TRAJECTORY
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, date, paint
from trace_cli.runtime import Invocation
from trace_store import Repo, Store, errors, trajectories
from trace_store.base.ident import known_time
from trace_store.trajectories.events import Event
from trace_store.trajectories.git_hooks import HOOK_SECONDS, POST_REWRITE, REMOVED, UNCHANGED
from trace_store.trajectories.why import LINKED, Basis, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

MAXIMUM_HOOK_INPUT_BYTES = 1 << 23
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


@takes(
    Argument(
        "WHAT",
        "what",
        "`git` installs or removes the hooks; `status` tells whether they work; the hooks use `run`",
        choices=("git", "status", "run"),
    ),
    Argument("ARGUMENT...", "arguments", "With run: the hook, and its arguments from git", ANY),
    Option(
        "--uninstall", "uninstall", "Remove the hooks, and restore the hooks that they replaced"
    ),
    Option("--trailer", "trailer", "Add the id of the trajectory to the message of new commits"),
    Option("--dry-run -n", "dry_run", "Only show what would be done"),
    JSON,
)
def hook(
    invocation: Invocation,
    *,
    what: str,
    arguments: list[str],
    uninstall: bool,
    trailer: bool,
    dry_run: bool,
) -> Results:
    """Install git hooks that note each new commit, so that it is linked to the current trajectory.

    `hook git` installs `post-commit` and `post-rewrite` where git looks for hooks. After an amend or a rebase, links
    lead to the new commits. A hook that exists already is renamed and still called. --trailer also installs
    `prepare-commit-msg`, which adds `Trajectory: ID` to messages given with -m or -F; without --trailer, that hook is
    removed.

    The hooks never make a commit fail. They append a line to a local file; the next command links the commits. A
    commit that could belong to several trajectories is shown by `trace trajectory status`.

        trace trajectory hook git
        trace trajectory hook status
    """
    if what == "run":
        _run_hook(invocation, arguments)
        return
    if arguments:
        raise usage_error(f"`hook {what}` takes no argument, not {arguments[0]!r}")
    folder = invocation.folder
    if what == "status":
        for state in trajectories.hooks_status(folder):
            moved = f" to {safe(state.moved)}" if state.moved else ""
            yield state, f"{safe(state.path)}: {state.state}{moved}"
        return
    if uninstall:
        changes = trajectories.uninstall_hooks(folder, dry_run=dry_run)
    else:
        changes = trajectories.install_hooks(
            folder, _own_command(), trailer=trailer, dry_run=dry_run
        )
    for each in changes:
        other = ""
        if each.kept:
            verb = "put back" if each.action == REMOVED else "calls"
            other = f" ({verb} {safe(each.kept)})"
        would = "would be " if dry_run and each.action != UNCHANGED else ""
        yield each, f"{safe(each.path)}: {would}{each.action}{other}"
    if not changes and not invocation.as_json:
        invocation.note("no Trace hooks installed here")
    if shared := next((each.shared for each in changes if each.shared), ""):
        whose = "of this user" if shared == "global" else "on this machine"
        invocation.note(
            f"note: all repositories {whose} share these hooks ({shared} core.hooksPath);"
            " where there is no .trace, they do nothing"
        )


def _run_hook(invocation: Invocation, arguments: list[str]) -> None:
    """Run a hook. No error may make the commit fail."""
    if not arguments:
        return
    name, *rest = arguments
    with _TimeLimit(HOOK_SECONDS), opened(invocation, quiet=True, hurried=True) as repo:
        given = b""
        if name == POST_REWRITE:
            given = invocation.stdin.read(MAXIMUM_HOOK_INPUT_BYTES)
        text = given.decode("ascii", "replace")
        trajectories.run_hook(repo.trajectories, name, rest, invocation.folder, text)


class _TimeLimit:
    """Stops a `with` block after some seconds, such as during a wait for a lock; suppresses Trace's errors."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        import signal  # other subcommands do without

        if hasattr(signal, "setitimer"):
            handler = signal.signal(signal.SIGALRM, self._stop)
            rest, _ = signal.setitimer(signal.ITIMER_REAL, self._seconds)
            self._restore = [
                lambda: signal.setitimer(signal.ITIMER_REAL, 0),
                lambda: signal.signal(signal.SIGALRM, handler),
                lambda: signal.setitimer(signal.ITIMER_REAL, rest),
            ]

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        for each in self._restore:
            each()
        return isinstance(error, errors.TraceError)

    @staticmethod
    def _stop(*_: object) -> None:
        raise errors.LockedError("it took too long")


def _own_command() -> list[str]:
    """Return the command line that runs this program from any folder."""
    import shutil

    script = shutil.which(sys.argv[0]) if sys.argv[0].endswith(("trace", "trace-store")) else None
    script = script or shutil.which("trace-store")
    return [script] if script else [sys.executable, "-m", "trace_cli"]


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

    Links lead from commits to trajectories (see `trace trajectory link` and `trace trajectory hook`). A rebased commit
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
    facts += [short_address(address) for address in basis.messages]
    yield paint(invocation, f"      {'  '.join(facts)}", "dim")
