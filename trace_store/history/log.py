"""The log: a walk over commits, an entry for each.

Rule: an entry costs as little as a row. What every log tells is read from many rows at once, by columns; what few ask
for is looked for when they do.
"""

from __future__ import annotations

from itertools import islice, repeat

from trace_store import errors, history, secrets
from trace_store.commit_table.commits import STEPS
from trace_store.commit_table.rows import (
    FLAGS_AT,
    MANY,
    ODD,
    ROW_BYTES,
    SAYS,
    TOLD,
    UNNAMED,
    facts_of,
    names_of,
)
from trace_store.commit_table.walks import Spans
from trace_store.history.line_cache import NEAR, Lines
from trace_store.objects import operations as ops
from trace_store.objects.codec import links
from trace_store.objects.commit import read_commit
from trace_store.objects.content import bytes_of
from trace_store.oid import ObjectId
from trace_store.revision import commits_of, reach, reach_of_several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias

    from trace_store.commit_table.commits import Commits
    from trace_store.commit_table.rows import CommitRows, Row
    from trace_store.context.line import Line
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit, Operation
    from trace_store.store.handle import Store

    Weigh: TypeAlias = Callable[[Commit], int]


def log(
    store: Store,
    revision: str | ObjectId | Sequence[str | ObjectId] = "HEAD",
    *,
    limit: int | None = None,
    first_parent: bool = False,
    in_lines: bool = False,
    weigh: Weigh | None = None,
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
        weigh: counts the tokens of the messages that a commit adds, for `LogEntry.token_count`.

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
        near = STEPS if limit is None else limit
        for entry in _line(store, starts, near, weigh) if not hidden else ():
            yield entry
            given += 1
            if given == limit or not entry.commit.parents:
                return
        if limit is None:
            found = _rows(commits, [*starts, *hidden], None)
    if found is not None:
        rows, numbers = found
        source = LogSource(store, rows, whole=limit is None, weigh=weigh)
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
        yield entry_of(store, oid, read_commit(oid, store.objects.read), weigh)


def _rows(
    commits: Commits, oids: list[ObjectId], limit: int | None
) -> tuple[CommitRows, list[int]] | None:
    """Return rows as `Commits.rows`; None also where a commit is missing, so that those after it are shown."""
    try:
        return commits.rows(oids, limit=limit)
    except errors.ObjectNotFoundError:
        return None


def _line(
    store: Store, starts: list[ObjectId], limit: int, weigh: Weigh | None
) -> Iterator[LogEntry]:
    """Yield a commit and what comes before it, as far as there is one parent each, and no more than a limit."""
    for _ in range(limit):
        if len(starts) != 1:
            return
        commit = read_commit(starts[0], store.objects.read)
        if len(commit.parents) > 1:
            return
        yield entry_of(store, starts[0], commit, weigh)
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


_TOLD = bytes({0, MANY})
"""The flags of a row that tells all of its commit that an entry holds."""


class LogSource:
    """Where the entries of one log come from.

    Attributes:
        store: has the commits.
        rows: the commit table, if it is used.
        authors: by their bytes in a row, so that an author is one text however many commits there are.
        weigh: counts the tokens of the messages that a commit adds.
    """

    __slots__ = ("_commit", "_lines", "_whole", "authors", "rows", "store", "weigh")

    def __init__(
        self,
        store: Store,
        rows: CommitRows | None = None,
        *,
        whole: bool = False,
        commit: tuple[bytes, Commit] | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        """Say where from.

        Args:
            store: has the commits.
            rows: the commit table.
            whole: whether all of a history is told, which is worth a line for each commit.
            commit: the id of a commit that was read already, and the commit.
            weigh: counts the tokens of the messages that a commit adds.
        """
        self.weigh = weigh
        self.store = store
        self.rows = rows
        self.authors = _Authors()
        self._whole = whole
        self._commit = commit
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines | None:
        """The lines that are kept, brought up to date when little is missing or all is asked for."""
        if self._lines is None and self.rows is not None:
            lines = self._lines = Lines(self.store, self.rows, _told)
            if self._whole or self.rows.stored - lines.count <= NEAR:
                lines.catch_up()
        return self._lines

    def commit(self, oid: bytes) -> Commit:
        """Return a commit; the last one is kept, since whoever asks for one asks for it again.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is not here any more.
        """
        if self._commit is None or self._commit[0] != oid:
            self._commit = oid, read_commit(oid, self.store.objects.read)
        return self._commit[1]


class LogEntry:
    """One commit of a log.

    Attributes:
        oid: its id.
        author: who made it.
        time: when it was made, in milliseconds since the epoch, UTC.
        message_count: messages that it creates.
        message: what was said about it; empty when nothing was.
    """

    __slots__ = ("_number", "_source", "author", "message", "message_count", "oid", "time")

    def __init__(
        self, oid: ObjectId, author: str, time: int, count: int, number: int, source: LogSource
    ) -> None:
        self.oid = oid
        self.author = author
        self.time = time
        self.message_count = count
        self.message = ""
        self._number = number
        self._source = source

    def __repr__(self) -> str:
        return f"LogEntry({self.oid.short()!r})"

    @property
    def commit(self) -> Commit:
        """The commit itself, which is read when it is asked for.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is not here any more.
        """
        return self._source.commit(self.oid)

    @property
    def parents(self) -> Sequence[ObjectId]:
        """The ids of its parents."""
        rows = self._source.rows
        row = None if rows is None else rows.row(self._number)
        if rows is None or row is None or row[8] & MANY:
            return self.commit.parents
        return [rows.oid(parent - 1) for parent in row[2:4] if parent]

    @property
    def operations(self) -> Sequence[str]:
        """The names of its operations."""
        rows = self._source.rows
        names = None if rows is None else names_of(rows.row(self._number)[7])
        return [each.name for each in self.commit.operations] if names is None else names

    @property
    def token_count(self) -> int:
        """Tokens of the messages that it adds, counted when it is first asked for.

        Raises:
            StateError: the log was not asked of a `Repo`, so nothing counts tokens.
        """
        if not self.message_count:
            return 0
        if self._source.weigh is None:
            raise errors.StateError("nothing counts tokens here: take the log of a Repo")
        return self._source.weigh(self.commit)

    @property
    def redacted(self) -> dict[str, int]:
        """How many secrets of each kind were replaced in what it stores; a look-up in its content."""
        commit, found = self.commit, dict[str, int]()
        if secrets.guard.FACT not in commit.meta:
            return found
        read = self._source.store.objects.read
        kept = [read(oid) for oid in links(commit.encode()) if oid not in commit.parents]
        for data in (bytes_of(commit.message), *kept):
            for kind in secrets.placeholders.kinds_in(data):
                found[kind] = found.get(kind, 0) + 1
        return found

    def summary(self, width: int = 72) -> str:
        """Return it as one line, with the first `width` characters of a message's text, or of what happened."""
        lines = self._source.lines
        found = None if lines is None else lines.summary(self._number, width)
        return (
            history.summary.summary(self._source.store, self.commit, width)
            if found is None
            else found
        )


class _LateEntry(LogEntry):
    """A commit of which its row does not tell all; the rest is looked for when it is asked for."""

    __slots__ = ()

    def __init__(self, row: Row, source: LogSource) -> None:
        oid, number, _, _, _, time, count, _, flags, author = row
        self.oid = ObjectId(oid)
        self.message_count = count
        self._number = number
        self._source = source
        if not flags & ODD:
            self.time = time
        if not flags & UNNAMED:
            self.author = source.authors[author]
        if not flags & SAYS:
            self.message = ""

    def __getattr__(self, name: str) -> Any:
        """Return, once, what was not set."""
        if name not in ("author", "message", "time"):
            raise AttributeError(name)
        lines = self._source.lines if name == "message" else None
        found: Any = None if lines is None else lines.message(self._number)
        if found is None:
            found = getattr(self.commit, name)
        setattr(self, name, found)
        return found


def entries_of(source: LogSource, first: int, data: bytes) -> Iterator[LogEntry]:
    """Return the entries of rows that follow one another, the newest first.

    Args:
        source: where they come from; it has the rows.
        first: the number of the first row, which is the oldest.
        data: the bytes of the rows.
    """
    assert source.rows is not None
    last = first + len(data) // ROW_BYTES - 1
    if data[FLAGS_AT::ROW_BYTES].strip(_TOLD):  # strip leaves nothing of what holds no other flags
        return map(_LateEntry, map(source.rows.row, range(last, first - 1, -1)), repeat(source))
    oids, times, counts, authors = zip(*TOLD.iter_unpack(data), strict=True)
    return map(
        LogEntry,
        map(ObjectId, reversed(oids)),
        map(source.authors.__getitem__, reversed(authors)),
        reversed(times),
        reversed(counts),
        range(last, first - 1, -1),
        repeat(source),
    )


def entry_of(store: Store, oid: ObjectId, commit: Commit, weigh: Weigh | None = None) -> LogEntry:
    """Return the entry of a commit that was read; `weigh` as in `log`."""
    count = facts_of(commit)[1]
    source = LogSource(store, commit=(oid, commit), weigh=weigh)
    entry = LogEntry(oid, commit.author, commit.time, count, -1, source)
    entry.message = commit.message
    return entry


class _Authors(dict[bytes, str]):
    """Texts by the bytes of a row's column; each is decoded once."""

    __slots__ = ()

    def __missing__(self, data: bytes) -> str:
        author = self[data] = data.rstrip(b"\0").decode()
        return author


def _told(commit: Commit, read: Callable[[bytes], bytes]) -> list[Line]:
    # What says it is imported when a line is made for the first time, which few logs do.
    return history.summary.told(commit, read)


def named(oid: bytes, commit: Commit) -> Iterator[tuple[Address, Operation]]:
    """Yield the messages that a commit adds or changes, with the operation that does it."""
    number = 0
    for operation in commit.operations:
        for target in ops.targets_of(operation, oid):
            yield target, operation
        if operation.name in ops.ADDS_MESSAGES:
            for stored in operation.fields["messages"]:
                yield ops.address_of(stored, oid, number), operation
                number += 1
