"""`trace sessions`."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise, takewhile

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, NOTHING, finish, opened, tell_unmatched
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line
from trace_cli.render.tables import LEFT, RIGHT, counted, gauge, moment, number, table
from trace_cli.subcommands import Group
from trace_store.base.ident import format_time, parse_moment
from trace_store.contracts.ref_names import BRANCHES, RECORDS, SESSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trace_cli.runtime import Invocation, Results
    from trace_store.base.ident import Time
    from trace_store.runs.reading import RunInfo
    from trace_store.sessions.listing import SessionInfo

HELP = """A SESSION is a title, a session id or its first characters, or the name of the session's branch.
"""
NAME_COLUMNS = 24
ENDED = "ended"
SHOWN_RUNS = 5
_KEYS: dict[str, Callable[[SessionInfo], int]] = {
    ENDED: lambda each: each.ended,
    "began": lambda each: each.began,
    "messages": lambda each: each.message_count,
    "tokens": lambda each: each.token_count,
}
WHICH = Argument("SESSION", "name", "A title, an id (prefix), or a branch")


@takes(
    Option("--agent", "agent", "Only sessions of this agent, such as codex", "AGENT"),
    Option("--type", "type", "Only sessions of this type, such as dev", "TYPE", default=""),
    Option("--feature", "feature", "Only sessions of this feature", "NAME", default=""),
    Option("--task", "task", "Only sessions of this task", "ID", default=""),
    Option("--state", "state", "Only sessions in this state", "STATE", default=""),
    Option("--active", "active", "Only open sessions started by Trace"),
    Option("--folder", "folder", "Only sessions in this folder or below", "DIR"),
    Option("--since", "since", "Only sessions that ended after this time", "WHEN"),
    Option("--until", "until", "Only sessions that began before this time", "WHEN"),
    Option(
        "--sort",
        "order",
        "Sort by ended, began, messages or tokens, in descending order",
        "KEY",
        default=ENDED,
    ),
    Option("-n --limit", "limit", "Stop after this many", "N", number=True, least=1),
    Option("--plain", "plain", "Plain numbers, columns separated by tabs"),
    JSON,
)
def listed(
    invocation: Invocation,
    *,
    agent: str | None,
    type: str,
    feature: str,
    task: str,
    state: str,
    active: bool,
    folder: str | None,
    since: str | None,
    until: str | None,
    order: str,
    limit: int | None,
    plain: bool,
) -> Results:
    """List agent sessions, the latest first.

    A session without a title is shown by its first prompt. `61/432` means that the model is shown 61 of 432 messages,
    as after a compaction; `+2` counts subagents. Branches without an agent, and the threads that frameworks store, are
    listed too.

        trace sessions --since "last week" --until yesterday
        trace sessions --agent codex --json
        trace sessions --sort tokens -n 5
    """
    if order not in _KEYS:
        raise usage_error(f"--sort takes {', '.join(_KEYS)}, not {order[:40]!r}")
    facts = {"type": type, "feature": feature, "task": task, "state": state}
    with opened(invocation) as repo, _progress(invocation) as tell:
        found = repo.sessions.list(active=active or None, progress=tell, **facts)
        is_whole = not (active or any(facts.values()))
        known = found if is_whole else repo.sessions.list(progress=tell)
        now = repo.store.clock.now()
    first, last = _moment(since, now), _moment(until, now, is_end=True)
    below = None if folder is None else os.path.abspath(os.path.join(invocation.folder, folder))
    chosen = [
        each
        for each in found
        if (not agent or each.agent == agent)
        and (first is None or each.ended >= first)
        and (last is None or each.began <= last)
        and (
            below is None or f"{each.folder}{os.sep}".startswith(f"{below.rstrip(os.sep)}{os.sep}")
        )
    ]
    chosen = sorted(chosen, key=_KEYS[order], reverse=True)[:limit]
    if chosen and not invocation.as_json:
        invocation.page()
    yield chosen, _plain_lines(chosen) if plain else _lines(invocation, chosen, known)
    if not chosen:
        _tell_nothing(invocation, known, {"agent": agent or "", **facts})


def _moment(text: str | None, now: Time, *, is_end: bool = False) -> Time | None:
    """Return a time in milliseconds; None if it is not given."""
    found = parse_moment(text, now, is_end=is_end) if text else None
    if text and found is None:
        raise usage_error(f"not a time: {text[:80]!r}", "`2026-03-02`, `2 days ago`, `last week`")
    return found


def _tell_nothing(
    invocation: Invocation, known: Sequence[SessionInfo], wanted: Mapping[str, str]
) -> None:
    """Report that there are no such sessions, and each filter's values if it has none of them."""
    if not invocation.as_json:
        invocation.note("no such sessions" if known else "no sessions")
    for what, word in wanted.items() if known else ():
        owners = known if what == "agent" else [each.facts for each in known if each.facts]
        values = sorted({getattr(each, what) for each in owners} - {""})
        if word and word not in values:
            tell_unmatched(invocation, what, word, values)


