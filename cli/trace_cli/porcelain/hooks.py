"""`trace hooks`: hooks of agents and of git, which capture what happens while it happens."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, counted, date, number, paint, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import Repo, capture, errors, trajectories
from trace_store.capture.agents import PROJECT, USER
from trace_store.capture.codex_trust import CONFIG
from trace_store.capture.settings_change import REFUSED, SettingsChange
from trace_store.capture.settings_file import HOOKS, SERVER, TRUST
from trace_store.capture.spool import AGENTS, BRIEFED, CODEX
from trace_store.capture.status import MISSING, CaptureStatus
from trace_store.capture.worker import CaptureRun
from trace_store.trajectories.git_hooks import (
    HOOK_SECONDS,
    POST_REWRITE,
    REMOVED,
    UNCHANGED,
    HookChange,
    HookStatus,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

GIT = "git"
_REMOVED = {HOOKS: "hooks", SERVER: "server", TRUST: "trust in the hooks"}
"""The name of each kind of entry, as `uninstall` prints it."""
MAXIMUM_HOOK_INPUT_BYTES = 1 << 23
SHOWN_SESSIONS = 5
_NAMES = Argument(
    "NAME...",
    "names",
    f"{', '.join(AGENTS)}; or git, for commits of the code",
    ANY,
    completes="HOOKED",
)
_DRY_RUN = Option("--dry-run -n", "dry_run", "Only show what would be done")
_PROJECT = Option("--project", "project", "Use the settings of this project, which others share")
_USER = Option("--user", "user", "Use your own settings, for all projects (default)")


def hooked(incomplete: str) -> list[str]:
    """Complete the name of an agent, or git."""
    return [name for name in (*AGENTS, GIT) if name.startswith(incomplete)]


@takes(
    _NAMES,
    _USER,
    _PROJECT,
    Option("--personal", "personal", "Capture sessions outside of repositories in one of your own"),
    Option("--brief", "brief", "Brief Claude Code and Codex when a session begins"),
    Option("--trust", "trust", "Also trust the hooks in Codex, instead of by its /hooks"),
    Option("--trailer", "trailer", "With git: add the id of the trajectory to commit messages"),
    _DRY_RUN,
    JSON,
    QUIET,
)
def install(
    invocation: Invocation,
    *,
    names: list[str],
    user: bool,
    project: bool,
    personal: bool,
    brief: bool,
    trust: bool,
    trailer: bool,
    dry_run: bool,
) -> Results:
    """Install hooks, so that sessions are imported while they run.

    Without a name, the hooks of all agents on this machine are installed, in your own settings. They do nothing where
    no folder above has a `.trace`. What changed is printed; other entries, comments and order stay. A file that is not
    valid is left as it is.

    With --brief, the hooks of Claude Code and Codex print `trace brief` when a session begins, in repositories for
    which you said `trace brief --allow`. A later installation keeps --brief and --personal; `uninstall` drops them.

    Codex runs only hooks that you have trusted. --trust writes into its `config.toml` that you trust ours, so Codex
    does not ask you. `uninstall` takes it out.

    `git` installs `post-commit` and `post-rewrite`, which link commits of the code to the current trajectory, also
    after an amend or a rebase. A hook that exists already is renamed and still called. --trailer also installs
    `prepare-commit-msg`, which adds `Trajectory: ID` to messages given with -m or -F.

        trace hooks install
        trace hooks install claude-code codex
        trace hooks install codex --trust
        trace hooks install git
    """
    agents, with_git = _split(names, user=user, project=project)
    if trailer and not with_git:
        raise usage_error("--trailer goes with git")
    if brief and names and not {*agents} <= {*BRIEFED}:
        raise usage_error(f"--brief goes with {' and '.join(BRIEFED)} only")
    environment, command = invocation.environment, own_command(invocation, shared=project)
    if not names:
        agents = capture.present_agents(environment)
        if not agents:
            raise errors.NotFoundError(
                "no agent found on this machine", hint=f"name one: {', '.join(AGENTS)}"
            )
    if trust and CODEX not in agents:
        raise usage_error("--trust goes with codex")
    if personal and not dry_run:
        _create_personal(invocation)
    done = capture.install_hooks(
        environment,
        agents,
        command,
        folder=invocation.folder,
        scope=PROJECT if project else USER,
        personal=personal,
        brief=brief,
        trust=trust,
        dry_run=dry_run,
    )
    for each in done:
        yield each, change_lines(invocation, each, dry_run=dry_run)
    if with_git:
        changes = trajectories.install_hooks(
            invocation.folder, command, trailer=trailer, dry_run=dry_run
        )
        for hook in changes:
            yield hook, _git_line(hook, dry_run=dry_run)
        _tell_shared(invocation, changes)
    if not (dry_run or invocation.quiet or invocation.as_json):
        _tell_problems(invocation, agents)
        if agents:
            _tell_repository(invocation, brief=brief, personal=personal)
    raise_refused(
        *(invocation, done),
        lambda each: (
            ""
            if each.path.endswith(CONFIG)
            else capture.manual_entries(each.agent, command, personal=personal, brief=brief)
        ),
    )


@takes(_NAMES, _USER, _PROJECT, _DRY_RUN, JSON, QUIET)
def uninstall(
    invocation: Invocation, *, names: list[str], user: bool, project: bool, dry_run: bool
) -> Results:
    """Remove hooks.

    If nothing else changed since, a file gets back the bytes that it had; otherwise only our entries go. `git` restores
    the hooks that ours replaced. Without a name, the hooks of all agents are removed. What was captured stays.

        trace hooks uninstall
        trace hooks uninstall git
    """
    agents, with_git = _split(names, user=user, project=project)
    done: list[SettingsChange] = []
    changes: list[HookChange] = []
    if agents or not with_git:
        done = capture.uninstall_hooks(
            invocation.environment,
            agents,
            folder=invocation.folder,
            scope=PROJECT if project else USER,
            dry_run=dry_run,
        )
    for each in done:
        yield each, change_lines(invocation, each, dry_run=dry_run)
    if with_git:
        changes = trajectories.uninstall_hooks(invocation.folder, dry_run=dry_run)
        for hook in changes:
            yield hook, _git_line(hook, dry_run=dry_run)
        _tell_shared(invocation, changes)
    if not (done or changes or invocation.as_json or invocation.quiet):
        invocation.note("nothing to do: no Trace hooks installed here")
    raise_refused(invocation, done)


@takes(JSON)
def status(invocation: Invocation) -> Results:
    """Show which hooks are installed, whether they work, and what was captured.

    It finds hooks that an agent does not trust or has turned off, a program that was moved, failures of imports, and
    sessions that were not captured. `trace doctor` reports the same problems.
    """
    environment, folder = invocation.environment, invocation.folder
    try:
        with opened(invocation, quiet=True) as repo:
            found = capture.capture_status(environment, repo.store, folder=folder)
    except errors.TraceError as error:
        found = capture.capture_status(environment, folder=folder)
        if not isinstance(error, errors.RepositoryNotFoundError):
            invocation.note(f"note: {one_line(error.message, 300)}")
    try:
        git = trajectories.hooks_status(folder)
    except errors.StateError:
        git = []
    yield lambda: trace_store.record(found, git=git), _status_lines(invocation, found, git)


@takes(
    Option("--wait", "waits", "Stay until no session has grown for some seconds"),
    Option("--forget", "forget", "Give up a session that fails", "SESSION", default=""),
    JSON,
    QUIET,
)
def run(invocation: Invocation, *, waits: bool, forget: str) -> Results:
    """Import what the hooks of agents noted.

    Hooks start this by themselves. It is useful after a failure, which `trace hooks status` shows. A session that was
    given up is imported again once its agent continues it.
    """
    with opened(invocation, quiet=True) as repo:
        done = capture.catch_up(repo.writer, waits=waits, forget=forget)
        repo.seal()
    yield done, _captured_lines(done)


def run_git_hook(invocation: Invocation, words: list[str]) -> int:
    """Run a hook of git: `trace hook git NAME ARGUMENT...`. No error may make the commit fail."""
    if not words:
        return 0
    name, *rest = words
    with _TimeLimit(HOOK_SECONDS), opened(invocation, quiet=True, hurried=True) as repo:
        given = b""
        if name == POST_REWRITE:
            given = invocation.stdin.read(MAXIMUM_HOOK_INPUT_BYTES)
        text = given.decode("ascii", "replace")
        trajectories.run_hook(repo.trajectories, name, rest, invocation.folder, text)
    return 0


class _TimeLimit:
    """Stops a `with` block after some seconds, such as during a wait for a lock; suppresses Trace's errors."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> None:
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


