"""`trace search`."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened, tell_unmatched
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import ROLE_STYLES, highlight_hit, moment, paint
from trace_cli.runtime import Invocation
from trace_store import Repo
from trace_store.base.ident import format_time, parse_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results
    from trace_store.search.query import Hit

NAME_COLUMNS = 30


@takes(
    Argument("WORDS", "words", "What to search for; optional with a filter", ANY),
    Option("--session", "session", "Only in this session or branch", "SESSION", default=""),
    Option("--agent", "agent", "Only in sessions of this agent", "AGENT", default=""),
    Option("--role", "role", "Only messages with this role", "ROLE", default=""),
    Option("--kind", "kind", "Only messages of this kind", "KIND", default=""),
    Option("--tool", "tool", "Only messages that call this tool", "NAME", default=""),
    Option("--path", "path", "Only messages with calls on this file", "PATH", default=""),
    Option("--label", "label", "Only messages with this label", "LABEL", default=""),
    Option("--since", "since", "Only from this time on", "WHEN", default=""),
    Option("--until", "until", "Only until this time", "WHEN", default=""),
    Option("--rank", "rank", "Sort by rank instead of time"),
    Option("--regex", "regex", "Treat the words as a regular expression (reads every message)"),
    Option("--linked", "linked", "Also search linked repositories"),
    Option("-n --limit", "limit", "Stop after this many", "N", number=True, least=1, default=20),
    JSON,
)
def run(
    invocation: Invocation,
    *,
    words: list[str],
    session: str,
    agent: str,
    role: str,
    kind: str,
    tool: str,
    path: str,
    label: str,
    since: str,
    until: str,
    rank: bool,
    regex: bool,
    linked: bool,
    limit: int,
) -> Results:
    r"""Search the messages of all branches, newest first.

    Words are ANDed. An argument with a space also finds its words apart, but exact phrases come first; '"a phrase"'
    finds nothing else. word* is a prefix, OR separates alternatives, and -word (after `--`) excludes. Hidden messages
    and earlier versions are found too. `trace view ADDRESS` shows a hit in its session. The first search builds an
    index in `.trace/cache`; each search updates it.

        trace search freeze date
        trace search "freeze date"
        trace search --role user --since "2 days ago" freeze
        trace search --tool Edit --path src/app.py
        trace search --regex "def test_\w+_purge"
    """
    filters: dict[str, Any] = {
        "session": session,
        "agent": agent,
        "role": role,
        "kind": kind,
        "tool": tool,
        "path": path,
        "label": label,
    }
    with opened(invocation) as repo:
        now = repo.store.clock.now()
        for name, text in (("since", since), ("until", until)):
            if (limit_time := _moment(text, now, is_end=name == "until")) is not None:
                filters[name] = limit_time
        query = _Query(words, filters, rank, regex, limit)
        count = yield from _hits(invocation, repo, query, "")
        for link, why in repo.agents.linked() if linked else ():
            if why:
                invocation.note(why)
                continue
            with trace_store.Repo.open(
                directory=link.path, environment=invocation.environment
            ) as other:
                place = os.path.dirname(link.path)
                count += yield from _hits(invocation, other, query, place)
        if not count:
            invocation.note("nothing was found" + _advice(words, regex=regex))
            asked = " ".join(words)
            if asked and not regex and not any(filters.values()):
                for found in repo.trajectories.search(asked, limit=1):
                    invocation.note(f"`trace trajectory search` finds a {found.event.type}")


class _Query(NamedTuple):
    """A search query with its filters."""

    words: list[str]
    filters: dict[str, Any]
    ranked: bool
    regex: bool
    limit: int


def _hits(
    invocation: Invocation, repo: Repo, query: _Query, place: str
) -> Generator[tuple[Any, Any], None, int]:
    """Yield the hits in a repository; return their number. `place` is the folder of a linked one."""
    with Progress(invocation) as progress:
        found = repo.search(
            " ".join(query.words),
            limit=query.limit + 1,
            ranked=query.ranked,
            regex=query.regex,
            phrases=[each for each in query.words if _is_phrase(each)],
            progress=lambda done, whole: progress.tell("indexing", done, whole),
            unmatched=lambda *given: tell_unmatched(invocation, *given),
            **query.filters,
        )
    more, found = len(found) > query.limit, found[: query.limit]
    if not invocation.as_json:
        invocation.page()
    titles = repo.sessions.titles(*{hit.ref for hit in found})
    beside = {"store": place} if place else {}
    if place and found:
        invocation.note(f"in {place}:")
    yield (
        (trace_store.record(hit, title=titles[hit.ref], **beside) for hit in found),
        (_line(invocation, hit, titles) for hit in found),
    )
    if more:
        invocation.note(f"more than {query.limit} hits; -n shows more")
    return len(found)


def _is_phrase(word: str) -> bool:
    """Return True if the shell's quotes kept several words together, and the query has none of its own."""
    return len(word.split()) > 1 and '"' not in word


def _advice(words: list[str], *, regex: bool) -> str:
    """Return a hint about prefix search if whole words were searched."""
    # Any part of a run of Chinese, Japanese or Korean characters is found.
    word = next((each for each in words if each.isalnum() and max(each) < "\u2e80"), "")
    return f": only whole words match; `{word}*` matches prefixes" if word and not regex else ""


def _moment(text: str, now: int, *, is_end: bool) -> int | None:
    if not text:
        return None
    found = parse_moment(text, now, is_end=is_end)
    if found is None:
        raise usage_error(f"not a time: {text[:80]!r}", "`2026-03-02`, `2 days ago`")
    return found


def _line(invocation: Invocation, hit: Hit, titles: Mapping[str, str]) -> str:
    when = moment(format_time(hit.time))[:16] if hit.time else "no time"
    title = safe(one_line(titles[hit.ref], 200))
    if len(title) > NAME_COLUMNS:
        title = title[: NAME_COLUMNS - 1] + "…"
    role = hit.hidden or hit.role or "edited"
    place = short_address(hit.address)
    if hit.hidden:
        place = place.partition(".")[0]  # its commit; no message is meant
    return "  ".join(
        [
            paint(invocation, place, "yellow"),
            paint(invocation, when, "dim"),
            paint(invocation, safe(one_line(role, 80)), ROLE_STYLES.get(role, "")),
            title,
            highlight_hit(invocation, hit.snippet),
        ]
    )
