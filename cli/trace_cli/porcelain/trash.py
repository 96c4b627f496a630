"""`trace trash`: what was removed or deleted, and how to get it back or let it go."""

from __future__ import annotations

from itertools import chain

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import LEFT, RIGHT, counted, date, number, size, table
from trace_cli.subcommands import Group
from trace_store.contracts.ref_names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.history.trash import EmptyReport, RestoredMessage, RestoredRef, TrashRestored
    from trace_store.history.trash_entries import TrashedRef, TrashListing

HELP = """List, restore or empty what was removed or deleted.

The trash holds the messages that a branch hides, and the branches, tags and checkpoints that were deleted or moved. The
setting trash_retention says how long: by hand (the default), or such as "72 hours", "30 days", "5 sessions"."""
BRANCH = Option(
    "-b --branch",
    "branch",
    "Messages of this branch (default: HEAD's)",
    "BRANCH",
    default="",
    completes="BRANCH",
)
FILTERS = (
    Option(
        "--kind",
        "kinds",
        "Only message, branch, tag, checkpoint, or a kind of message such as tool_io",
        "KIND",
        many=True,
    ),
    Option(
        "--min-size",
        "min_size",
        "Only messages with at least this many tokens",
        "TOKENS",
        number=True,
        default=0,
    ),
    Option(
        "--older",
        "older",
        "Only what is older than this, such as 12h or 30d",
        "AGE",
        default="",
    ),
    Option("--tool", "tool", "Only messages of this tool", "TOOL", default=""),
    BRANCH,
    Option("--expired", "expired", "Also what is older than trash_retention"),
)
DRY_RUN = Option("-n --dry-run", "dry_run", "Say what would be done, and change nothing")


def _filters(kinds: list[str], min_size: int, older: str, tool: str, branch: str) -> dict[str, Any]:
    """Return the arguments of `repo.trash.list` for the options of FILTERS."""
    return {"kinds": kinds, "min_tokens": min_size, "older": older, "tool": tool, "ref": branch}


def _listing(invocation: Invocation, filters: Mapping[str, Any], *, expired: bool) -> Results:
    with opened(invocation) as repo:
        found = repo.trash.list(expired=expired, **filters)
    messages = (trace_store.record(each, entry="message") for each in found.messages)
    yield chain(messages, found.refs), _lines(invocation, found, is_filtered=any(filters.values()))


def _lines(invocation: Invocation, found: TrashListing, *, is_filtered: bool) -> Iterator[str]:
    rows, styles = [], []
    for message in found.messages:
        rows.append(
            (
                short_address(message.address),
                message.kind,
                number(message.token_count),
                date(message.time),
                "ghost" if message.ghost else "",
                one_line(message.text, 100),
            )
        )
        styles.append(("yellow", "", "", "dim", "cyan", ""))
    for ref in found.refs:
        mark = "moved" if ref.exists else ""
        rows.append(
            (safe(_short(ref)), ref.kind, "", date(ref.time), mark, one_line(ref.text, 100))
        )
        styles.append(("yellow", "", "", "dim", "cyan", ""))
    if rows:
        header = ("entry", "kind", "tokens", "since", "marks", "text")
        yield from table(invocation, header, rows, LEFT * 2 + RIGHT + LEFT * 3, styles)
    yield _size_line(found, is_filtered=is_filtered)


def _size_line(found: TrashListing, *, is_filtered: bool) -> str:
    if not (found.messages or found.refs):
        return "nothing in the trash" + (" matches" if is_filtered else "")
    tokens = number(found.token_count)
    said = [f"{counted(len(found.messages), 'message')}, {tokens} tokens recoverable"]
    for kind, count in found.ref_counts.items():
        plural = "branches" if kind == "branch" and count != 1 else ""
        said += [f"{count} {plural}" if plural else counted(count, kind)] if count else []
    return "; ".join([said[0], ", ".join(said[1:])] if said[1:] else said)


@takes(*FILTERS, JSON)
def list_(
    invocation: Invocation,
    *,
    kinds: list[str],
    min_size: int,
    older: str,
    tool: str,
    branch: str,
    expired: bool,
) -> Results:
    """List what is in the trash.

    Messages are in the order of the context, then refs, the last to come first. ENTRY is what `trace trash restore`
    takes. A ref marked `moved` is an old tip of a branch or tag that exists. With --branch only that branch's old tips
    are listed.

        trace trash
        trace trash --kind tool_io --min-size 500
        trace trash --older 30d --json
    """
    filters = _filters(kinds, min_size, older, tool, branch)
    return _listing(invocation, filters, expired=expired)