def _split(names: Sequence[str], *, user: bool, project: bool) -> tuple[list[str], bool]:
    """Return the agents among some names, and whether git is one of them."""
    if user and project:
        raise usage_error("--user and --project exclude each other")
    if project and GIT in names:
        raise usage_error("git has hooks of its own: leave out --project")
    return [name for name in names if name != GIT], GIT in names


def own_command(invocation: Invocation, *, shared: bool = False) -> list[str]:
    """Return the command line that runs this program from any folder.

    Args:
        invocation: where to warn that agents cannot find the program.
        shared: whether it is for the settings of a project: then it has no path of this machine, if it can.
    """
    import shutil  # only the installation needs it

    script = shutil.which(sys.argv[0]) if sys.argv[0].endswith(("trace", "trace-store")) else None
    script = script or shutil.which("trace-store")
    if not script:
        return [sys.executable, "-m", "trace_cli"]
    if not shared:
        return [os.path.abspath(script)]
    name = os.path.basename(script)
    if not shutil.which(name):
        invocation.note(
            f"warning: the settings name `{name}`, which is not on PATH: agents that start without this environment "
            "cannot run it"
        )
    return [name]


def _create_personal(invocation: Invocation) -> None:
    """Create the repository of the user, unless it exists."""
    folder = capture.personal_folder(invocation.environment)
    try:
        with Repo.init(folder, environment=invocation.environment) as made:
            where = safe(made.store.layout.root)
        invocation.note(f"note: created an empty repository in {where}")
    except errors.AlreadyExistsError:
        return


