"""`trace log`."""

from __future__ import annotations

from itertools import islice

import trace_store
from trace_cli import render
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened, tell_unmatched
from trace_cli.render.commits import Minutes, commit_lines, log_row
from trace_cli.render.tables import LEFT, RIGHT, fit, highlight_hit, paint, table, terminal_width
from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from trace_cli.render.graph import Drawing
    from trace_cli.runtime import Invocation, Results
    from trace_store.history.log import LogEntry
    from trace_store.repo.repository import Repo
    from trace_store.store.revision import Revision

DEFAULT_LIMIT = 1000
"""How many commits `trace log` holds in memory to align its columns; more are printed in further blocks."""
FIRST_CHANGES, MOST_CHANGES = 4, 256
"""How many commits are diffed per batch: few at first, so that output starts soon."""


FILTERS = (
    Option(
        "--text --grep",
        "text",
        "Only commits that contain this text (case is ignored)",
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
) -> Results:
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
    filters: dict[str, Any] = {
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
        "merges": True if merges else False if no_merges else None,
    }
    asked = any(each not in ("", None) for each in filters.values())
    if merges and no_merges:
        raise usage_error("--merges and --no-merges exclude each other")
    if graph and invocation.as_json:
        raise usage_error(
            "--graph cannot be combined with --json", "--json prints the parents of each commit"
        )
    if graph and (backwards or patch or stat):
        raise usage_error("--graph cannot be combined with --patch, --stat or --reverse")
    if invocation.as_json and (patch or stat):
        raise usage_error(
            "-p and --stat cannot be combined with --json",
            "`trace diff --json A B` compares two commits",
        )
    with opened(invocation) as here:
        invocation.page()
        drawn = render.graph.Drawing(first_parent) if graph else None
        where: dict[str, Any] = {"limit": limit, "everything": everything, "trash": trash}
        entries = _asked(
            invocation,
            here,
            [*revisions],
            **where,
            first_parent=first_parent,
            in_lines=graph,
            tokens=tokens,
            walked=drawn.note if drawn is not None and asked else None,
            **filters,
        )
        if drawn is not None and asked:
            entries = drawn.simplified(entries)
        if backwards:
            entries = reversed(list(entries))
        full = (full or patch or stat) and not oneline
        show = _Block(invocation, full, tokens, drawn, "" if oneline else text)
        if patch or stat:
            show.changes = _ContextChanges(invocation, here, stat=not patch, oldest_first=backwards)
        entries, gap = _up_to_gap(invocation, entries)
        while block := list(islice(entries, DEFAULT_LIMIT)):
            names = here.branches.names([e.oid for e in block], trash=trash or invocation.as_json)
            result = (trace_store.record(e, refs=names.get(e.oid, ())) for e in block)
            yield result, show(block, names)
        if gap:
            raise _broken(gap[0])


def _asked(
    invocation: Invocation, here: Repo, revisions: list[Revision], **wanted: Any
) -> Iterator[LogEntry]:
    """Return the entries of the log; a time that is none gets an example."""
    try:
        return here.log(
            revisions, unmatched=lambda *given: tell_unmatched(invocation, *given), **wanted
        )
    except errors.InvalidInputError as error:
        if error.data.get("argument") in ("since", "until"):
            error.data.setdefault("hint", "`2026-03-02`, `2 days ago`")
        raise


def _broken(gap: errors.ObjectNotFoundError) -> errors.BrokenHistoryError:
    oid = gap.data.get("oid")
    return errors.BrokenHistoryError(
        f"incomplete: commit {oid} is missing, and what came before it", oid=oid
    )


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


class _Block:
    """The lines of entries, one block at a time."""

    __slots__ = (
        *("_drawn", "_full", "_invocation", "_sought", "_tokens"),
        "changes",
    )

    def __init__(
        self,
        invocation: Invocation,
        full: bool,
        tokens: bool,
        drawn: Drawing | None,
        sought: str,
    ) -> None:
        self._invocation = invocation
        self._sought = sought
        self._full = full
        self._tokens = tokens
        self._drawn = drawn
        self.changes: _ContextChanges | None = None

    def __call__(self, entries: list[LogEntry], names: dict[bytes, list[str]]) -> Iterator[str]:
        if self._drawn is not None:
            yield from self._draw(self._drawn, entries, names)
        elif self._full or self.changes is not None:
            changes = None if self.changes is None else self.changes.of(entries)
            for entry in entries:
                yield from self._describe(entry, names)
                yield from () if changes is None else next(changes)
        else:
            yield from self._list(entries, names)

    def _describe(
        self,
        entry: LogEntry,
        names: dict[bytes, list[str]],
    ) -> Iterator[str]:
        if self._full:
            yield from commit_lines(self._invocation, entry, names)
        else:
            yield from self._list([entry], names)

    def _list(
        self,
        entries: list[LogEntry],
        names: dict[bytes, list[str]],
    ) -> Iterator[str]:
        # Programs get uncut lines, so that a search finds everything.
        cut = self._invocation.terminal
        minutes = Minutes()
        rows = [log_row(entry, minutes, names.get(entry.oid), cut) for entry in entries]
        align = LEFT + LEFT + RIGHT + (RIGHT + RIGHT if self._tokens else "") + LEFT
        style = ["yellow", "dim", "", *(["", ""] if self._tokens else []), ""]
        lines = table(self._invocation, (), rows, align, [style] * len(rows))
        for line, entry in zip(lines, entries, strict=True):
            yield line
            if self._sought and self._sought.casefold() not in line.casefold():
                found = entry.snippet(self._sought)
                if found is not None:
                    yield f"    {highlight_hit(self._invocation, found)}"

    def _draw(
        self,
        drawn: Drawing,
        entries: list[LogEntry],
        names: dict[bytes, list[str]],
    ) -> Iterator[str]:
        invocation, minutes = self._invocation, Minutes()
        width = terminal_width(invocation)
        for entry in entries:
            for row in drawn.graph.commit(entry.oid, drawn.parents(entry)):
                if "*" not in row:
                    yield row
                elif self._full:
                    lines = commit_lines(invocation, entry, names)
                    yield f"{row} {lines[0]}"
                    for line in lines[1:]:
                        yield f"{row.replace('*', '|')} {line}".rstrip()
                else:
                    cells = log_row(entry, minutes, names.get(entry.oid), bool(width))
                    line = "  ".join(cells)
                    line = fit(line, width - len(row) - 1) if width else line
                    oid, when = cells[0], cells[1]
                    if line.startswith(f"{oid}  {when}"):
                        behind = line[len(oid) + 2 + len(when) :]
                        line = f"{paint(invocation, oid, 'yellow')}  {paint(invocation, when, 'dim')}{behind}"
                    yield f"{paint(invocation, row, 'dim')} {line}"


class _ContextChanges:
    """Changes of commits to the context of their first parent."""

    def __init__(
        self, invocation: Invocation, here: Repo, *, stat: bool, oldest_first: bool
    ) -> None:
        self._invocation = invocation
        self._repo = here
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
                entry.oid: self._lines_of(entry)
                for entry in (some if self._oldest_first else reversed(some))
            }
            for entry in some:
                lines = found[entry.oid]
                if isinstance(lines, errors.TraceError):
                    raise lines
                yield lines
            start += self._count
            self._count = min(4 * self._count, MOST_CHANGES)

    def _lines_of(self, entry: LogEntry) -> list[str] | errors.TraceError:
        """Return the lines about one commit, or the error if it cannot be compared."""
        before = entry.parents[0] if entry.parents else None
        try:
            found = self._repo.diff(before, entry)
            return [*render.changes.diff_lines(self._invocation, found, stat=self._stat), ""]
        except errors.TraceError as error:
            return error
