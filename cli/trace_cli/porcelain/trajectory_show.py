"""`trace trajectory status` and `trace trajectory show`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened
from trace_cli.porcelain.trajectory import ID, TRAJECTORY
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, counted, date, paint, table
from trace_store.trajectories.events import (
    AMENDED,
    DECISION,
    ERROR,
    FINDING,
    LINKED,
    RECEIVED,
    SENT,
    THINKING,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.objects.address import Address
    from trace_store.trajectories.events import Event
    from trace_store.trajectories.reading import Chapter, SessionMessage, Trajectory
    from trace_store.trajectories.state import State
    from trace_store.trajectories.trajectories import Trajectories

LAST = 5
STYLES = {DECISION: "green", FINDING: "cyan", ERROR: "red"}
INDENT = "    "


@takes(TRAJECTORY, JSON)
def status(invocation: Invocation, *, trajectory: str) -> Results:
    """Show the current trajectory: its task, agents, chapter and last events."""
    with opened(invocation) as repo:
        unlinked = repo.trajectories.code.unlinked()
        if unlinked and not (invocation.quiet or invocation.as_json):
            names = ", ".join(each.commit[:12] for each in unlinked[-LAST:])
            count, verb = (
                counted(len(unlinked), "commit"),
                "belongs" if len(unlinked) == 1 else "belong",
            )
            invocation.note(
                f"note: {count} {verb} to no trajectory, since several were active: {names}"
            )
            invocation.note("hint: `trace trajectory link COMMIT --trajectory ID`")
        state = repo.trajectories.find(trajectory, ended=True)
        last = repo.trajectories.last_events(state.id, LAST)
        now = repo.store.clock.now()
    yield (
        lambda: trace_store.record(state, last=last, unlinked=unlinked),
        _status_lines(invocation, state, last, now),
    )


def _status_lines(
    invocation: Invocation, state: State, last: Sequence[Event], now: int
) -> Iterator[str]:
    yield _heading(invocation, state)
    since = f"{state.status} since {date(state.started)[:16]} UTC"
    facts = [
        *_facts(state),
        ("status", f"{since}, {_span(now - state.started)}" if state.is_active else state.status),
        ("chapter", one_line(state.chapter, 80)),
        ("recorded", _counts(state)),
    ]
    rows = [(name, text) for name, text in facts if text]
    yield from table(invocation, (), rows, LEFT * 2, [("dim", "")] * len(rows))
    last_rows = [
        (date(each.time)[11:16], safe(each.agent), safe(each.type), one_line(event_text(each), 100))
        for each in last
    ]
    styles = [("dim", "", STYLES.get(each.type, ""), "") for each in last]
    yield ""
    yield from table(invocation, (), last_rows, LEFT * 4, styles)


@takes(
    ID,
    Option("--events", "events", "Also show the messages of the agents' sessions, one a line"),
    Option("--thinking", "thinking", "Also show the agents' thinking"),
    JSON,
)
def show(invocation: Invocation, *, trajectory: str, events: bool, thinking: bool) -> Results:
    """Show a trajectory: chapters with their events, retrospective, and links to the code.

    A trajectory has no copy of session messages; --events reads those that came between its events.
    """
    with opened(invocation) as repo:
        whole = repo.trajectories.read(trajectory)
        chapters = [
            _shown_chapter(repo.trajectories, chapter, events=events, thinking=thinking)
            for chapter in whole.chapters
        ]
    if not invocation.as_json:
        invocation.page()
    yield (
        lambda: trace_store.record(
            whole, chapters=[trace_store.record(c, messages=m) for c, m in chapters]
        ),
        _lines(invocation, whole, chapters),
    )


def _lines(
    invocation: Invocation,
    whole: Trajectory,
    chapters: Sequence[tuple[Chapter, Sequence[SessionMessage]]],
) -> Iterator[str]:
    numbers = {each.id: number for number, each in enumerate(whole.decisions, 1)}
    yield from _summary_lines(invocation, whole)
    for chapter, messages in chapters:
        yield from _chapter_lines(invocation, chapter, messages, numbers)
    yield from _ending_lines(invocation, whole)


def _shown_chapter(
    trajectories: Trajectories, chapter: Chapter, *, events: bool, thinking: bool
) -> tuple[Chapter, list[SessionMessage]]:
    """Return the parts of a chapter to show, and the session messages to show with it."""
    if not thinking:
        chapter = chapter.without(THINKING)
    if not (events or thinking):
        return chapter, []
    return chapter, [*trajectories.session_messages(chapter, lines=events, thinking=thinking)]


def _summary_lines(invocation: Invocation, whole: Trajectory) -> Iterator[str]:
    state = whole.state
    yield _heading(invocation, state)
    until = "" if whole.ended is None else f" to {date(whole.ended)[:16]}"
    facts = [
        ("status", f"{state.status}, {date(state.started)[:16]}{until} UTC"),
        ("reason", one_line(whole.reason, 200)),
        *_facts(state),
        ("recorded", _counts(state)),
    ]
    rows = [(name, text) for name, text in facts if text]
    yield from table(invocation, (), rows, LEFT * 2, [("dim", "")] * len(rows))
    if state.description:
        yield ""
        yield from _block(state.description, "")


def _chapter_lines(
    invocation: Invocation,
    chapter: Chapter,
    messages: Sequence[SessionMessage],
    numbers: Mapping[Address, int],
) -> Iterator[str]:
    title = one_line(chapter.title, 80) or "(before the first chapter)"
    about = f"  {date(chapter.started)[:16]}  {safe(chapter.agent)}"
    yield ""
    yield paint(invocation, title, "bold") + paint(invocation, about, "dim")
    # Messages come before events of the same time.
    timed = [(each.time, _message_lines(invocation, each)) for each in messages]
    timed += [
        (each.time, _event_lines(invocation, each, numbers.get(each.id))) for each in chapter.events
    ]
    for _, lines in sorted(timed, key=lambda pair: pair[0]):
        yield from lines


def _message_lines(invocation: Invocation, message: SessionMessage) -> Iterator[str]:
    thought = [safe(line) for line in message.thinking.splitlines()]
    for line in ([safe(message.line)] if message.line else []) + thought:
        yield paint(invocation, f"  {date(message.time)[11:16]}  {line}", "dim")


def _event_lines(invocation: Invocation, event: Event, number: int | None) -> Iterator[str]:
    name = paint(invocation, f"{safe(event.type)}", STYLES.get(event.type, ""))
    which = f"d{number}" if number else str(event.id)
    marks = [event.significance, *(f"#{tag}" for tag in event.tags)]
    marks += event.standing
    marks += ["amended"] if len(event.versions) > bool(event.replaced_by) else []
    if event.confidence is not None:
        marks.insert(0, f"confidence {event.confidence:g}")
    more = f" ({safe(', '.join(filter(None, marks)))})" if any(marks) else ""
    first, *rest = event_text(event).split("\n")
    at = date(event.time)[11:16]
    yield f"  {at}  {name} {paint(invocation, which, 'yellow')} {safe(event.agent)}: {first}{more}"
    for line in rest:
        yield INDENT + line
    yield from _block(event.reasoning, INDENT)
    for each in event.alternatives:
        reason = f": {one_line(each.reason, 200)}" if each.reason else ""
        yield f"{INDENT}not {one_line(each.option, 100)}{reason}"


def _ending_lines(invocation: Invocation, whole: Trajectory) -> Iterator[str]:
    last = whole.retrospective
    if last is not None:
        sure = "" if last.confidence is None else f" (confidence {last.confidence:g})"
        yield ""
        yield paint(invocation, "Retrospective", "bold") + sure
        for name in ("summary", "approach"):
            yield from _block(str(last.data.get(name, "")), "  ")
        for name in ("challenges", "learnings", "suggestions"):
            for each in last.data.get(name, ()):
                yield f"  {name.removesuffix('s')}: {one_line(str(each), 500)}"
    if whole.links:
        yield ""
        yield paint(invocation, "Code", "bold")
        for link in whole.links:
            yield f"  {safe(link.commit[:12])} {one_line(str(link.data.get('subject', '')), 100)}"
        for path in whole.files:
            yield f"{INDENT}{safe(path)}"


def _heading(invocation: Invocation, state: State) -> str:
    return paint(invocation, state.id, "yellow") + f" {one_line(state.title, 100)}"


def _facts(state: State) -> list[tuple[str, str]]:
    """Return the facts that both `status` and `show` print."""
    task = state.task
    named = "" if task is None else " ".join(filter(None, (task.system, task.id, task.url)))
    agents = [f"{each.name} ({each.role})" if each.role else each.name for each in state.agents]
    return [
        ("task", one_line(named, 120)),
        ("agents", one_line(", ".join(agents), 200)),
        ("branch", safe(state.branch.removeprefix("refs/heads/"))),
        ("project", one_line(state.project, 80)),
        ("tags", one_line(", ".join(state.tags), 120)),
    ]


def _counts(state: State) -> str:
    found = [
        counted(count, name) for name in (DECISION, FINDING, ERROR) if (count := state.count(name))
    ]
    return "; ".join(
        [*filter(None, [", ".join(found)]), f"{counted(state.count(), 'event')} in all"]
    )


def event_text(event: Event) -> str:
    """Return the text of an event, escaped."""
    data: Mapping[str, Any] = event.data
    text = event.content or str(data.get("title", "") or data.get("summary", ""))
    if event.type == DECISION and event.question:
        text = f"{event.question} → {text}"
    elif event.type == SENT:
        text = f"to {data.get('to', '')}: {text}"
    elif event.type == RECEIVED:
        text = f"from {data.get('from', '')}: {text}"
    elif event.type == LINKED:
        text = f"{event.commit[:12]} {data.get('subject', '')}"
    elif event.type == AMENDED:
        text = ", ".join(sorted(data.get("changes", ())))
    return safe(text)


def _block(text: str, indent: str) -> list[str]:
    return [f"{indent}{line}" for line in safe(text).splitlines()]


def _span(milliseconds: int) -> str:
    """Return a duration in minutes, hours or days."""
    minutes = max(0, milliseconds) // 60_000
    if minutes < 120:
        return f"for {counted(minutes, 'minute')}"
    hours = minutes // 60
    return f"for {counted(hours, 'hour')}" if hours < 48 else f"for {counted(hours // 24, 'day')}"
