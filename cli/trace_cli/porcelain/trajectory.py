"""`trace trajectory`: what agents do and decide during a task."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    NOTHING,
    QUIET,
    SECRETS,
    finish,
    opened,
    tell_unmatched,
)
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, date, fit, table
from trace_cli.subcommands import Group
from trace_store import errors, trajectories
from trace_store.trajectories import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.trajectories.recording import Recorded
    from trace_store.trajectories.state import State
    from trace_store.trajectories.trajectories import Trajectories

HELP = """Record why the code is as it is, while the work happens.

A trajectory holds the events of one task: decisions with their alternatives, findings, chapters. Each event links the
messages that led to it. `trace tr` is short for `trace trajectory`.

Which trajectory: --trajectory; without it TRACE_TRAJECTORY, then the one of your branch, then the only active one.
"""
ID = Argument(
    "ID",
    "trajectory",
    "The trajectory (default: the current one)",
    OPTIONAL,
    default="",
    completes="TRAJECTORY",
)
TRAJECTORY = Option(
    "--trajectory",
    "trajectory",
    "The trajectory (default: the current one): its id, the beginning of it, or the id of its task",
    "ID",
    default="",
    completes="TRAJECTORY",
)
AGENT = Option(
    "--agent",
    "agent",
    "Name of the agent (default: TRACE_AGENT, else the author)",
    "NAME",
    default="",
)
TAG = Option("--tag", "tags", "Tag to find it by; may be repeated", "TAG", many=True)
SYSTEM = Option(
    "--system",
    "system",
    "The task system: beads, github, linear, jira, plain, or one of another package",
    "NAME",
    default="",
)
FETCH = Option("--fetch", "fetch", "Ask the task system, if necessary over the network")
SIGNIFICANCE = Option(
    "--significance",
    "significance",
    "How significant it is",
    "LEVEL",
    default="",
    choices=("low", "medium", "high", "critical"),
)
RECORDING = (TRAJECTORY, AGENT, SECRETS, JSON, QUIET)
"""The options of each command that records an event."""


def record(
    invocation: Invocation,
    write: Callable[[Trajectories, dict[str, Any]], Recorded],
    *,
    secrets: str,
    **fields: Any,
) -> Results:
    """Record an event with `write`, which takes the other options, and yield it."""
    with opened(invocation, secrets=secrets) as repo:
        made = write(repo.trajectories, fields)
        finish(invocation, repo)
    title = one_line(made.state.title, 60)
    said = f"{made.event.id} {safe(made.event.type)} in {made.state.id} ({title})"
    yield made, said if made.changed else NOTHING


def confidence_of(text: str | None) -> float | None:
    """Return the confidence that an argument gives; None if it is empty.

    Raises:
        InvalidInputError: it is not a number from 0 to 1.
    """
    if not text:
        return None
    try:
        given: object = float(text)
    except ValueError:
        given = text
    return trajectories.check_confidence(given)


@takes(
    Argument("TASK", "first", "Id or address of the task, or the title", OPTIONAL),
    Argument("TITLE", "title", "Title (default: the title of the task)", OPTIONAL),
    Option("--task", "task", "Id of the task, in any form", "ID", default=""),
    SYSTEM,
    FETCH,
    Option("--description", "description", "Description of the trajectory", "TEXT", default=""),
    Option("--project", "project", "Project of the trajectory", "NAME", default=""),
    TAG,
    AGENT,
    Option("--role", "role", "Role of the agent, such as lead", "ROLE", default=""),
    SECRETS,
    JSON,
    QUIET,
)
def start(
    invocation: Invocation,
    *,
    first: str | None,
    title: str | None,
    task: str,
    system: str,
    fetch: bool,
    description: str,
    project: str,
    tags: list[str],
    agent: str,
    role: str,
    secrets: str,
) -> Results:
    """Start a trajectory on the current branch. If there is no repository, one is created in this folder.

    trace trajectory start ENG-456 "Sign in with JWT" --tag auth

    A task is an id such as `bd-a3f8`, `#12`, `owner/repo#12` or `ENG-456`, or an address. Without arguments, the id is
    taken from the name of git's branch, such as `feature/ENG-456-sign-in`. The task system is asked only with --fetch.
    """
    if first is not None and not first.strip():
        raise usage_error("the title is empty")
    _create_repository(invocation)
    with opened(invocation, secrets=secrets) as repo:
        words = [each for each in (first, title) if each]
        name, subject = _subject(invocation, repo.trajectories, words, task, system, fetch=fetch)
        others = [] if subject is None else _others(repo.trajectories, subject)
        who = agent or repo.trajectories.variables("TRACE_AGENT").get("TRACE_AGENT", "")
        same = [each for each in others if each.title == name and who in ("", each.agents[0].name)]
        if same:
            invocation.note("note: it is active already; nothing was started")
            yield same[0], f"{same[0].id} {one_line(same[0].title, 60)}"
            return
        made = repo.trajectories.start(
            name,
            task=subject,
            description=description,
            project=project,
            tags=tags,
            agent=agent,
            role=role,
        )
        finish(invocation, repo)
        current = _current(repo.trajectories, made)
    yield made, f"{made.id} {one_line(made.title, 60)}"
    if invocation.quiet:
        return
    for each in others:
        invocation.note(f"note: {each.id} is active for {one_line(each.title, 60)!r}, too")
    if current is None:
        invocation.note(
            "note: several are active here; commands need --trajectory ID or TRACE_TRAJECTORY"
        )
    elif current.id != made.id:
        title = one_line(current.title, 60)
        invocation.note(f"note: events go to {current.id} {title!r}, not to the new one")


def _current(handle: Trajectories, made: State) -> State | None:
    """Return where events without --trajectory go after a start; None if several are active there."""
    try:
        return handle.find("")
    except (errors.StateError, errors.NotFoundError) as error:
        return None if error.code == errors.ErrorCode.SEVERAL_TRAJECTORIES else made


def _create_repository(invocation: Invocation) -> None:
    """Create a repository in this folder if there is none, and say so."""
    try:
        trace_store.Store.find(
            invocation.folder, invocation.environment, explicit=invocation.directory
        )
    except errors.RepositoryNotFoundError:
        if invocation.directory is not None or invocation.environment.trace_dir:
            raise
        with trace_store.Repo.init(
            invocation.folder, environment=invocation.environment
        ) as created:
            directory = created.store.layout.root
        if not invocation.quiet:
            invocation.note(f"created an empty repository in {safe(directory)}")


def _others(handle: Trajectories, task: Task) -> list[State]:
    """Return the active trajectories of a task."""
    found = handle.list(task=task.id, status="active") if task.id else []
    return [each for each in found if each.task is not None and each.task.system == task.system]


def _subject(
    invocation: Invocation,
    handle: Trajectories,
    words: list[str],
    id: str,
    system: str,
    *,
    fetch: bool,
) -> tuple[str, Task | None]:
    """Return the title and the task that the arguments name."""
    task: Task | None = None
    if id:
        task = handle.tasks.named(id, system=system) or Task("", system=system, id=id)
    elif words:
        # Every id has a digit: the systems are not loaded for a plain title.
        if system or any(map(str.isdigit, words[0])):
            task = handle.tasks.named(words[0], system=system)
        if task is None and len(words) > 1:
            raise errors.InvalidInputError(
                f"not the id of a task: {words[0][:80]!r}",
                hint="put the title in quotes; --task ID takes any id",
            )
        words = words if task is None else words[1:]
    else:
        task = handle.tasks.of_branch(system=system)
    title = " ".join(words)
    if task is None:
        if fetch or not title:
            raise errors.InvalidInputError(
                "--fetch needs a task" if fetch else "a trajectory needs a title or a task",
                hint="`trace trajectory start ENG-456`, `#12`, `bd-a3f8`, or a git branch named after it",
            )
        return title, None
    if fetch:
        record = handle.tasks.look_up(task)
        for note in record.notes:
            invocation.note(f"note: {one_line(note, 200)}")
        task = record.as_task()
    return title or task.title or task.id, task


@takes(
    Option("-n", "limit", "List at most this many", "N", number=True, least=1, bare=True),
    Option("--agent", "agent", "Only those in which this agent took part", "NAME", default=""),
    Option("--tag", "tag", "Only those with this tag", "TAG", default=""),
    Option("--task", "task", "Only those of this task", "ID", default=""),
    Option("--project", "project", "Only those of this project", "NAME", default=""),
    Option(
        "--status",
        "status",
        "Only those with this status",
        "STATUS",
        default="",
        choices=("active", "completed", "abandoned"),
    ),
    Option("--since", "since", "Only those started since this time", "TIME", default=""),
    Option(
        "--confidence",
        "confidence",
        "Only those with at least this confidence, 0 to 1",
        "C",
        default="",
    ),
    JSON,
)
def list_(
    invocation: Invocation,
    *,
    limit: int | None,
    since: str,
    confidence: str,
    **wanted: str,
) -> Results:
    """List trajectories, the most recently updated first.

    trace trajectory list --status active
    """
    with opened(invocation) as repo:
        try:
            found = repo.trajectories.list(
                since=since or None,
                limit=limit,
                confidence=confidence_of(confidence),
                **wanted,
            )
        except errors.InvalidInputError as error:
            if error.data.get("argument") == "since":
                error.data.setdefault("hint", "`2026-03-02`, `2 days ago`")
            raise
        known = found if found else repo.trajectories.list()
    yield found, _lines(invocation, found)
    values = {
        "agent": {agent.name for each in known for agent in each.agents},
        "tag": {tag for each in known for tag in each.tags},
        "task": {each.task.id for each in known if each.task is not None},
        "project": {each.project for each in known} - {""},
    }
    for what, words in values.items() if not found else ():
        if wanted[what] and wanted[what] not in words:
            tell_unmatched(invocation, what, wanted[what], sorted(words))


def _lines(invocation: Invocation, found: Sequence[State]) -> Iterator[str]:
    rows = [
        (
            each.id,
            each.status,
            date(each.updated)[:16],
            "" if each.task is None else fit(one_line(each.task.id, 30), 30),
            fit(one_line(each.title, 60), 60),
        )
        for each in found
    ]
    yield from table(invocation, (), rows, LEFT * 5, [("yellow", "", "dim", "", "")] * len(rows))


GROUP = Group(
    HELP,
    {
        "start": start,
        "new": start,
        "status": "trajectory_show:status",
        "chapter": "trajectory_events:chapter",
        "decision": "trajectory_events:decision",
        "finding": "trajectory_events:finding",
        "note": "trajectory_events:note",
        "message": "trajectory_events:message",
        "error": "trajectory_events:error",
        "amend": "trajectory_events:amend",
        "reflect": "trajectory_end:reflect",
        "complete": "trajectory_end:complete",
        "abandon": "trajectory_end:abandon",
        "reopen": "trajectory_end:reopen",
        "task": "trajectory_task:task",
        "sync": "trajectory_task:sync",
        "list": list_,
        "capture": "trajectory_capture:capture",
        "feed": "trajectory_capture:feed",
        "propose": "trajectory_capture:propose",
        "show": "trajectory_show:show",
        "search": "trajectory_search:search",
        "similar": "trajectory_search:similar",
        "score": "trajectory_search:score",
        "compact": "trajectory_search:compact",
        "link": "trajectory_git:link",
        "timeline": "trajectory_export:timeline",
        "export": "trajectory_export:export",
        "mirror": "trajectory_export:mirror",
        "import": "trajectory_import:import_",
        "bundle": "trajectory_export:bundle",
    },
)
