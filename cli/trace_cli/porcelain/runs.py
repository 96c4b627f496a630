"""`trace runs`: what agents do, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from trace_cli.arguments import Argument, Option, takes
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, RIGHT, moment, number, paint, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store.base.ident import format_time
from trace_store.contracts.ref_names import BRANCHES
from trace_store.runs.reading import RunInfo, RunRecord
from trace_store.runs.steps import StepRecord
from trace_store.runs.watch import RunEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """A RUN is its id, or the beginning of it.
"""
STEPS = 100
"""How many steps are shown if no number is given."""
WHICH = Argument("RUN", "name", "The id of a run, or the beginning of it")
_STYLES = {"running": "green", "failed": "red", "interrupted": "yellow"}
_LEFT_OUT = "…"


@takes(
    Option(
        "--status",
        "status",
        "Only those in this state, such as running",
        "STATUS",
        default="",
    ),
    Option(
        "--session", "session", "Only runs of this branch", "BRANCH", default="", completes="BRANCH"
    ),
    Option("--agent", "agent", "Only runs of this agent", "AGENT", default=""),
    Option(
        "--message",
        "message",
        "Only runs that this message started",
        "ADDRESS",
        default="",
        completes="ADDRESS",
    ),
    Option("-n --limit", "limit", "Stop after this many", "N", number=True, least=1),
    JSON,
)
def listed(
    invocation: Invocation,
    *,
    status: str,
    session: str,
    agent: str,
    message: str,
    limit: int | None,
) -> Results:
    """List runs: those that run first, then the latest.

    A run is interrupted if its process is gone, or silent for a minute. In a clone, the last column says when it was
    last seen.

        trace runs
        trace runs --status running --json
    """
    with opened(invocation) as repo:
        found = repo.runs.list(
            status=status, session=session, agent=agent, message=message, limit=limit
        )
        now = repo.store.clock.now()
    rows = [
        (
            one_line(each.id, 24),
            paint(invocation, each.status, _STYLES.get(each.status, "")),
            one_line(each.state.agent, 20),
            number(each.state.step_count),
            _when(each, now),
            one_line(each.state.name, 60),
            one_line(_last_step(each), 60),
        )
        for each in found
    ]
    heads = ("run", "status", "agent", "steps", "time", "name", "last step")
    yield found, table(invocation, heads, rows, LEFT * 3 + RIGHT + LEFT * 3) if rows else []
    if not (found or invocation.as_json):
        invocation.note("no runs")


@takes(
    WHICH,
    Option(
        "-n --limit", "limit", "Show the last N steps", "N", number=True, least=1, default=STEPS
    ),
    Option("--from", "start", "Show steps from this number on", "STEP", number=True, least=1),
    Option("--all", "everything", "Show all steps"),
    JSON,
)
def show(
    invocation: Invocation, *, name: str, limit: int, start: int | None, everything: bool
) -> Results:
    """Show the last steps of a run.

    Without -n these are the last 100.

        trace runs show nightly
        trace runs show nightly --from 1 -n 20
    """
    with opened(invocation) as repo:
        found = repo.runs.read(name, start=start, limit=None if everything else limit)
        yield found, _lines(invocation, found, repo.store.clock.now())


@takes(
    WHICH,
    Option("--timeout", "timeout", "Stop after this long without an event", "SECONDS", number=True),
    JSON,
)
def watch(invocation: Invocation, *, name: str, timeout: int | None) -> Results:
    """Print what a run did and does, until it ends; with --json, one object a line."""
    with opened(invocation) as repo:
        is_in_line = False
        for event in repo.runs.watch(name, timeout=timeout):
            if invocation.as_json:
                yield event, []
            elif event.kind == "progress":
                text = safe((_LEFT_OUT if event.is_whole and event.at else "") + event.text)
                invocation.write(text.encode("utf-8", "replace"))
                is_in_line = not text.endswith("\n")
            else:
                if is_in_line:
                    invocation.line()
                    is_in_line = False
                for line in _event_lines(invocation, event):
                    invocation.line(line)
            invocation.flush()


def _event_lines(invocation: Invocation, event: RunEvent) -> Iterator[str]:
    """Yield what happened, a line each."""
    if event.value is not None:
        yield from _step_lines(invocation, event.value)
    elif event.source is not None:
        yield f"    {_source(event.source.title, event.source.url)}"
    elif event.substep is not None:
        state = "…" if not event.substep.completed else ": failed" if event.substep.error else ""
        yield f"    - {one_line(event.substep.title, 100)}{state}"
    elif event.status:
        yield f"run {paint(invocation, event.status, _STYLES.get(event.status, ''))}"


def _lines(invocation: Invocation, found: RunRecord, now: int) -> Iterator[str]:
    state = found.info.state
    tokens = ", ".join(f"{number(count)} {name}" for name, count in state.tokens)
    for key, text in (
        ("run", state.id),
        ("name", state.name),
        ("agent", state.agent),
        ("session", state.session.removeprefix(BRANCHES)),
        ("message", state.message),
        ("status", found.info.status),
        ("time", _when(found.info, now)),
        ("tokens", tokens),
        ("error", state.error),
        ("replaced by", state.superseded_by),
    ):
        if text:
            yield f"{key + ':':<13}{one_line(text, 300)}"
    if found.earlier:
        yield ""
        yield f"({number(found.earlier)} earlier steps are left out; --all shows all)"
    for step in found.steps:
        yield ""
        yield from _step_lines(invocation, step, is_over=not found.info.is_running)
        yield from (f"    {_source(each.title, each.url)}" for each in step.sources)
        yield from (f"    - {one_line(each.title, 100)}" for each in step.substeps)
        yield from (f"    {safe(line)}" for line in step.content.splitlines())


def _step_lines(
    invocation: Invocation, step: StepRecord, *, is_over: bool = False
) -> Iterator[str]:
    """Yield the line of a step, and why it failed."""
    status = "interrupted" if step.is_running and is_over else step.status
    facts = [
        one_line(step.type, 40),
        paint(invocation, status, _STYLES.get(status, "")),
        *([step.took] if step.took else []),
        *([f"{number(sum(count for _, count in step.tokens))} tokens"] if step.tokens else []),
        *([f"part of {step.parent}"] if step.parent else []),
        *([f"tries {step.retries} again"] if step.retries else []),
    ]
    yield f"{step.number}. {one_line(step.name, 100)}  ({', '.join(facts)})"
    if step.error:
        yield f"    {one_line(step.error, 300)}"


def _source(title: str, url: str) -> str:
    return one_line(f"{title} <{url}>" if url else title, 300)


def _last_step(found: RunInfo) -> str:
    state = found.state
    what = state.last_title or state.last_type.replace("_", " ")
    return f"{state.last}. {what}" if state.last else ""


def _when(found: RunInfo, now: int) -> str:
    """Return since when a run runs, how long it took, or when it was last seen."""
    state = found.state
    if state.ended:
        return f"{moment(format_time(state.started))[:16]}, {state.lasted(now)}"
    if found.is_running and found.is_here:
        return f"for {state.lasted(now)}"
    return f"last seen {moment(format_time(found.seen))[:16]}"


GROUP = Group(HELP, {"show": show, "watch": watch}, bare=listed)