def change_lines(invocation: Invocation, change: SettingsChange, *, dry_run: bool) -> Iterator[str]:
    """Yield the change of a settings file, with the difference."""
    would = "would be " if dry_run and change.action not in (UNCHANGED, REFUSED) else ""
    where = f" (a link to {safe(change.link)})" if change.link else ""
    what = f"{_REMOVED[change.kind]} " if change.action == REMOVED else ""
    whole = ", and the file, which held nothing else" if change.deleted else ""
    yield f"{change.agent}: {safe(change.path)}: {what}{would}{change.action}{whole}{where}"
    colors = {"+": "green", "-": "red", "@": "dim"}
    for line in change.difference.splitlines():
        color = colors.get(line[:1], "")
        yield paint(invocation, safe(line), color) if color else safe(line)


def _git_line(change: HookChange, *, dry_run: bool) -> str:
    other = ""
    if change.kept:
        verb = "put back" if change.action == REMOVED else "calls"
        other = f" ({verb} {safe(change.kept)})"
    would = "would be " if dry_run and change.action != UNCHANGED else ""
    return f"{safe(change.path)}: {would}{change.action}{other}"


def _tell_shared(invocation: Invocation, changes: Sequence[HookChange]) -> None:
    if shared := next((each.shared for each in changes if each.shared), ""):
        whose = "of this user" if shared == "global" else "on this machine"
        invocation.note(
            f"note: all repositories {whose} share these hooks ({shared} core.hooksPath);"
            " where there is no .trace, they do nothing"
        )


