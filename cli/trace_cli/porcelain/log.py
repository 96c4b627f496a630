"""`trace log`."""

from __future__ import annotations

from itertools import islice

from trace_cli import render
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.render.commits import Minutes, commit_lines, log_row
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, RIGHT, fit, marked, paint, table, terminal_width
from trace_store import checkpoints, context, errors, history, repo
from trace_store.refs.names import FORKS, TRASH
from trace_store.revision import all_commits, parse_moment, reach_of_several, resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from trace_cli.render.graph import Drawing
    from trace_cli.runtime import Invocation
    from trace_store.history.log import LogEntry
    from trace_store.history.token_history import TokenGrowth
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

DEFAULT_LIMIT = 1000
"""How many commits `trace log` holds in memory to align its columns; more are printed in further blocks."""
FIRST_CHANGES, MOST_CHANGES = 4, 256
"""How many commits are diffed per batch: few at first, so that output starts soon."""


FILTERS = (
    Option(
        "--text --grep",
        "text",
        "Only commits that contain this text, in any case",
        "TEXT",
        default="",
    ),
    Option("--kind", "kind", "Only commits with a message of this kind", "KIND", default=""),
    Option("--role", "role", "Only commits with a message of this role", "ROLE", default=""),
    Option("--tool", "tool", "Only commits with a call or result of this tool", "NAME", default=""),
    Option(
        "--path", "path", "Only commits with a message that names this file", "PATH", default=""
    ),
    Option("--priority", "priority", "Only commits that set this priority", "PRIORITY", default=""),
    Option("--label", "label", "Only commits that add this label", "LABEL", default=""),
    Option(
        "--meta",
        "meta",
        "Only commits with this metadata or setting",
        "NAME[=VALUE]",
        default="",
    ),
    Option("--operation", "operation", "Only commits with this operation", "OPERATION", default=""),
    Option("--author", "author", "Only commits whose author contains AUTHOR", "AUTHOR", default=""),
    Option("--since --after", "since", "Only commits from this time on", "TIME", default=""),
    Option("--until --before", "until", "Only commits up to this time", "TIME", default=""),
    Option(
        "--follow",
        "follow",
        "Only commits that add or change this message",
        "ADDRESS",
        default="",
    ),
)
"""The filter options; each parameter is a field of `history.LogFilter`."""


@takes(
    Argument(
        "REVISION",
        "revisions",
        "Where to start (default: HEAD); A..B and ^A exclude the history of A",
        ANY,
        completes="COMMIT",
    ),
    Option("--all", "everything", "Start from all refs and HEAD, without the trash"),
    Option("--trash", "trash", "Show refs in the trash; with --all also start from them"),
    Option(
        "-n --max-count",
        "limit",
        "Stop after N commits; -5 means -n 5",
        "N",
        number=True,
        bare=True,
    ),
    Option("--full", "full", "Show author, message and operations of each commit"),
    Option("--oneline", "oneline", "Show one line per commit (the default)"),
    Option("--graph", "graph", "Draw the commit graph"),
    Option("--reverse", "backwards", "List the oldest commits first"),
    Option("-p --patch", "patch", "Show the changes of each commit"),
    Option("--stat", "stat", "Show the change in tokens per message"),
    Option("--first-parent", "first_parent", "Follow first parents only"),
    Option("--tokens", "tokens", "Show the tokens that each commit added, and the total"),
    Option("--merges", "merges", "Only merge commits"),
    Option("--no-merges", "no_merges", "No merge commits"),
    *FILTERS,
    JSON,
)
def log(
    invocation: Invocation,
    *,
    revisions: list[str],
    everything: bool,
    trash: bool,
    limit: int | None,
    full: bool,
    oneline: bool,
    graph: bool,
    backwards: bool,
    patch: bool,
    stat: bool,
    first_parent: bool,
    tokens: bool,
    merges: bool,
    no_merges: bool,
    as_json: bool,
    text: str,
    kind: str,
    role: str,
    tool: str,
    path: str,
    priority: str,
    label: str,
    meta: str,
    operation: str,
    author: str,
    since: str,
    until: str,
    follow: str,
) -> None:
    """List commits, newest first.

    On a terminal, lines are cut to its width; otherwise they have up to 300 characters of the first message.

    Filters are ANDed; message filters must match the same message.

    With several revisions or --all, commits are sorted by time; with --graph, branch by branch. Deleted branches are in
    the trash, which only --trash shows.

        trace log --tool Bash --since yesterday
        trace log --path src/app.py --role assistant main
        trace log --follow HEAD~3.0
        trace log --graph --all
        trace log -p -3
    """
    filters = {
        "text": text,
        "kind": kind,
        "role": role,
        "tool": tool,
        "path": path,
        "priority": priority,
        "label": label,
        "meta": meta,
        "operation": operation,
        "author": author,
        "since": since,
        "until": until,
        "follow": follow,
        "merges": "yes" * merges or "no" * no_merges,
    }
    asked = any(filters.values())
    if merges and no_merges:
        raise usage_error("--merges and --no-merges exclude each other")
    if graph and as_json:
        raise usage_error(
            "--graph cannot be combined with --json", "--json prints the parents of each commit"
        )
    if graph and (backwards or patch or stat):
        raise usage_error("--graph cannot be combined with --patch, --stat or --reverse")
    if as_json and (patch or stat):
        raise usage_error(
            "-p and --stat cannot be combined with --json",
            "`trace diff --json A B` compares two commits",
        )
    with opened_store(invocation) as store:
        invocation.page()
        drawn = render.graph.Drawing(first_parent) if graph else None
        starts = _starts(store, revisions, everything=everything, trash=trash)
        entries = history.log.log(
            store,
            starts,
            limit=None if asked else limit,
            first_parent=first_parent,
            in_lines=graph,
        )
        if asked and starts:
            walked = entries if drawn is None else drawn.noted(entries)
            entries = islice(_filtered(invocation, store, walked, filters, starts), limit)
            if drawn is not None:
                entries = drawn.simplified(entries)
        if backwards:
            entries = reversed(list(entries))
        full = (full or patch or stat) and not oneline
        sought = "" if oneline else text
        show = _Block(invocation, store, full, tokens, as_json, drawn, sought)
        if patch or stat:
            show.changes = Changes(invocation, store, stat=not patch, oldest_first=backwards)
        entries, gap = _up_to_gap(invocation, entries)
        while block := list(islice(entries, DEFAULT_LIMIT)):
            names = names_by_commit(store, [e.oid for e in block], trash=trash or as_json)
            show(block, names)
        if gap:
            raise errors.BrokenHistoryError(f"the history is incomplete: {gap[0].message}")


