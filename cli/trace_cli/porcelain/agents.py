"""`trace agents`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import JSON, NOTHING, QUIET, SECRETS, finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import LEFT, RIGHT, counted, moment, number, paint, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store.agents.agent import AgentInfo
from trace_store.agents.agents import FULL, NONE, SUMMARISED
from trace_store.base.ident import format_time
from trace_store.contracts.ref_names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """An agent is a session spawned by another session. An AGENT is its name or its branch.
"""
WHICH = Argument("AGENT", "name", "The agent")


@takes(Option("--parent", "parent", "Only those of this session", "SESSION", default=""), JSON)
def listed(invocation: Invocation, *, parent: str) -> Results:
    """List the agents.

    trace agents
    trace agents tree
    """
    with opened(invocation) as repo:
        found = repo.agents.list(parent=parent)
    yield found, _rows(invocation, [(0, each) for each in found])


@takes(JSON)
def tree(invocation: Invocation) -> Results:
    """List the agents as a tree."""
    with opened(invocation) as repo:
        found = repo.agents.tree()
    yield [each for _, each in found], _rows(invocation, found)


def _rows(invocation: Invocation, found: Sequence[tuple[int, AgentInfo]]) -> Iterator[str]:
    """Yield the lines of a table of agents, each with its depth."""
    if not found:
        invocation.note("no agents")
        return
    rows = [_row(each, "  " * depth + each.name) for depth, each in found]
    heads = ("agent", "state", "parent", "messages", "tokens", "last step")
    yield from table(invocation, heads, rows, LEFT * 3 + RIGHT * 2 + LEFT)


def _row(info: AgentInfo, name: str) -> tuple[str, ...]:
    ahead = f" (+{info.ahead})" if info.ahead else ""
    return (
        safe(name),
        f"{info.state}{ahead}",
        safe(info.parent.removeprefix(BRANCHES)) or "-",
        number(info.message_count),
        number(info.token_count),
        one_line(info.last_step, 120),
    )


@takes(
    Argument("NAME", "name", "Its name"),
    Argument("PURPOSE", "purpose", "Its task, as the first prompt"),
    Option(
        "--parent",
        "parent",
        "Its parent (default: HEAD's branch)",
        "SESSION",
        default="",
    ),
    Option(
        "--inherit",
        "inherit",
        f"The parent's messages to start with: {FULL}, {SUMMARISED}, {NONE}, or addresses with commas",
        "WHAT",
        default=SUMMARISED,
    ),
    Option("--call", "call", "The open tool call of the parent that it answers", "ID", default=""),
    Option("--store", "store", "Create it in a repository of its own in DIR", "DIR", default=""),
    Option(
        "--budget",
        "budget",
        "Maximum tokens of a request and its reply",
        "N",
        number=True,
        least=1,
    ),
    SECRETS,
    JSON,
    QUIET,
)
def spawn(
    invocation: Invocation,
    *,
    name: str,
    purpose: str,
    parent: str,
    inherit: str,
    call: str,
    store: str,
    budget: int | None,
    secrets: str,
) -> Results:
    """Create an agent: a session linked to its parent's commit.

    trace agents spawn scout "Find the bug." --parent sessions/pm/lead
    """
    given = inherit if inherit in (FULL, SUMMARISED, NONE) else inherit.split(",")
    with opened(invocation, secrets=secrets) as repo:
        place = os.path.join(invocation.folder, store) if store else ""
        agent = repo.agents.spawn(
            name, purpose, parent=parent, inherit=given, call=call, store=place, budget=budget
        )
        agent.release()
        finish(invocation, repo)
        yield repo.agents.get(name), f"started {safe(agent.name)}"


@takes(
    WHICH,
    Option(
        "--to",
        "to",
        "The session that gets the message (default: the parent)",
        "SESSION",
        default="",
    ),
    Option("--text", "text", "The conclusion (default: its last answer)", "TEXT", default=""),
    Option("--ask", "ask", "Let the model of `trace config model` write the conclusion"),
    SECRETS,
    JSON,
    QUIET,
)
def collapse(
    invocation: Invocation, *, name: str, to: str, text: str, ask: bool, secrets: str
) -> Results:
    """Add an agent's conclusion to its parent as one message.

    It answers the call that spawned the agent, if that is open. A second collapse covers only newer messages.
    """
    with opened(invocation, secrets=secrets) as repo:
        model = asked_model(invocation, repo) if ask else None
        done = repo.agents.collapse(name, to=to, text=text, model=model)
        finish(invocation, repo)
        if done.address is None:
            yield done, f"{NOTHING}: {safe(name)} added nothing since"
        else:
            what = f" as the result of {one_line(done.call, 60)}" if done.call else ""
            yield done, f"{short_address(done.address)} has the conclusion of {safe(name)}{what}"


@takes(
    Argument("ADDRESS", "address", "The conclusion of an agent", completes="ADDRESS"),
    Option("--parent", "parent", "Its session (default: HEAD's branch)", "SESSION", default=""),
    JSON,
    QUIET,
)
def expand(invocation: Invocation, *, address: str, parent: str) -> Results:
    """Add the messages of a collapsed agent after its conclusion; `trace undo` undoes it."""
    with opened(invocation) as repo:
        done = repo.agents.expand(address, ref=parent)
        finish(invocation, repo)
        yield done, f"{done.oid.short()} expanded" if done.changed else NOTHING


@takes(Argument("AGENT", "names", "Only these", ANY), JSON)
def timeline(invocation: Invocation, *, names: list[str]) -> Results:
    """List the commits of agents and their parents by time."""
    with opened(invocation) as repo:
        for each in repo.agents.timeline(*names):
            when = moment(format_time(each.time))
            commit = paint(invocation, each.commit.short(), "yellow")
            yield each, f"{when}  {commit}  {safe(each.agent)}: {one_line(each.summary, 200)}"


@takes(WHICH, JSON)
def show(invocation: Invocation, *, name: str) -> Results:
    """Show the details of an agent."""
    with opened(invocation) as repo:
        found = repo.agents.get(name)
        lines = (
            ("agent", found.name),
            ("state", found.state),
            ("parent", found.parent.removeprefix(BRANCHES)),
            ("call", found.call),
            ("purpose", found.purpose),
            (
                "context",
                f"{counted(found.message_count, 'message')}, {number(found.token_count)} tokens",
            ),
            ("store", found.store),
            ("last step", found.last_step),
            ("ahead", counted(found.ahead, "message") if found.ahead else ""),
        )
        yield found, (f"{key + ':':<11}{one_line(text, 300)}" for key, text in lines if text)


GROUP = Group(
    HELP,
    {
        "tree": tree,
        "show": show,
        "spawn": spawn,
        "collapse": collapse,
        "expand": expand,
        "timeline": timeline,
    },
    bare=listed,
)
