"""`trace status` and `trace log`: where things stand, and how they came to be."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.porcelain.opening import JSON, opened_store
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import address_text, write_record
from trace_cli.render.tables import (
    LEFT,
    RIGHT,
    counted,
    fit,
    moment,
    number,
    paint,
    share,
    size,
    table,
    weight,
)
from trace_store import context, history
from trace_store.history.status import status as standing
from trace_store.ident import format_time
from trace_store.objects.commit import read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.history.entries import LogEntry
    from trace_store.history.growth import TokenGrowth
    from trace_store.history.status import Status
    from trace_store.oid import ObjectId
    from trace_store.store import Store

SUMMARY_WIDTH = 300
MINUTE_MS = 60_000
NAME_WIDTH = 36
"""Columns of a ref's name in a one-line log on a terminal, so that the summary keeps its room."""
DEFAULT_LIMIT = 1000
"""How many commits `trace log` holds in memory to align its columns; more are printed in further blocks."""


@takes(Option("--model", "model", "Count tokens as for this model", "MODEL", default=""), JSON)
def status(invocation: Invocation, *, model: str, as_json: bool) -> None:
    """Show where things stand: branch, size of the context, budget, and what needs attention."""
    with opened_store(invocation) as store:
        found = standing(context.ContextCompiler(store), model=model)
        if as_json:
            write_record(invocation, _status_record(found))
            return
        for line in _status_lines(invocation, store, found):
            invocation.line(line)
        count = found.branch_count
        if found.oid is None and count == 1:
            [(name, _)] = store.refs.iterate("refs/heads/")
            invocation.line(f"1 branch; `trace symbolic-ref HEAD {safe(name)}` goes to it")
        elif count > (found.oid is not None):
            invocation.line(f"{number(count)} branches; `trace for-each-ref` lists them")


