"""Subcommands of `trace trajectory` that search, and that keep the records in order."""

from __future__ import annotations

from trace_cli.arguments import ANY, SOME, Argument, Option, takes
from trace_cli.porcelain.common import JSON, opened
from trace_cli.porcelain.trajectory_show import said
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import date, marked, paint
from trace_store.repo import trajectory_records as records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.trajectories.event_search import FoundEvent

FILTERS = (
    Option("--tag", "tag", "Only with this tag, of the event or its trajectory", "TAG", default=""),
    Option("--task", "task", "Only in trajectories of this task", "ID", default=""),
    Option("--file", "file", "Only in those whose commits changed it", "PATH", default=""),
    Option("--commit", "commit", "Only in those linked to this commit", "COMMIT", default=""),
    Option("--agent", "agent", "Only what this agent recorded", "NAME", default=""),
)


@takes(
    Argument("WORDS", "words", "What to search for; optional with a filter", ANY),
    *FILTERS,
    Option("-n --limit", "limit", "Stop after this many", "N", number=True, least=1, default=20),
    JSON,
)
def search(
    invocation: Invocation, *, words: list[str], limit: int, as_json: bool, **wanted: str
) -> None:
    """Search what was recorded in all trajectories, newest first.

    Decisions, findings, chapters, notes and retrospectives are found, also in earlier versions. Words are ANDed, as in
    `trace search`. The first search builds an index in `.trace/cache`; each search updates it.

        trace trajectory search token refresh --file src/auth
    """
    with opened(invocation) as repo:
        found = repo.trajectories.search(" ".join(words), limit=limit, **wanted)
    _print(invocation, found, as_json=as_json)


@takes(
    Argument("QUESTION", "words", "What is to be decided", SOME),
    *FILTERS,
    Option("-n --limit", "limit", "Show at most this many", "N", number=True, least=1, default=5),
    JSON,
)
def similar(
    invocation: Invocation, *, words: list[str], limit: int, as_json: bool, **wanted: str
) -> None:
    """Show past decisions on questions like this one, the most similar first.

    A decision needs one word in common; rare words count more than frequent ones.

        trace trajectory similar "Where do we keep the tokens?"
    """
    with opened(invocation) as repo:
        found = repo.trajectories.similar(" ".join(words), limit=limit, **wanted)
    _print(invocation, found, as_json=as_json)


def _print(invocation: Invocation, found: Sequence[FoundEvent], *, as_json: bool) -> None:
    if as_json:
        for each in found:
            write_record(invocation, records.found_event(each))
        return
    invocation.page()
    for each in found:
        event, state = each.event, each.state
        about = f"{date(event.time)[:16]}  {safe(event.type)} by {safe(event.agent)}"
        where = f"in {state.id} ({one_line(state.title, 60)})"
        invocation.line(f"{paint(invocation, str(event.id), 'yellow')}  {about} {where}")
        hit = each.snippet.text[each.snippet.start : each.snippet.end]
        lines = [one_line(said(event), 200), one_line(event.reasoning, 200)]
        if not any(hit in line for line in lines):
            lines.append(marked(invocation, each.snippet))
        for line in filter(None, lines):
            invocation.line(f"    {line}")
    if not found:
        invocation.note("nothing was found")
