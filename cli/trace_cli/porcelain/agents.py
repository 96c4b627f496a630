"""`trace agents`: sessions that another one sent out."""

from __future__ import annotations

import os

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

HELP = """An agent is a session that another one sent out. An AGENT is its name or its branch.
"""
WHICH = Argument("AGENT", "name", "The agent")
_COLUMNS = LEFT * 3 + RIGHT * 2 + LEFT


@takes(Option("--parent", "parent", "Only those of this session", "SESSION", default=""), JSON)
def listed(invocation: Invocation, *, parent: str) -> Results:
    """List the agents.

    trace agents
    trace agents tree
    """
    with opened(invocation) as repo:
        found = repo.agents.list(parent=parent)
    yield (
        found,
        table(
            invocation,
            ("agent", "state", "parent", "messages", "tokens", "last step"),
            [_row(each, each.name) for each in found],
            _COLUMNS,
        )
        if found
        else [],
    )
    if not (found or invocation.as_json):
        invocation.note("no agents")


@takes(JSON)
def tree(invocation: Invocation) -> Results:
    """List the agents, each below the one that sent it out."""
    with opened(invocation) as repo:
        found = repo.agents.tree()
    rows = [_row(each, "  " * depth + each.name) for depth, each in found]
    heads = ("agent", "state", "parent", "messages", "tokens", "last step")
    yield [each for _, each in found], table(invocation, heads, rows, _COLUMNS) if found else []
    if not (found or invocation.as_json):
        invocation.note("no agents")


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
    Argument("NAME", "name", "What to call it"),
    Argument("PURPOSE", "purpose", "What it is to do"),
    Option(
        "--parent",
        "parent",
        "The session that sends it out (default: HEAD's)",
        "SESSION",
        default="",
    ),
    Option(
        "--inherit",
        "inherit",
        f"What it knows: {FULL}, {SUMMARISED}, {NONE}, or addresses with commas",
        "WHAT",
        default=SUMMARISED,
    ),
    Option("--call", "call", "The call of the parent that sends it out", "ID", default=""),
    Option("--store", "store", "Put it into a repository of its own in DIR", "DIR", default=""),
    Option(
        "--budget",
        "budget",
        "The most tokens of a request and its reply",
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
    """Send out an agent: a session that links its parent's commit.

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
    Option("--text", "text", "The conclusion (default: what it said last)", "TEXT", default=""),
    Option("--ask", "ask", "Let the model of `trace config model` write the conclusion"),
    SECRETS,
    JSON,
    QUIET,
)
def collapse(
    invocation: Invocation, *, name: str, to: str, text: str, ask: bool, secrets: str
) -> Results:
    """Take back what an agent concluded, as one message of its parent.

    It answers the call that sent the agent out, if that is still open. Done again, it is about what is new.
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
    Argument(
        "ADDRESS", "address", "The message that an agent was collapsed to", completes="ADDRESS"
    ),
    Option(
        "--parent", "parent", "The session that holds it (default: HEAD's)", "SESSION", default=""
    ),
    JSON,
    QUIET,
)
def expand(invocation: Invocation, *, address: str, parent: str) -> Results:
    """Show the messages of a collapsed agent in place, for good; `trace undo` takes them out again."""
    with opened(invocation) as repo:
        done = repo.agents.expand(address, ref=parent)
        finish(invocation, repo)
        yield done, f"{done.oid.short()} expanded" if done.changed else NOTHING


@takes(Argument("AGENT", "names", "Only these", ANY), JSON)
def timeline(invocation: Invocation, *, names: list[str]) -> Results:
    """List what agents and their parents did, in the order of time."""
    with opened(invocation) as repo:
        for each in repo.agents.timeline(*names):
            when = moment(format_time(each.time))
            commit = paint(invocation, each.commit.short(), "yellow")
            yield each, f"{when}  {commit}  {safe(each.agent)}: {one_line(each.summary, 200)}"


@takes(WHICH, JSON)
def show(invocation: Invocation, *, name: str) -> Results:
    """Show one agent: its parent, its purpose, its state."""
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
