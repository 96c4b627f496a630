"""`trace search`."""

from __future__ import annotations

from collections.abc import Mapping

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import ROLE_STYLES, highlight_hit, moment, paint
from trace_cli.runtime import Invocation
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
    with opened(invocation) as repo:
        now = repo.store.clock.now()
        moments = {name: _moment(text, now) for name, text in (("since", since), ("until", until))}
        with Progress(invocation) as progress:
            found = repo.search(
                " ".join(words),
                limit=limit + 1,
                ranked=rank,
                regex=regex,
                phrases=[each for each in words if _is_phrase(each)],
                progress=lambda done, whole: progress.tell("indexing", done, whole),
                session=session,
                agent=agent,
                role=role,
                kind=kind,
                tool=tool,
                path=path,
                label=label,
                **moments,
            )
        more, found = len(found) > limit, found[:limit]
        if not invocation.as_json:
            invocation.page()
        titles = repo.sessions.titles(*{hit.ref for hit in found})
        yield (
            (trace_store.record(hit, title=titles[hit.ref]) for hit in found),
            (_line(invocation, hit, titles) for hit in found),
        )
        if not found:
            invocation.note("nothing was found" + _advice(words, regex=regex))
        elif more:
            invocation.note(f"more than {limit} hits; -n shows more")


def _is_phrase(word: str) -> bool:
    """Return True if the shell's quotes kept several words together, and the query has none of its own."""
    return len(word.split()) > 1 and '"' not in word


def _advice(words: list[str], *, regex: bool) -> str:
    """Return a hint about prefix search if whole words were searched."""
    # Any part of a run of Chinese, Japanese or Korean characters is found.
    word = next((each for each in words if each.isalnum() and max(each) < "\u2e80"), "")
    return f": only whole words match; `{word}*` matches prefixes" if word and not regex else ""


def _moment(text: str, now: int) -> int | None:
    if not text:
        return None
    found = parse_moment(text, now)
    if found is None:
        raise usage_error(f"not a time: {text[:80]!r}", "`2026-03-02`, `2 days ago`")
    return found


def _line(invocation: Invocation, hit: Hit, titles: Mapping[str, str]) -> str:
    when = moment(format_time(hit.time))[:16] if hit.time else "no time"
    title = safe(one_line(titles[hit.ref], 200))
    if len(title) > NAME_COLUMNS:
        title = title[: NAME_COLUMNS - 1] + "…"
    role = hit.role or "edited"
    return "  ".join(
        [
            paint(invocation, short_address(hit.address), "yellow"),
            paint(invocation, when, "dim"),
            paint(invocation, role, ROLE_STYLES.get(role, "")),
            title,
            highlight_hit(invocation, hit.snippet),
        ]
    )