def _up_to_gap(
    invocation: Invocation, entries: Iterable[LogEntry]
) -> tuple[Iterator[LogEntry], list[errors.ObjectNotFoundError]]:
    """Return the entries before the first missing commit, and a list to which its error is added.

    If nothing was shown before it, the error is raised instead.
    """
    gap: list[errors.ObjectNotFoundError] = []

    def read() -> Iterator[LogEntry]:
        shows = False
        try:
            for entry in entries:
                shows = True
                yield entry
        except errors.ObjectNotFoundError as error:
            if not (shows or invocation.wrote):
                raise
            gap.append(error)

    return read(), gap


def _starts(
    store: Store, revisions: list[str], *, everything: bool, trash: bool
) -> list[str | ObjectId]:
    """Return the starting revisions, HEAD by default, and the exclusions as `^A`."""
    if everything:
        return [*revisions, *all_commits(store, () if trash else (TRASH,))]
    is_named = any(not each.startswith("^") for each in revisions)
    return [*revisions] if is_named else [*revisions, "HEAD"]


def _filtered(
    invocation: Invocation,
    store: Store,
    entries: Iterable[LogEntry],
    filters: dict[str, str],
    starts: list[str | ObjectId],
) -> Iterator[LogEntry]:
    """Yield the entries that match the filter options."""
    given: dict[str, Any] = {name: text for name, text in filters.items() if text}
    for name in ("since", "until"):
        if name in given:
            moment_ = parse_moment(given[name], store)
            if moment_ is None:
                raise usage_error(f"not a time: {given[name][:80]!r}", "`2026-03-02`, `2 days ago`")
            given[name] = moment_
    if "merges" in given:
        given["merges"] = given["merges"] == "yes"
    contexts = context.compiler.ContextCompiler(store)
    head = store.refs.head().oid
    # The context of the first tip decides a message's priority: HEAD's, if it is a start.
    tips = sorted(reach_of_several(store, starts)[0], key=lambda tip: tip != head)
    if "follow" in given:
        given["follow"] = resolve_address(store, given["follow"])
    return history.log_filters.matching(
        contexts, entries, history.log_filters.LogFilter(**given), tips[0]
    )


