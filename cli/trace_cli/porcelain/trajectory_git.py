"""`trace why`, and the subcommands of `trace trajectory` that work with git: links, hooks, notes."""

from __future__ import annotations

import sys

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.porcelain.trajectory import TRAJECTORY
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address, write_record
from trace_cli.render.tables import counted, date, paint
from trace_store import errors, trajectories
from trace_store.repo import trajectory_records as records
from trace_store.trajectories.code import LINKED
from trace_store.trajectories.git_hooks import HOOK_SECONDS, POST_REWRITE, REMOVED, UNCHANGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_cli.runtime import Invocation
    from trace_store.trajectories.code import Basis, Reason

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
    as_json: bool,
    quiet: bool,
) -> None:
    """Link commits of the code to a trajectory.

    A link records the names of the commit's files, and its patch id, which survives a rebase. A commit is linked only
    once.

    trace trajectory link HEAD~1 HEAD
    """
    with opened(invocation, quiet=quiet) as repo:
        linked = repo.trajectories.code.link(
            commits or ["HEAD"], folder=invocation.folder, trajectory=trajectory, agent=agent
        )
        finish(invocation, repo)
    for each in linked:
        if as_json:
            write_record(invocation, records.trajectory_link(each.event))
        elif not quiet:
            subject = one_line(str(each.event.data.get("subject", "")), 100)
            invocation.line(f"{each.event.commit[:SHOWN_ID]} {subject}")
    if not linked and not quiet and not as_json:
        invocation.note("linked already")


@takes(
    Argument(
        "WHAT",
        "what",
        "`git` installs or removes the hooks; the hooks use `run`",
        choices=("git", "run"),
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
    as_json: bool,
) -> int:
    """Install git hooks that link each new commit to the current trajectory.

    `hook git` installs `post-commit` and `post-rewrite` where git looks for hooks. After an amend or a rebase, links
    lead to the new commits. A hook that exists already is renamed and still called. --trailer also installs
    `prepare-commit-msg`, which adds `Trajectory: ID` to messages given with -m or -F; without --trailer, that hook is
    removed.

    The hooks run `hook run`, which never makes a commit fail. If there is no current trajectory, or there are several,
    it does nothing.

    trace trajectory hook git
    """
    if what == "run":
        _run_hook(invocation, arguments)
        return 0
    if arguments:
        raise usage_error(f"`hook git` takes no argument, not {arguments[0]!r}")
    folder = invocation.folder
    if uninstall:
        changes = trajectories.uninstall_hooks(folder, dry_run=dry_run)
    else:
        changes = trajectories.install_hooks(
            folder, _own_command(), trailer=trailer, dry_run=dry_run
        )
    for each in changes:
        if as_json:
            write_record(invocation, records.hook_change(each))
            continue
        other = ""
        if each.kept:
            verb = "put back" if each.action == REMOVED else "calls"
            other = f" ({verb} {safe(each.kept)})"
        would = "would be " if dry_run and each.action != UNCHANGED else ""
        invocation.line(f"{safe(each.path)}: {would}{each.action}{other}")
    if not changes and not as_json:
        invocation.note("no Trace hooks installed here")
    return 0


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


def write_notes(
    invocation: Invocation, trajectory: str, *, remove: bool, as_json: bool, quiet: bool = False
) -> None:
    """Write a note on each linked commit under refs/notes/trajectories, or remove these notes."""
    with opened(invocation, quiet=quiet) as repo:
        report = repo.trajectories.code.write_notes(
            trajectory, folder=invocation.folder, remove=remove
        )
    if as_json:
        write_record(invocation, records.notes_report(report))
    elif not quiet:
        verb = "removed" if remove else "written"
        invocation.line(f"{counted(len(report.written), 'note')} {verb}")
    if report.missing and not quiet:
        names = ", ".join(each[:SHOWN_ID] for each in report.missing[:4])
        invocation.note(
            f"note: {counted(len(report.missing), 'commit')} not in this repository: {names}"
        )


@takes(
    Argument("TARGET", "target", "A file, FILE:LINE, or a commit of the code"),
    Option(
        "-n --max-count", "limit", "Show at most this many", "N", number=True, least=1, default=10
    ),
    JSON,
)
def why(invocation: Invocation, *, target: str, limit: int, as_json: bool) -> None:
    """Show the trajectories and decisions behind a change of the code.

    Links lead from commits to trajectories (see `trace trajectory link` and `trace trajectory hook`). A rebased commit
    is found by its change, a squashed one by its files.

        trace why src/app.py
        trace why src/app.py:42
        trace why HEAD
    """
    with opened(invocation) as repo:
        reasons = repo.trajectories.why(target, folder=invocation.folder, limit=limit)
    if as_json:
        for each in reasons:
            write_record(invocation, records.reason(each))
        return
    if not reasons:
        invocation.note(f"no trajectory leads to {safe(target)}")
        return
    invocation.page()
    for number, each in enumerate(reasons):
        if number:
            invocation.line()
        _print_reason(invocation, each)


def _print_reason(invocation: Invocation, reason: Reason) -> None:
    commit, state = reason.commit, reason.trajectory
    how = "" if reason.how == LINKED else f"  ({reason.how})"
    name = paint(invocation, commit.id[:SHOWN_ID], "yellow")
    invocation.line(f"{name}  {date(commit.made)[:10]}  {one_line(commit.subject, 100)}{how}")
    chapter = f", chapter {one_line(reason.chapter, 60)}" if reason.chapter else ""
    invocation.line(f"  {state.id}  {one_line(state.title, 80)} ({state.status}){chapter}")
    if reason.is_guess and reason.decisions:
        invocation.line("  no decision of its own; the nearest one:")
    for basis in reason.decisions:
        _print_decision(invocation, basis)


def _print_decision(invocation: Invocation, basis: Basis) -> None:
    event = basis.event
    asked = f"{one_line(event.question, 200)} " if event.question else ""
    chosen = paint(invocation, one_line(event.content, 200), "bold")
    invocation.line(f"  d{basis.number}  {asked}{chosen}")
    if event.reasoning:
        invocation.line(f"      because: {one_line(event.reasoning, 400)}")
    for option in event.alternatives:
        reason = f": {one_line(option.reason, 200)}" if option.reason else ""
        invocation.line(f"      not: {one_line(option.option, 100)}{reason}")
    facts = [safe(event.agent), date(event.time)[:16]]
    if event.confidence is not None:
        facts.append(f"confidence {event.confidence:.0%}")
    facts += [short_address(address) for address in basis.messages]
    invocation.line(paint(invocation, f"      {'  '.join(facts)}", "dim"))
