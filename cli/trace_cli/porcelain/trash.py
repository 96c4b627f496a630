"""`trace trash`: what was removed or deleted, and how to get it back or let it go."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    QUIET,
    check_nothing_waits,
    finish,
    opened_store,
)
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import address_text, short_address, write_record
from trace_cli.render.tables import LEFT, RIGHT, counted, date, number, size, table
from trace_cli.subcommands import Group
from trace_store import errors
from trace_store.context.compiler import ContextCompiler
from trace_store.frozen import value
from trace_store.history import retention, trash_changes, trash_entries
from trace_store.history.trash_entries import MESSAGE, HiddenMessage, TrashedRef, TrashFilter
from trace_store.ident import known_time, parse_duration
from trace_store.objects.message import KINDS
from trace_store.refs.names import BRANCHES
from trace_store.revision import resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.objects.address import Address
    from trace_store.store.handle import Store

HELP = """List, restore or empty what was removed or deleted.

The trash holds the messages that a branch hides, and the branches, tags and checkpoints that were deleted or moved. The
setting trash_retention says how long: by hand (the default), or such as "72 hours", "30 days", "5 sessions"."""
BRANCH = Option(
    "-b --branch",
    "branch",
    "The branch whose messages are meant; HEAD's if not given",
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
        "Only messages with so many tokens",
        "TOKENS",
        number=True,
        default=0,
    ),
    Option(
        "--older",
        "older",
        "Only what has been there for so long, such as 12h or 30d",
        "AGE",
        default="",
    ),
    Option("--tool", "tool", "Only messages of this tool", "TOOL", default=""),
    BRANCH,
    Option("--expired", "expired", "Also what trash_retention no longer keeps"),
)
DRY_RUN = Option("-n --dry-run", "dry_run", "Say what would be done, and change nothing")


@value
class _Found:
    """What a command is about: messages of a branch, and refs."""

    messages: list[HiddenMessage]
    refs: list[TrashedRef]


@value
class _Filters:
    """The options of FILTERS as they were given, but for the branch."""

    kinds: list[str]
    min_size: int
    older: str
    tool: str
    expired: bool
    text: str = ""

    def read(self, store: Store) -> TrashFilter:
        """Return the conditions that the options stand for.

        Raises:
            InvalidInputError: a kind or an age is not known.
        """
        known = (MESSAGE, *trash_entries.kinds_of_refs(), *KINDS)
        for kind in self.kinds:
            if kind not in known:
                raise usage_error(f"unknown kind {kind[:40]!r}", f"kinds: {', '.join(known)}")
        age = parse_duration(self.older) if self.older else None
        if self.older and age is None:
            raise usage_error(
                f"not an age: {self.older[:40]!r}", "for example: --older 12h, --older 30d"
            )
        rules = retention.read_rules(store)
        return TrashFilter(
            tuple(self.kinds),
            self.min_size,
            None if age is None else store.clock.now() - age,
            0 if self.expired else retention.expires_before(store, rules),
            self.tool,
            self.text,
        )


def _find(contexts: ContextCompiler, branch: str, where: TrashFilter) -> _Found:
    messages: list[HiddenMessage] = []
    refs = trash_entries.list_refs(contexts.store, branch or None, where)
    try:
        messages = trash_entries.list_messages(contexts, branch or "HEAD", where)
    except errors.RevisionNotFoundError:
        if not refs:  # a deleted branch has no context, and may have old tips
            raise
    return _Found(messages, refs)


def _listing(invocation: Invocation, filters: _Filters, branch: str, *, as_json: bool) -> None:
    with opened_store(invocation) as store:
        found = _find(ContextCompiler(store), branch, filters.read(store))
    if as_json:
        for message in found.messages:
            write_record(invocation, _message_record(message))
        for ref in found.refs:
            write_record(invocation, _ref_record(ref))
        return
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
        for line in table(invocation, header, rows, LEFT * 2 + RIGHT + LEFT * 3, styles):
            invocation.line(line)
    invocation.line(_size_line(found))


def _size_line(found: _Found) -> str:
    if not (found.messages or found.refs):
        return "nothing in the trash"
    tokens = number(trash_entries.tokens_of(found.messages))
    said = [f"{counted(len(found.messages), 'message')}, {tokens} tokens recoverable"]
    for kind in trash_entries.kinds_of_refs():
        count = sum(ref.kind == kind for ref in found.refs)
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
    as_json: bool,
) -> None:
    """List what is in the trash.

    Messages are in the order of the context, then refs, the last to come first. ENTRY is what `trace trash restore`
    takes. A ref marked `moved` is an old tip of a branch or tag that exists. With --branch only that branch's old tips
    are listed.

        trace trash
        trace trash --kind tool_io --min-size 500
        trace trash --older 30d --json
    """
    _listing(invocation, _Filters(kinds, min_size, older, tool, expired), branch, as_json=as_json)


@takes(Argument("TEXT", "text", "What to look for, in any case"), *FILTERS, JSON)
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
    as_json: bool,
) -> None:
    """List what contains a text.

    A ref is listed if its name, its last commit or a message that only it has contains the text.
    """
    if not text:
        raise usage_error("no text to look for")
    _listing(
        invocation, _Filters(kinds, min_size, older, tool, expired, text), branch, as_json=as_json
    )


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
    as_json: bool,
    quiet: bool,
) -> None:
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
    with opened_store(invocation, quiet=quiet) as store:
        author = invocation.environment.author
        contexts = ContextCompiler(store)
        if everything:
            found = _find(contexts, branch, TrashFilter())
            addresses = [each.address for each in found.messages]
        else:
            named = [(each, trash_entries.find_ref(store, each)) for each in entries]
            addresses = [_address(store, text) for text, ref in named if ref is None]
            found = _Found([], list(dict.fromkeys(ref for _, ref in named if ref is not None)))
        if name and (addresses or len(found.refs) != 1):
            raise usage_error("--as is for a single branch or tag")
        if addresses:
            check_nothing_waits(store)
            trash_changes.check_hidden(contexts, addresses, branch=branch or "HEAD")
        refs = (
            trash_changes.restore_refs(store, found.refs, author=author, name=name, skip=everything)
            if found.refs
            else []
        )
        shown = (
            trash_changes.restore_messages(
                contexts, addresses, author=author, branch=branch or "HEAD"
            )
            if addresses
            else None
        )
        finish(invocation, store)
    if as_json:
        write_record(invocation, _restored_record(shown, refs))
    elif not quiet:
        for each in shown.messages if shown else ():
            invocation.line(_place(each))
        for restored in refs:
            _tell_ref(invocation, restored)
        if not (shown or refs):
            invocation.line("nothing to restore")


def _restored_record(
    shown: trash_changes.RestoredMessages | None, refs: Sequence[trash_changes.RestoredRef]
) -> dict[str, Any]:
    return {
        "commit": str(shown.commit.oid) if shown else None,
        "messages": [
            {
                "address": address_text(each.address),
                "after": address_text(each.after) if each.after else None,
                "exact": each.is_exact,
            }
            for each in (shown.messages if shown else ())
        ],
        "refs": [
            {"entry": each.entry.ref, "ref": each.ref or None, "object": str(each.entry.oid)}
            for each in refs
        ],
    }


def _place(each: trash_changes.RestoredMessage) -> str:
    where = "at the start" if each.after is None else f"after {short_address(each.after)}"
    near = "" if each.is_exact else ", the nearest message that is shown"
    return f"restored {short_address(each.address)} at its place, {where}{near}"


def _tell_ref(invocation: Invocation, each: trash_changes.RestoredRef) -> None:
    entry = each.entry
    if each.ref:
        name = safe(each.ref.split("/", 2)[2])
        kind = "branch" if each.ref.startswith(BRANCHES) else entry.kind
        invocation.line(f"restored {kind} {name} at {entry.oid.short()}")
    else:
        why = "its name is taken" if entry.original else "it had no name"
        invocation.note(f"note: {safe(_short(entry))} stays: {why}; --as NAME restores it")


def _address(store: Store, text: str) -> Address:
    """Return the address of a message; a name that is no address is not in the trash."""
    try:
        return resolve_address(store, text)
    except errors.InvalidInputError:
        raise errors.RefNotFoundError(
            f"nothing in the trash is named {text[:120]!r}", ref=text, hint="`trace trash` lists it"
        ) from None


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
    as_json: bool,
    quiet: bool,
) -> None:
    """Empty the trash, or what the filters select.

    Messages only leave the list: they are part of the history, and `trace restore` still shows them; `trace purge` is
    what removes content. Refs are deleted: what nothing else reaches leaves the disk with `trace gc` and `trace prune`,
    once it is old enough and no reflog names it. `trace undo` reverts it until then.
    """
    with opened_store(invocation, quiet=quiet) as store:
        contexts = ContextCompiler(store)
        found = _find(
            contexts, branch, _Filters(kinds, min_size, older, tool, expired=True).read(store)
        )
        if found.messages and not dry_run:
            check_nothing_waits(store)
        report = trash_changes.empty(
            contexts,
            [each.address for each in found.messages],
            found.refs,
            author=invocation.environment.author,
            branch=branch or "HEAD",
            dry_run=dry_run,
        )
        if not dry_run:
            finish(invocation, store)
    if as_json:
        write_record(
            invocation,
            {
                "dry_run": dry_run,
                "messages": report.messages,
                "refs": report.refs,
                "shared": report.shared,
                "objects": report.freed.objects,
                "bytes": report.freed.disk,
                "commit": str(report.commit.oid) if report.commit else None,
            },
        )
    elif not quiet:
        _tell_emptied(invocation, report, dry_run)


def _tell_emptied(invocation: Invocation, report: trash_changes.EmptyReport, dry_run: bool) -> None:
    would = "would leave" if dry_run else "left"
    if report.messages:
        what = counted(report.messages, "message")
        invocation.line(f"{what} {would} the list; the history keeps the content")
    if report.refs:
        what = counted(report.refs, "ref")
        disk = counted(report.freed.objects, "object")
        invocation.line(f"{what} {would} the trash: {disk}, {size(report.freed.disk)} on the disk")
    if report.shared:
        what = counted(report.shared, "ref")
        invocation.line(f"{what} of these free nothing: other refs reach the same")
    if report.freed.objects and not dry_run:
        invocation.note("note: `trace gc` and `trace prune` remove them once they are old enough")
    if not (report.messages or report.refs):
        invocation.line("nothing to empty")


def _short(ref: TrashedRef) -> str:
    return ref.ref.removeprefix("refs/trash/")


def _message_record(each: HiddenMessage) -> dict[str, Any]:
    return {
        "entry": MESSAGE,
        "address": address_text(each.address),
        "branch": each.branch,
        "role": each.role,
        "kind": each.kind,
        "tools": list(each.tools),
        "ghost": each.ghost,
        "time": known_time(each.time),
        "token_count": each.token_count,
        "text": each.text,
    }


def _ref_record(each: TrashedRef) -> dict[str, Any]:
    return {
        "entry": each.kind,
        "ref": each.ref,
        "original": each.original or None,
        "object": str(each.oid),
        "exists": each.exists,
        "time": known_time(each.time),
        "text": each.text,
    }


GROUP = Group(
    HELP, {"list": list_, "search": search, "restore": restore, "empty": empty}, bare=list_
)