class _Block:
    """Prints entries, one block at a time."""

    __slots__ = (
        *("_as_json", "_drawn", "_full", "_invocation", "_sought", "_store", "_tokens"),
        "changes",
    )

    def __init__(
        self,
        invocation: Invocation,
        store: Store,
        full: bool,
        tokens: bool,
        as_json: bool,
        drawn: Drawing | None,
        sought: str,
    ) -> None:
        self._invocation = invocation
        self._sought = sought
        self._store = store
        self._full = full
        self._tokens = tokens
        self._as_json = as_json
        self._drawn = drawn
        self.changes: Changes | None = None

    def __call__(self, entries: list[LogEntry], names: dict[bytes, list[str]]) -> None:
        invocation, store = self._invocation, self._store
        growth: dict[bytes, TokenGrowth] = {}
        if self._tokens:
            growth = history.token_history.token_growth(
                context.compiler.ContextCompiler(store), entries
            )
        if self._as_json:
            for entry in entries:
                write_record(
                    invocation, repo.records.log_entry(entry, names, growth.get(entry.oid))
                )
        elif self._drawn is not None:
            self._draw(self._drawn, entries, names, growth)
        elif self._full or self.changes is not None:
            changes = None if self.changes is None else self.changes.of(entries)
            for entry in entries:
                self._describe(entry, names, growth)
                for line in () if changes is None else next(changes):
                    invocation.line(line)
        else:
            self._list(entries, names, growth)

    def _describe(
        self,
        entry: LogEntry,
        names: dict[bytes, list[str]],
        growth: dict[bytes, TokenGrowth],
    ) -> None:
        if self._full:
            for line in commit_lines(self._invocation, entry, names, growth.get(entry.oid)):
                self._invocation.line(line)
        else:
            self._list([entry], names, growth)

    def _list(
        self,
        entries: list[LogEntry],
        names: dict[bytes, list[str]],
        growth: dict[bytes, TokenGrowth],
    ) -> None:
        # Programs get uncut lines, so that a search finds everything.
        cut = self._invocation.terminal
        minutes = Minutes()
        rows = [
            log_row(entry, minutes, names.get(entry.oid), growth.get(entry.oid), cut)
            for entry in entries
        ]
        align = LEFT + LEFT + RIGHT + (RIGHT + RIGHT if self._tokens else "") + LEFT
        style = ["yellow", "dim", "", *(["", ""] if self._tokens else []), ""]
        lines = table(self._invocation, (), rows, align, [style] * len(rows))
        contexts = context.compiler.ContextCompiler(self._store) if self._sought else None
        for line, entry in zip(lines, entries, strict=True):
            self._invocation.line(line)
            if contexts is not None and self._sought.casefold() not in line.casefold():
                found = history.log_filters.snippet_of(contexts, entry.oid, self._sought)
                if found is not None:
                    self._invocation.line(f"    {marked(self._invocation, found)}")

    def _draw(
        self,
        drawn: Drawing,
        entries: list[LogEntry],
        names: dict[bytes, list[str]],
        growth: dict[bytes, TokenGrowth],
    ) -> None:
        invocation, minutes = self._invocation, Minutes()
        width = terminal_width(invocation)
        for entry in entries:
            grown = growth.get(entry.oid)
            for row in drawn.graph.commit(entry.oid, drawn.parents(entry)):
                if "*" not in row:
                    invocation.line(row)
                elif self._full:
                    lines = commit_lines(invocation, entry, names, grown)
                    invocation.line(f"{row} {lines[0]}")
                    for line in lines[1:]:
                        invocation.line(f"{row.replace('*', '|')} {line}".rstrip())
                else:
                    cells = log_row(entry, minutes, names.get(entry.oid), grown, bool(width))
                    line = "  ".join(cells)
                    line = fit(line, width - len(row) - 1) if width else line
                    oid, when = cells[0], cells[1]
                    if line.startswith(f"{oid}  {when}"):
                        behind = line[len(oid) + 2 + len(when) :]
                        line = f"{paint(invocation, oid, 'yellow')}  {paint(invocation, when, 'dim')}{behind}"
                    invocation.line(f"{paint(invocation, row, 'dim')} {line}")


class Changes:
    """Changes of commits to the context of their first parent."""

    def __init__(
        self, invocation: Invocation, store: Store, *, stat: bool, oldest_first: bool
    ) -> None:
        self._invocation = invocation
        self._contexts = context.compiler.ContextCompiler(store)
        self._stat = stat
        self._oldest_first = oldest_first
        self._count = FIRST_CHANGES

    def of(self, entries: Sequence[LogEntry]) -> Iterator[list[str]]:
        """Yield the lines about the changes of each commit, with an empty line at the end.

        Each context builds on that of its parent, so a batch is computed from its oldest commit on.
        """
        start = 0
        while start < len(entries):
            some = entries[start : start + self._count]
            found = {
                entry.oid: self._told(entry)
                for entry in (some if self._oldest_first else reversed(some))
            }
            for entry in some:
                told = found[entry.oid]
                if isinstance(told, errors.TraceError):
                    raise told
                yield told
            start += self._count
            self._count = min(4 * self._count, MOST_CHANGES)

    def _told(self, entry: LogEntry) -> list[str] | errors.TraceError:
        """Return the lines about one commit, or the error if it cannot be compared."""
        before = entry.parents[0] if entry.parents else None
        try:
            found = history.diff.diff(self._contexts, before, entry.oid)
            return [*render.changes.diff_lines(self._invocation, found, stat=self._stat), ""]
        except errors.TraceError as error:
            return error


def names_by_commit(
    store: Store, commits: Iterable[ObjectId], *, trash: bool
) -> dict[bytes, list[str]]:
    """Return the full names of the refs at each commit; HEAD and its branch come first.

    This does not list all refs. With `trash`, refs in the trash are included.
    """
    head, found = store.refs.head(), store.refs.names_of(commits)
    names: dict[bytes, list[str]] = {
        oid: [name for name in named if trash or not name.startswith(TRASH)]
        for oid, named in found.items()
    }
    if head.oid is not None and head.oid in names:
        others = [name for name in names.get(head.oid, ()) if name != head.ref]
        names[head.oid] = ["HEAD", *([] if head.ref is None else [head.ref]), *others]
    if head.ref is not None and store.refs.read(FORKS + head.ref.removeprefix("refs/heads/")):
        fork = checkpoints.forks.fork_of(store, head.ref)
        if fork is not None:
            names.setdefault(fork.point, []).append(fork.checkpoint)
    return names