@takes(
    Argument(
        "REVISION",
        "revision",
        "Where to start, or a range A..B",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option("-n --max-count", "limit", "At most so many commits", "N", number=True),
    Option("--full", "full", "Show author, message and operations of each commit"),
    Option("--tokens", "tokens", "Show the tokens each commit added, and the total"),
    JSON,
)
def log(
    invocation: Invocation,
    *,
    revision: str,
    limit: int | None,
    full: bool,
    tokens: bool,
    as_json: bool,
) -> None:
    """List commits, newest first, one on a line.

    On a terminal lines are cut to its width; a program or a file gets up to 300 characters of the first message.
    """
    with opened_store(invocation) as store:
        few = limit is not None and limit < DEFAULT_LIMIT
        names = {} if few else names_by_commit(store)
        block: list[LogEntry] = []
        for entry in history.log(store, revision, limit=limit):
            block.append(entry)
            if len(block) == DEFAULT_LIMIT:
                _show_block(invocation, store, block, names, full, tokens, as_json)
                block = []
        if few:
            names = names_by_commit(store, [entry.oid for entry in block])
        _show_block(invocation, store, block, names, full, tokens, as_json)


def _show_block(
    invocation: Invocation,
    store: Store,
    entries: list[LogEntry],
    names: dict[bytes, list[str]],
    full: bool,
    tokens: bool,
    as_json: bool,
) -> None:
    growth = history.token_growth(context.ContextCompiler(store), entries) if tokens else {}
    if as_json:
        for entry in entries:
            write_record(invocation, log_record(store, entry, names, growth.get(entry.oid)))
    elif full:
        for entry in entries:
            for line in commit_lines(invocation, store, entry, names, growth.get(entry.oid)):
                invocation.line(line)
    else:
        # What a program reads is whole, so that a search finds it.
        cut = invocation.terminal
        minutes = _Minutes()
        rows = [
            _log_row(entry, minutes, names.get(entry.oid), growth.get(entry.oid), cut)
            for entry in entries
        ]
        align = LEFT + LEFT + RIGHT + (RIGHT + RIGHT if tokens else "") + LEFT
        style = ["yellow", "dim", "", *(["", ""] if tokens else []), ""]
        for line in table(invocation, (), rows, align, [style] * len(rows)):
            invocation.line(line)


def names_by_commit(
    store: Store, commits: Iterable[ObjectId] | None = None
) -> dict[bytes, list[str]]:
    """Return the full names of the refs that end in each commit; HEAD, and then its branch, come first.

    With `commits` those of these commits alone, for which no list of all refs is made.
    """
    head = store.refs.head()
    names: dict[bytes, list[str]] = {}
    if commits is None:
        for name, oid in store.refs.iterate("refs/"):
            names.setdefault(oid, []).append(name)
    else:
        names.update(store.refs.naming(commits).items())
    if head.oid is not None and (commits is None or head.oid in names):
        others = [name for name in names.get(head.oid, ()) if name != head.ref]
        names[head.oid] = ["HEAD", *([] if head.ref is None else [head.ref]), *others]
    return names


def _decoration(names: list[str], width: int = 0) -> str:
    """Return refs as people read them, ` (HEAD -> main, tags/v1)`, or nothing; `width` columns each (0: any)."""
    if not names:
        return ""
    short = [safe(name.removeprefix("refs/").removeprefix("heads/")) for name in names]
    short = [fit(name, width) for name in short] if width else short
    if names[0] == "HEAD" and len(names) > 1 and names[1].startswith("refs/heads/"):
        short[:2] = [f"HEAD -> {short[1]}"]
    return f" ({', '.join(short)})"


def _log_row(
    entry: LogEntry,
    minutes: _Minutes,
    names: list[str] | None,
    growth: TokenGrowth | None,
    cut: bool,
) -> tuple[str, ...]:
    text = one_line(entry.summary(SUMMARY_WIDTH), SUMMARY_WIDTH)
    if names:
        text = f"{_decoration(names, NAME_WIDTH if cut else 0).lstrip()} {text}"
    counts = () if growth is None else (f"{growth.added:+,}", number(growth.total))
    time = minutes[entry.time // MINUTE_MS] or format_time(entry.time)[:16]
    return entry.oid.short(), time, f"+{entry.message_count}", *counts, text


class _Minutes(dict[int, str]):
    """Minutes since the epoch as people read them, or "" beyond any calendar; many commits are made in one."""

    __slots__ = ()

    def __missing__(self, minute: int) -> str:
        told = moment(format_time(minute * MINUTE_MS))[:16]
        told = self[minute] = "" if told.startswith("@") else told
        return told


def commit_lines(
    invocation: Invocation,
    store: Store,
    entry: LogEntry,
    names: dict[bytes, list[str]],
    growth: TokenGrowth | None,
) -> list[str]:
    """Return the lines that describe a commit without its messages."""
    commit = entry.commit
    decoration = _decoration(names.get(entry.oid, []))
    lines = [paint(invocation, f"commit {entry.oid}", "yellow") + decoration]
    if len(commit.parents) > 1:
        lines.append("Merge:    " + " ".join(parent.short() for parent in commit.parents))
    lines.append(f"Author:   {one_line(commit.author, 200)}")
    lines.append(f"Date:     {format_time(commit.time)}")
    if growth is not None:
        lines.append(f"Tokens:   {growth.added:+,}, in all {growth.total:,} ({growth.source})")
    lines.append("")
    if commit.message:
        lines += [f"    {line}" for line in safe(commit.message).split("\n")] + [""]
    if commit.operations:
        said = ", ".join(_operation(each.name, each.fields) for each in commit.operations)
        lines.append(f"    [{said}]")
    lines.append(f"    {one_line(entry.summary(), SUMMARY_WIDTH)}")
    lines.append("")
    return lines


def _operation(name: str, fields: dict[str, Any]) -> str:
    """Return an operation's name and how many messages it is about."""
    counts = [len(fields[key]) for key in ("targets", "messages", "schemas") if key in fields]
    return f"{one_line(name, 40)} {' -> '.join(map(str, counts))}".strip()


def log_record(
    store: Store, entry: LogEntry, names: dict[bytes, list[str]], growth: TokenGrowth | None
) -> dict[str, Any]:
    """Return a commit as the JSON of `trace log`."""
    record: dict[str, Any] = {
        "commit": str(entry.oid),
        "parents": [str(parent) for parent in entry.parents],
        "author": entry.author,
        "time": format_time(entry.time),
        "message": entry.message,
        "summary": entry.summary(),
        "operations": list(entry.operations),
        "message_count": entry.message_count,
        "addresses": [address_text((entry.oid, n)) for n in range(entry.message_count)],
        "refs": names.get(entry.oid, []),
    }
    if growth is not None:
        record["tokens_added"] = growth.added
        record["token_count"] = growth.total
        record["token_source"] = growth.source
    return record


def _status_record(found: Status) -> dict[str, Any]:
    return {
        "branch": found.branch,
        "ref": found.ref,
        "detached": found.ref is None,
        "commit": str(found.oid) if found.oid else None,
        "message_count": found.message_count,
        "token_count": found.token_count,
        "token_source": found.token_source,
        "text_token_count": found.text_token_count,
        "text_token_source": found.text_token_source,
        "budget": found.budget,
        "share": found.share,
        "diverged": {name: [str(tip) for tip in tips] for name, tips in found.diverged.items()},
        "incomplete": list(found.incomplete),
        "unsealed_transactions": found.unsealed_transactions,
        "unsealed_bytes": found.unsealed_bytes,
        "branch_count": found.branch_count,
        "returned": list(map(str, found.returned)),
    }


def _status_lines(invocation: Invocation, store: Store, found: Status) -> list[str]:
    if found.branch is not None:
        head = f"on branch {paint(invocation, safe(found.branch), 'green')}"
    else:
        head = paint(invocation, "HEAD detached", "red")
    if found.oid is None:
        return [f"{head}, which has no commit yet", *_attention(invocation, found)]
    commit = read_commit(found.oid, store.objects.read)
    when = moment(format_time(commit.time))
    latest = one_line(history.summary(store, commit), 72)
    lines = [
        f"{head} at {paint(invocation, found.oid.short(), 'yellow')}, {when} UTC",
        f"    {latest}",
        f"context: {counted(found.message_count, 'message')}, {_tokens(found)}",
    ]
    if found.budget is not None:
        part = share(found.token_count or 0, found.budget)
        over = (found.token_count or 0) > found.budget
        text = f"budget:  {part} of {counted(found.budget, 'token')}"
        lines.append(paint(invocation, text, "red") if over else text)
    return lines + _attention(invocation, found)


def _tokens(found: Status) -> str:
    if found.token_count is None:
        return "tokens not counted"
    return weight(found)


def _attention(invocation: Invocation, found: Status) -> list[str]:
    """Return lines about what a person may want to do something about."""
    lines: list[str] = []
    for name, tips in found.diverged.items():
        ends = ", ".join(tip.short() for tip in tips)
        lines.append(
            paint(invocation, f"diverged: {safe(name)} has {len(tips)} tips: {ends}", "red")
        )
    lines += [
        paint(invocation, f"incomplete: the commit of {safe(name)} is not here", "red")
        for name in found.incomplete
    ]
    if found.returned:
        what = f"{counted(len(found.returned), 'purged object')}: the bytes are here again"
        lines.append(paint(invocation, f"{what}; `trace purge --again` removes them", "red"))
    if found.unsealed_transactions:
        what = f"{counted(found.unsealed_transactions, 'change')}, {size(found.unsealed_bytes)}"
        lines.append(f"unsealed: {what}, which git does not see yet; `trace seal` makes it visible")
    return lines
