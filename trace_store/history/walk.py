"""Walk history: the log."""

from __future__ import annotations

from itertools import islice

from trace_store import errors
from trace_store.commit_table import Spans
from trace_store.commit_table.commits import STEPS
from trace_store.commit_table.records import ROW_BYTES
from trace_store.history.entries import LogSource, entries_of, entry_of
from trace_store.objects.commit import read_commit
from trace_store.oid import ObjectId
from trace_store.reach import reach, reach_of_several
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.commit_table import Commits
    from trace_store.commit_table.rows import CommitRows
    from trace_store.history.entries import LogEntry
    from trace_store.store import Store


def log(
    store: Store,
    revision: str | ObjectId | Sequence[str | ObjectId] = "HEAD",
    *,
    limit: int | None = None,
    first_parent: bool = False,
    in_lines: bool = False,
) -> Iterator[LogEntry]:
    """Yield the commits of revisions or ranges, newest first; a child comes before its parents.

    From one revision on, lines of history stand one after the other: after a merge what came in comes first. From
    several on, as far as these are not in each other's past, they are interleaved by time.

    Args:
        store: where from.
        revision: a revision, a range `A..B` or `A...B`, or several of them, also as `^A`, which leaves out A's past.
        limit: at most so many.
        first_parent: follow first parents alone, which is what the context is made of.
        in_lines: let the lines of several revisions stand one after the other, too, as a graph shows them.

    Raises:
        InvalidInputError: the limit is no count.
        RevisionNotFoundError: there is no such commit.
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
    """
    check_limit(limit)
    if limit == 0:
        return
    commits = commits_of(store)
    starts, hidden = _ends(store, commits, revision)
    by_time = len(starts) > 1 and not in_lines
    given = 0
    near = STEPS if limit is None else max(limit, STEPS)
    if limit is not None and limit < STEPS and not commits.has_table():
        near = 0  # few are sooner read than a table is begun
    found = _rows(commits, [*starts, *hidden], near)
    if found is None:
        # Many commits have no row yet. Whoever reads along sees the newest before these are read.
        for entry in _line(store, starts, STEPS if limit is None else limit) if not hidden else ():
            yield entry
            given += 1
            if given == limit or not entry.commit.parents:
                return
        if limit is None:
            found = _rows(commits, [*starts, *hidden], None)
    if found is not None:
        rows, numbers = found
        source = LogSource(store, rows, whole=limit is None)
        old = numbers[len(starts) :]
        heads = numbers[: len(starts)]
        spans = Spans(rows, heads, old, first_parent=first_parent, by_time=by_time)
        try:
            for high, low in spans.between(given, limit):
                for first, data in rows.newest_first(high, low):
                    yield from entries_of(source, first, data)
                    given += len(data) // ROW_BYTES
            return
        except errors.CorruptIndexError:
            commits.distrust()
    walked = commits.walked(starts, hidden, first_parent=first_parent, by_time=by_time)
    for oid in islice(walked, given, limit):
        yield entry_of(store, oid, read_commit(oid, store.objects.read))


def _rows(
    commits: Commits, oids: list[ObjectId], limit: int | None
) -> tuple[CommitRows, list[int]] | None:
    """Return rows as `Commits.rows`; None also where a commit is missing, so that those after it are shown."""
    try:
        return commits.rows(oids, limit=limit)
    except errors.ObjectNotFoundError:
        return None


def _line(store: Store, starts: list[ObjectId], limit: int) -> Iterator[LogEntry]:
    """Yield a commit and what comes before it, as far as there is one parent each, and no more than a limit."""
    for _ in range(limit):
        if len(starts) != 1:
            return
        commit = read_commit(starts[0], store.objects.read)
        if len(commit.parents) > 1:
            return
        yield entry_of(store, starts[0], commit)
        starts = list(commit.parents)


def check_limit(limit: object) -> None:
    """Accept what may be the most there shall be; None is no limit.

    Raises:
        InvalidInputError: it is no count.
    """
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise errors.InvalidInputError(f"a limit is a count, not {limit!r:.40}")


def _ends(
    store: Store, commits: Commits, revisions: str | ObjectId | Sequence[str | ObjectId]
) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return where revisions and ranges start, and what is left out with its past."""
    if isinstance(revisions, ObjectId):
        return [revisions], []
    if isinstance(revisions, str):
        return reach(store, revisions, commits)
    return reach_of_several(store, revisions, commits)