def _plain_lines(chosen: Sequence[SessionInfo]) -> Iterator[str]:
    for each in chosen:
        row = (each.session, each.agent, _date(each), each.message_count, each.token_count)
        yield "\t".join(map(str, [*row, one_line(each.name, 200)]))


def _lines(
    invocation: Invocation, chosen: Sequence[SessionInfo], known: Sequence[SessionInfo]
) -> Iterator[str]:
    if not chosen:
        return
    names = _short_names(known)
    rows = [
        (
            one_line(names[each.ref], 200),
            one_line(each.agent or "-", 20),
            _date(each),
            _messages(each) + (f" +{each.agents}" if each.agents else ""),
            _gauge(invocation, each),
            one_line(_title(each), 200),
        )
        for each in chosen
    ]
    heads = ("session", "agent", "ended", "messages", "tokens", "title")
    yield from table(invocation, heads, rows, LEFT * 3 + RIGHT * 2 + LEFT)


@takes(WHICH, JSON)
def show(invocation: Invocation, *, name: str) -> Results:
    """Show the details of a session; `trace view` shows its messages."""
    with opened(invocation) as repo, _progress(invocation) as tell:
        found = repo.sessions.get(name, progress=tell)
        runs = repo.runs.list(session=found.ref, limit=SHOWN_RUNS)
    yield lambda: trace_store.record(found, runs=runs), _details(found, runs)


def _details(found: SessionInfo, runs: Sequence[RunInfo]) -> Iterator[str]:
    for key, text in (
        ("title", found.title),
        ("prompt", found.prompt),
        ("agent", found.agent),
        ("session", found.session),
        ("record" if found.ref.startswith(RECORDS) else "branch", found.ref.removeprefix(BRANCHES)),
        ("folder", found.folder),
        ("began", moment(format_time(found.began)) if found.began else ""),
        ("ended", _date(found)),
        ("context", f"{counted(found.message_count, 'message')}, {_tokens(found)}"),
        ("hidden", counted(found.hidden_count, "message") if found.hidden_count else ""),
        *_recorded(found),
        ("subagents", str(found.agents or "")),
        ("rewinds", str(found.rewinds or "")),
        *(("run", _run(each)) for each in runs),
    ):
        if text:
            yield f"{key + ':':<11}{one_line(text, 300)}"


def _run(found: RunInfo) -> str:
    """Return a run on one line, as a card."""
    steps = counted(found.state.step_count, "step")
    return f"{found.id}, {found.status}, {steps}: {found.state.name}"


def _title(found: SessionInfo) -> str:
    """Return the name of a session, after what is being done for it now."""
    if found.damage:
        return f"unreadable: {found.damage}"
    return f"[{found.activity}] {found.name}" if found.activity else found.name


