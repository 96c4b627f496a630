"""Subcommands of `trace trajectory` that search, score and compact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import trace_store
from trace_cli.arguments import ANY, SOME, Argument, Option, takes
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.porcelain.trajectory import ID
from trace_cli.porcelain.trajectory_show import event_text
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, date, highlight_hit, paint
from trace_cli.runtime import Invocation
from trace_store.trajectories.score import Score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results
    from trace_store.trajectories.event_search import FoundEvent

SHOWN_EVENTS = 4
PAST = {"archive": "archived", "summarise": "summarised", "delete": "deleted"}
FILTERS = (
    Option(
        "--tag", "tag", "Only events with this tag, or in trajectories with it", "TAG", default=""
    ),
    Option("--task", "task", "Only in trajectories of this task", "ID", default=""),
    Option(
        "--file",
        "file",
        "Only in trajectories whose linked commits changed PATH",
        "PATH",
        default="",
    ),
    Option("--commit", "commit", "Only in trajectories linked to COMMIT", "COMMIT", default=""),
    Option("--agent", "agent", "Only what this agent recorded", "NAME", default=""),
)


@takes(
    Argument("WORDS", "words", "What to search for; optional with a filter", ANY),
    *FILTERS,
    Option("-n --limit", "limit", "Stop after this many", "N", number=True, least=1, default=20),
    JSON,
)
def search(invocation: Invocation, *, words: list[str], limit: int, **wanted: str) -> Results:
    """Search the events of all trajectories, newest first.

    Decisions, findings, chapters, notes and retrospectives are searched, including their earlier versions. Words are
    ANDed, as in `trace search`. The first search builds an index in `.trace/cache`; each search updates it.

        trace trajectory search token refresh --file src/auth
    """
    with opened(invocation) as repo:
        found = repo.trajectories.search(" ".join(words), limit=limit, **wanted)
    yield from _found(invocation, found)


@takes(
    Argument("QUESTION", "words", "What is to be decided", SOME),
    *FILTERS,
    Option("-n --limit", "limit", "Show at most this many", "N", number=True, least=1, default=5),
    JSON,
)
def similar(invocation: Invocation, *, words: list[str], limit: int, **wanted: str) -> Results:
    """Show past decisions on similar questions, the most similar first.

    A decision must share a word with QUESTION; rare words count more.

        trace trajectory similar "Where do we keep the tokens?"
    """
    with opened(invocation) as repo:
        found = repo.trajectories.similar(" ".join(words), limit=limit, **wanted)
    yield from _found(invocation, found)


@takes(
    ID,
    JSON,
)
def score(invocation: Invocation, *, trajectory: str) -> Results:
    """Show how complete a record is, from 0 to 100, and what it lacks.

    The score judges the record, not the work. A complete record has a retrospective, linked commits, and decisions with
    a question, reasoning and alternatives. It was written during the work, and has no paths of someone's home folder.
    """
    with opened(invocation) as repo:
        found = repo.trajectories.score(trajectory)
    yield found, _score_lines(invocation, found)


def _score_lines(invocation: Invocation, found: Score) -> Iterator[str]:
    state = found.trajectory.state
    yield f"{paint(invocation, state.id, 'yellow')} {one_line(state.title, 60)}"
    yield f"{found.points} of 100"
    for lack in found.lacks:
        names = ", ".join(short_address(event.id) for event in lack.events[:SHOWN_EVENTS])
        more = ", …" if len(lack.events) > SHOWN_EVENTS else ""
        where = f" ({names}{more})" if names else ""
        yield f"  -{lack.points:<3} {safe(lack.text)}{where}"


@takes(
    Option(
        "--older-than",
        "older_than",
        "Minimum time since the last event (default: 90d)",
        "DURATION",
        default="90d",
    ),
    Option(
        "--how",
        "how",
        "archive: move to the trash; summarise: keep only decisions, findings, links and the retrospective; delete",
        "WAY",
        default="archive",
        choices=("archive", "summarise", "delete"),
    ),
    Option("--apply", "apply", "Do it, instead of listing the trajectories"),
    JSON,
    QUIET,
)
def compact(invocation: Invocation, *, older_than: str, how: str, apply: bool) -> Results:
    """Archive, summarise or delete trajectories that ended long ago.

    `archive` and `summarise` move what they remove to the trash. `trace trash restore` restores an archived trajectory.
    If several clones share the repository, compact in one of them, while all have the same events.

        trace trajectory compact --older-than 90d --how summarise --apply
    """
    with opened(invocation) as repo:
        done = repo.trajectories.compact(older_than=older_than, how=how, apply=apply)
        if apply:
            finish(invocation, repo)
    for each in done:
        name = paint(invocation, each.state.id, "yellow")
        kept = f", {each.kept_count} kept" if how == "summarise" else ""
        events = f"{counted(each.event_count, 'event')}{kept}"
        text = f"{name} {date(each.state.updated)[:10]} {one_line(each.state.title, 60)} ({events})"
        yield (lambda e=each: trace_store.record(e, action=how, applied=apply)), text
    if not (invocation.quiet or invocation.as_json):
        what = counted(len(done), "trajectory")
        verb = "ended that long ago" if not done else PAST[how]
        would = "would be " if done and not apply else ""
        invocation.note(f"{what} {would}{verb}" + ("; --apply does it" if would else ""))


def _found(invocation: Invocation, found: Sequence[FoundEvent]) -> Results:
    if not invocation.as_json:
        invocation.page()
    yield found, _lines(invocation, found)


def _lines(invocation: Invocation, found: Sequence[FoundEvent]) -> Iterator[str]:
    for each in found:
        event, state = each.event, each.state
        about = f"{date(event.time)[:16]}  {safe(event.type)} by {safe(event.agent)}"
        where = f"in {state.id} ({one_line(state.title, 60)})"
        yield f"{paint(invocation, str(event.id), 'yellow')}  {about} {where}"
        hit = each.snippet.text[each.snippet.start : each.snippet.end]
        lines = [one_line(event_text(event), 200), one_line(event.reasoning, 200)]
        if not any(hit in line for line in lines):
            lines.append(highlight_hit(invocation, each.snippet))
        for line in filter(None, lines):
            yield f"    {line}"
    if not found:
        invocation.note("nothing was found")
