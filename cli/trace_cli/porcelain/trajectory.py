"""`trace trajectory`: what agents do and decide during a task."""

from __future__ import annotations

from trace_cli.arguments import Argument, Option, takes
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, date, fit, table
from trace_cli.subcommands import Group
from trace_store.repo import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

HELP = """Record why the code is as it is, while it happens.

A trajectory belongs to a task. Agents record decisions with their alternatives, findings and chapters in it; each is
linked to the messages that led to it. Several agents and several trajectories may be active at once: the one that is
meant is that of --trajectory, else of TRACE_TRAJECTORY, else the active one of HEAD's branch, else the only active one.
"""
AGENT = Option("--agent", "agent", "Who does it, instead of TRACE_AGENT", "NAME", default="")
TAG = Option("--tag", "tags", "A word to find it by; may be repeated", "TAG", many=True)


@takes(
    Argument("TITLE", "title", "What it is about"),
    Option("--description", "description", "More about it", "TEXT", default=""),
    Option("--project", "project", "The project it belongs to", "NAME", default=""),
    TAG,
    AGENT,
    Option("--role", "role", "What the agent does, such as lead", "ROLE", default=""),
    JSON,
    QUIET,
)
def start(
    invocation: Invocation,
    *,
    title: str,
    description: str,
    project: str,
    tags: list[str],
    agent: str,
    role: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Start a trajectory on the current branch.

    trace trajectory start "Sign in with JWT" --tag auth
    """
    with opened(invocation, quiet=quiet) as repo:
        made = repo.trajectories.start(
            title, description=description, project=project, tags=tags, agent=agent, role=role
        )
        finish(invocation, repo.store)
    if as_json:
        write_record(invocation, records.trajectory_state(made))
    elif not quiet:
        invocation.line(f"{made.id} {safe(made.title)}")


@takes(JSON)
def list_(invocation: Invocation, *, as_json: bool) -> None:
    """List trajectories, the one with the newest event first."""
    with opened(invocation) as repo:
        found = repo.trajectories.list()
    if as_json:
        for each in found:
            write_record(invocation, records.trajectory_state(each))
        return
    rows = [
        (each.id, each.status, date(each.updated)[:16], fit(one_line(each.title, 60), 60))
        for each in found
    ]
    for line in table(invocation, (), rows, LEFT * 4):
        invocation.line(line)


GROUP = Group(
    HELP,
    {
        "start": start,
        "list": list_,
        "link": "trajectory_git:link",
        "hook": "trajectory_git:hook",
        "export": "trajectory_git:export",
    },
)