def _short_names(known: Sequence[SessionInfo]) -> dict[str, str]:
    """Return the name of each session by its ref: the first characters, as many as tell it from the others."""
    counts = Counter(each.session for each in known)
    whole = {
        each.ref: f"{each.agent}/{each.session}"
        if each.agent and counts[each.session] > 1
        else each.session
        for each in known
    }
    ordered = sorted(whole.values())
    shared = dict.fromkeys(ordered, 0)
    for one, other in pairwise(ordered):
        pairs = zip(one, other, strict=False)
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        shared[one], shared[other] = max(shared[one], alike), alike
    return {
        ref: name[: max(shared[name] + 1, 8 if ref.startswith(SESSIONS) else NAME_COLUMNS)]
        for ref, name in whole.items()
    }


def _messages(found: SessionInfo) -> str:
    """Return the message count of a context, as `61/432` if some are hidden."""
    shown = number(found.message_count)
    if not found.hidden_count:
        return shown
    return f"{shown}/{number(found.message_count + found.hidden_count)}"


def _recorded(found: SessionInfo) -> Iterator[tuple[str, str]]:
    if found.facts is not None:
        for name in ("type", "feature", "task", "state"):
            yield name, getattr(found.facts, name)
        yield "limit", number(found.facts.limit)
        yield "closed", found.facts.closed


def _gauge(invocation: Invocation, found: SessionInfo) -> str:
    """Return the tokens of a context, for a session with a limit as `62k of 100k`."""
    if found.facts is None:
        return number(found.token_count)
    limit = found.facts.limit
    said = f"{_thousands(found.token_count)} of {_thousands(limit)}"
    return gauge(invocation, said, found.token_count, limit)


def _thousands(count: int) -> str:
    return f"{count // 1000:,}k" if count >= 10_000 else number(count)


def _tokens(found: SessionInfo) -> str:
    """Return the tokens of a context; next to a provider's report also the estimate."""
    tokens = counted(found.token_count, "token")
    if not found.token_source.startswith("provider:"):
        return tokens
    return f"{tokens} ({found.token_source}); estimate: {number(found.estimated_token_count)}"


@takes(
    WHICH,
    Argument("TITLE", "title", "The title; omit it to remove the title", OPTIONAL, default=""),
    JSON,
)
def rename(invocation: Invocation, *, name: str, title: str) -> Results:
    """Set the title of a session; its id and branch do not change.

    trace sessions rename 89c6 "Word counts"
    """
    with opened(invocation) as repo:
        with _progress(invocation) as tell:
            done = repo.sessions.rename(name, title, progress=tell)
        finish(invocation, repo)
    yield done, [] if done.changed else NOTHING


@takes(WHICH)
def delete(invocation: Invocation, *, name: str) -> None:
    """Delete a session and its subagents; `trace undo` restores them."""
    with opened(invocation) as repo:
        with _progress(invocation) as tell:
            refs = repo.sessions.delete(name, progress=tell)
        finish(invocation, repo)
        kind = "record" if refs[0].ref.startswith(RECORDS) else "branch"
        what = f"1 {kind}" if len(refs) == 1 else f"{len(refs):,} branches"
        invocation.line(f"deleted {what}")


_VERBS = (
    *("start", "add", "request", "preview", "compact", "clear", "close", "reopen", "summary"),
    *("compactions", "watch", "export", "review"),
)
GROUP = Group(
    HELP,
    {
        "show": show,
        "rename": rename,
        "delete": delete,
        **{name: f"session_verbs:{name}" for name in _VERBS},
        "state": "session_verbs:set_state",
    },
    bare=listed,
)


@contextmanager
def _progress(invocation: Invocation) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of a listing, and erase it at the end."""
    with Progress(invocation) as progress:
        yield lambda done, whole: progress.tell("sessions", done, whole)


def _date(found: SessionInfo) -> str:
    return moment(format_time(found.ended))[:16] if found.ended else "no time"