def _tell_problems(invocation: Invocation, agents: Sequence[str]) -> None:
    """Say what keeps the hooks of some agents from working."""
    found = capture.capture_status(invocation.environment, folder=invocation.folder)
    paths = {each.path for each in found.hooks if each.agent in agents}
    for each in found.problems:
        if each.what in paths or each.code in ("hooks-disabled", "hooks-folder"):
            invocation.note(f"note: {one_line(each.detail, 300)}")
            invocation.note(f"hint: {one_line(each.advice, 300)}")


def _tell_repository(invocation: Invocation, *, brief: bool, personal: bool) -> None:
    """Note a missing repository, or a missing permission to brief agents."""
    try:
        with opened(invocation, quiet=True) as repo:
            permission = trace_store.briefing.BriefPermission(repo.store, invocation.environment)
            if brief and not permission.is_granted:
                invocation.note("note: agents get no brief here before `trace brief --allow`")
    except errors.RepositoryNotFoundError:
        if not personal:
            invocation.note(
                "note: no .trace here or above: sessions here are captured after `trace init`"
            )


def raise_refused(
    invocation: Invocation,
    done: Sequence[SettingsChange],
    by_hand: Callable[[SettingsChange], str] = lambda _: "",
) -> None:
    """Raise the first error of files that were refused.

    Args:
        invocation: where notes are shown.
        done: the change of each file.
        by_hand: returns what a person can add to a refused file instead, which is shown first; "" is nothing.
    """
    refused = [each for each in done if each.error is not None]
    for each in refused:
        text = by_hand(each)
        if text and not (invocation.quiet or invocation.as_json):
            invocation.note(f"to add it by hand, put this into {safe(each.path)}:")
            invocation.note(text)
    if refused and refused[0].error is not None:
        raise refused[0].error


def _status_lines(
    invocation: Invocation, found: CaptureStatus, git: Sequence[HookStatus]
) -> Iterator[str]:
    shown = [each for each in found.hooks if each.scope == USER or each.state != MISSING]
    rows = [
        [each.agent, each.scope, each.state, safe(each.path) + _linked(each.link)]
        for each in shown
        if each.path
    ]
    rows += [[GIT, "", each.state, safe(each.path)] for each in git if each.state != MISSING]
    yield from table(invocation, ["AGENT", "SETTINGS", "HOOKS", "FILE"], rows, LEFT * 4)
    for problem in found.problems:
        code = paint(invocation, problem.code, "yellow")
        yield f"{code} {one_line(problem.what)}: {one_line(problem.detail, 300)}"
        yield f"    {one_line(problem.advice, 300)}"
    for event in found.events:
        counts = counted(event.count, "event")
        yield f"{event.agent}: {counts}, the last {date(event.time)[:16]} ({one_line(event.event, 40)})"
    for session in found.sessions[:SHOWN_SESSIONS]:
        if session.ref:
            yield f"    {safe(session.ref.removeprefix('refs/heads/'))}"
    if found.waiting:
        yield f"{counted(found.waiting, 'event')} waiting{' for the worker' if found.is_busy else ''}"
    for missed in found.missed:
        where = f", the last in {safe(missed.folders[-1])}" if missed.folders else ""
        yield f"{counted(missed.count, 'session')} not captured: {missed.reason}{where}"


def _linked(link: str) -> str:
    return f" -> {safe(link)}" if link else ""


def _captured_lines(done: CaptureRun) -> Iterator[str]:
    if done.is_busy:
        yield "another worker is importing"
        return
    for each in done.sessions:
        yield safe(each.ref.removeprefix("refs/heads/")) or one_line(each.transcript, 200)
    for failure in done.failures:
        yield f"failed: {one_line(failure, 300)}"
    made = f"{counted(done.commits, 'commit')}, {counted(done.messages, 'message')}"
    yield f"{number(done.events)} events: {made}"


HELP = """Hooks of agents tell Trace when a session grew, and a worker imports it while the agent works.

The hooks only note the session in .trace/local; they never delay or stop an agent, and print nothing but
a brief that you asked for.
"""
GROUP = Group(HELP, {"install": install, "status": status, "uninstall": uninstall, "run": run})