@takes(Argument("TEXT", "text", "What to look for (case is ignored)"), *FILTERS, JSON)
def search(
    invocation: Invocation,
    *,
    text: str,
    kinds: list[str],
    min_size: int,
    older: str,
    tool: str,
    branch: str,
    expired: bool,
) -> Results:
    """List what contains a text.

    A ref is listed if its name, its last commit or a message that only it has contains the text.
    """
    if not text:
        raise usage_error("no text to look for")
    filters = {**_filters(kinds, min_size, older, tool, branch), "text": text}
    return _listing(invocation, filters, expired=expired)


@takes(
    Argument(
        "ENTRY", "entries", "Addresses of messages, and names of branches, tags or trash refs", ANY
    ),
    Option(
        "--all",
        "everything",
        "Restore all messages of the branch, and all refs whose names are free",
    ),
    Option("--as", "name", "Restore a branch or tag under this name", "NAME", default=""),
    BRANCH,
    JSON,
    QUIET,
)
def restore(
    invocation: Invocation,
    *,
    entries: list[str],
    everything: bool,
    name: str,
    branch: str,
) -> Results:
    """Restore messages, branches and tags.

    Messages are shown at their places again, all in one commit; a call and its results come back together. When the
    message before is still hidden, the nearest one that is shown is named. `trace undo` reverts it.

        trace trash restore 8a3fe6224388.3   show a message again
        trace trash restore idea             bring a deleted branch or tag back
        trace trash restore idea --as other
        trace trash restore --all
    """
    if everything == bool(entries):
        raise usage_error("name what to restore, or give --all", "`trace trash` lists it")
    if name and len(entries) != 1:
        raise usage_error("--as is for a single branch or tag")
    with opened(invocation) as repo:
        done = repo.trash.restore(*entries, everything=everything, name=name, ref=branch)
        finish(invocation, repo)
    yield done, _restored_lines(invocation, done)


def _restored_lines(invocation: Invocation, done: TrashRestored) -> Iterator[str]:
    yield from map(_place, done.restored)
    for restored in done.refs:
        yield from _ref_lines(invocation, restored)
    if not (done.messages or done.refs):
        yield "nothing to restore"


def _place(each: RestoredMessage) -> str:
    where = "at the start" if each.after is None else f"after {short_address(each.after)}"
    near = "" if each.is_exact else ", the nearest message that is shown"
    return f"restored {short_address(each.address)} at its place, {where}{near}"


def _ref_lines(invocation: Invocation, each: RestoredRef) -> Iterator[str]:
    entry = each.entry
    if each.ref:
        name = safe(each.ref.split("/", 2)[2])
        kind = "branch" if each.ref.startswith(BRANCHES) else entry.kind
        yield f"restored {kind} {name} at {entry.oid.short()}"
    else:
        why = "its name is taken" if entry.original else "it had no name"
        invocation.note(f"note: {safe(_short(entry))} stays: {why}; --as NAME restores it")


@takes(*FILTERS[:-1], DRY_RUN, JSON, QUIET)
def empty(
    invocation: Invocation,
    *,
    kinds: list[str],
    min_size: int,
    older: str,
    tool: str,
    branch: str,
    dry_run: bool,
) -> Results:
    """Empty the trash, or what the filters select.

    Messages only leave the list: they are part of the history, and `trace restore` still shows them; `trace purge` is
    what removes content. Refs are deleted: what nothing else reaches leaves the disk with `trace gc` and `trace prune`,
    once it is old enough and no reflog names it. `trace undo` reverts it until then.
    """
    with opened(invocation) as repo:
        filters = _filters(kinds, min_size, older, tool, branch)
        report = repo.trash.empty(dry_run=dry_run, **filters)
        if not dry_run:
            finish(invocation, repo)
    lines = _emptied_lines(invocation, report, dry_run)
    yield lambda: trace_store.record(report, dry_run=dry_run), lines


def _emptied_lines(invocation: Invocation, report: EmptyReport, dry_run: bool) -> Iterator[str]:
    would = "would leave" if dry_run else "left"
    if report.messages:
        what = counted(report.messages, "message")
        yield f"{what} {would} the list; the history keeps the content"
    if report.refs:
        what = counted(report.refs, "ref")
        disk = counted(report.freed.objects, "object")
        yield f"{what} {would} the trash: {disk}, {size(report.freed.disk)} on the disk"
    if report.shared:
        what = counted(report.shared, "ref")
        yield f"{what} of these free nothing: other refs reach the same"
    if report.freed.objects and not dry_run:
        invocation.note("note: `trace gc` and `trace prune` remove them once they are old enough")
    if not (report.messages or report.refs):
        yield "nothing to empty"


def _short(ref: TrashedRef) -> str:
    return ref.ref.removeprefix("refs/trash/")


GROUP = Group(
    HELP, {"list": list_, "search": search, "restore": restore, "empty": empty}, bare=list_
)
