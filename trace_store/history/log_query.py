"""The log that a repository offers: where it starts, filters, and the tokens of the context at each commit."""

from __future__ import annotations

from itertools import islice

from trace_store import errors, history
from trace_store import revision as revisions
from trace_store.refs.names import TRASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from trace_store.context.compiler import ContextCompiler
    from trace_store.history.draft import Writer
    from trace_store.history.log import LogEntry
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

    Starts = list[str | ObjectId]

BLOCK = 1000
"""How many commits are weighed at once: contexts are compiled from the oldest on."""


def query(
    line: Writer,
    names: list[str],
    wanted: Mapping[str, Any],
    *,
    limit: int | None,
    everything: bool,
    trash: bool,
    first_parent: bool,
    in_lines: bool,
    tokens: bool,
    walked: Callable[[LogEntry], object] | None,
) -> Iterator[LogEntry]:
    """Return the commits of revisions and ranges that match filters, newest first, as `Line.log`."""
    store = line.store
    starts = _starts(store, names, everything=everything, trash=trash)
    is_filtered = any(each not in ("", None) for each in wanted.values())
    found = history.log.log(
        store,
        starts,
        limit=None if is_filtered else limit,
        first_parent=first_parent,
        in_lines=in_lines,
        weigh=lambda commit: line.contexts.weigh_added(commit),
    )
    if walked is not None:
        found = _noted(found, walked)
    if is_filtered and starts:
        found = islice(_matching(line.contexts, found, starts, wanted), limit)
    return _weighed(line.contexts, found) if tokens else found


def _starts(store: Store, names: list[str], *, everything: bool, trash: bool) -> Starts:
    """Return where a log starts, and what it excludes as `^A`."""
    if everything:
        given = [name for name in names if name != "HEAD"]
        return [*given, *revisions.all_commits(store, () if trash else (TRASH,))]
    is_named = any(not name.startswith("^") for name in names)
    return [*names] if is_named else [*names, "HEAD"]


def _noted(entries: Iterable[LogEntry], walked: Callable[[LogEntry], object]) -> Iterator[LogEntry]:
    for entry in entries:
        walked(entry)
        yield entry


def _matching(
    contexts: ContextCompiler,
    entries: Iterable[LogEntry],
    starts: Starts,
    wanted: Mapping[str, Any],
) -> Iterator[LogEntry]:
    store, follow = contexts.store, wanted["follow"] or None
    filters = history.log_filters.LogFilter(
        **{
            **wanted,
            "since": _moment(store, "since", wanted["since"]),
            "until": _moment(store, "until", wanted["until"]),
            "follow": follow and history.lookup.address(store, follow, "follow"),
        }
    )
    head = store.refs.head().oid
    # The context of the first start decides a message's priority: HEAD's, if it is one.
    tips = sorted(revisions.reach_of_several(store, starts)[0], key=lambda tip: tip != head)
    return history.log_filters.matching(contexts, entries, filters, tips[0])


def _moment(store: Store, argument: str, given: Any) -> int | None:
    """Return a time in milliseconds; None if none is given."""
    if given is None or given == "":
        return None
    found: int | None = given
    if isinstance(given, str):
        found = revisions.parse_moment(given, store)
    elif not isinstance(given, int) and hasattr(given, "timestamp"):
        found = round(given.timestamp() * 1000)
    if type(found) is not int:
        raise errors.InvalidInputError(
            f"{argument}: not a time: {str(given)[:80]!r}", argument=argument
        )
    return found


def _weighed(contexts: ContextCompiler, entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    for block in _blocks(entries):
        growth = history.token_history.token_growth(contexts, block)
        for entry in block:
            entry.growth = growth[entry.oid]
            yield entry


def _blocks(entries: Iterable[LogEntry]) -> Iterator[list[LogEntry]]:
    """Yield entries in blocks; before an error, those that were read."""
    block: list[LogEntry] = []
    try:
        for entry in entries:
            block.append(entry)
            if len(block) == BLOCK:
                yield block
                block = []
    except errors.TraceError:
        if block:
            yield block
        raise
    if block:
        yield block
