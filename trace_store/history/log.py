"""The log: a walk over commits with an entry for each, and the query of a repository.

Entries are cheap: common fields are read by columns from many rows at once, rare ones on demand. A query says where the
log starts, filters it, and adds the tokens of the context at each commit.
"""

from __future__ import annotations

from itertools import islice, repeat

from trace_store import commit_table, context, errors, history, objects, secrets
from trace_store import store as stores
from trace_store.base.oid import ObjectId
from trace_store.commit_table.commits import TABLE_THRESHOLD
from trace_store.commit_table.table import (
    AUTHOR_OVERFLOW,
    FLAGS_AT,
    HAS_MESSAGE,
    HAS_MORE_PARENTS,
    LOG_ROW,
    ROW_BYTES,
    TIME_OVERFLOW,
    facts_of,
    names_of,
)
from trace_store.contracts.ref_names import TRASH
from trace_store.history.line_cache import NEAR, Lines
from trace_store.objects import operations as ops
from trace_store.objects.codec import links
from trace_store.objects.commit import read_commit
from trace_store.objects.content import bytes_of
from trace_store.store import revision as revisions
from trace_store.store.revision import commits_of, reach, reach_of_several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.base.ident import Time
    from trace_store.commit_table.commits import Commits
    from trace_store.commit_table.table import CommitRows, Row
    from trace_store.context.compiled import TokenGrowth
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.content import SummaryLine
    from trace_store.context.snippet import Snippet
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit, Operation
    from trace_store.objects.message import Message
    from trace_store.store.store import Store
    from trace_store.writer import Writer

    Unmatched: TypeAlias = Callable[[str, str, list[str]], object]
    """Receives the name of a condition, a value that nothing has, and the values that exist."""
    Weigh: TypeAlias = Callable[[Commit], int]
    Starts = list[str | ObjectId]

_PLAIN_FLAGS = bytes({0, HAS_MORE_PARENTS})
"""The flags of a row that has all fields of a log entry."""

BLOCK = 1000
"""How many commits are weighed at once: contexts are compiled from the oldest on."""


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

    From one revision, lines of history come one after the other: after a merge, first the merged line. From several
    revisions, lines are interleaved by time, unless one revision is an ancestor of another.

    Args:
        store: the repository's store.
        revision: a revision, a range `A..B` or `A...B`, or a list of them; `^A` excludes A and its ancestors.
        limit: the maximum number of entries.
        first_parent: follow only first parents, which make up the context.
        in_lines: never interleave lines, as for a graph.
        weigh: counts the tokens of the messages that a commit adds, for `LogEntry.token_count`.

    Raises:
        InvalidInputError: the limit is not a non-negative integer.
        RevisionNotFoundError: there is no such commit.
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    check_limit(limit)
    if limit == 0:
        return
    commits = commits_of(store)
    starts, hidden = _ends(store, commits, revision)
    if limit == 1 and len(starts) == 1 and not hidden:  # one commit costs no more than reading it
        yield entry_of(store, starts[0], read_commit(starts[0], store.objects.read), weigh)
        return
    by_time = len(starts) > 1 and not in_lines
    given = 0
    near = TABLE_THRESHOLD if limit is None else max(limit, TABLE_THRESHOLD)
    if limit is not None and limit < TABLE_THRESHOLD and not commits.has_table():
        near = 0  # reading a few commits is faster than building a table
    found = _rows(commits, [*starts, *hidden], near)
    if found is None:
        # Many commits have no row yet, so show the newest ones before the table is built.
        near = TABLE_THRESHOLD if limit is None else limit
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
        spans = commit_table.walks.Spans(
            rows, heads, old, first_parent=first_parent, by_time=by_time
        )
        try:
            for high, low in spans.between(given, limit):
                for first, data in rows.newest_first(high, low):
                    yield from entries_of(source, first, data)
                    given += len(data) // ROW_BYTES
            return
        except errors.CorruptIndexError:
            commits.discard_table()
    walked = commits.walk(starts, hidden, first_parent=first_parent, by_time=by_time)
    for oid in islice(walked, given, limit):
        yield entry_of(store, oid, read_commit(oid, store.objects.read), weigh)


def _rows(
    commits: Commits, oids: list[ObjectId], limit: int | None
) -> tuple[CommitRows, list[int]] | None:
    """Return rows as `Commits.rows`; None if a commit is missing, so that newer ones are still shown."""
    try:
        return commits.rows(oids, limit=limit)
    except errors.ObjectNotFoundError:
        return None


def _line(
    store: Store, starts: list[ObjectId], limit: int, weigh: Weigh | None
) -> Iterator[LogEntry]:
    """Yield a commit and its ancestors, up to a limit, until one has several parents."""
    for _ in range(limit):
        if len(starts) != 1:
            return
        commit = read_commit(starts[0], store.objects.read)
        if len(commit.parents) > 1:
            return
        yield entry_of(store, starts[0], commit, weigh)
        starts = list(commit.parents)


def check_limit(limit: object) -> None:
    """Check a limit; None means no limit.

    Raises:
        InvalidInputError: it is not a non-negative integer.
    """
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise errors.InvalidInputError(f"limit must be a non-negative integer, not {limit!r:.40}")


def _ends(
    store: Store, commits: Commits, revisions: str | ObjectId | Sequence[str | ObjectId]
) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the starting points of revisions and ranges, and the commits to exclude with their ancestors."""
    if isinstance(revisions, ObjectId):
        return [revisions], []
    if isinstance(revisions, str):
        return reach(store, revisions, commits)
    return reach_of_several(store, revisions, commits)


class LogSource:
    """The shared data of one log's entries.

    Attributes:
        store: has the commits.
        rows: the commit table, if it is used.
        authors: decoded authors by their bytes in a row, so that each is decoded once.
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
        """Create the source of a log.

        Args:
            store: has the commits.
            rows: the commit table.
            whole: whether the log covers a whole history, so that storing all lines pays.
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
        """The stored lines, caught up if little is missing or the log covers everything."""
        if self._lines is None and self.rows is not None:
            lines = self._lines = Lines(self.store, self.rows, _lines_of)
            if self._whole or self.rows.stored - lines.count <= NEAR:
                lines.catch_up()
        return self._lines

    def commit(self, oid: bytes) -> Commit:
        """Return a commit; the last one is cached, since entries ask for it repeatedly.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is missing or damaged.
        """
        if self._commit is None or self._commit[0] != oid:
            self._commit = oid, read_commit(oid, self.store.objects.read)
        return self._commit[1]


class LogEntry:
    """One commit of a log.

    Attributes:
        oid: its id.
        author: its author.
        time: its time in milliseconds since the epoch, UTC.
        message_count: number of messages that it creates.
        message: the commit message, or "".
    """

    JSON = (
        "commit=oid parents author time message summary operations message_count addresses "
        "facts settings tokens_added=growth.added token_count=growth.total "
        "token_source=growth.source"
    )

    __slots__ = (
        "_growth",
        "_number",
        "_source",
        "author",
        "message",
        "message_count",
        "oid",
        "time",
    )
    time: Time

    @property
    def facts(self) -> dict[str, str]:
        """The facts that it records."""
        return ops.facts_of(self.commit, ops.META)

    @property
    def settings(self) -> dict[str, str]:
        """The generation settings that it records."""
        return ops.facts_of(self.commit, ops.SETTINGS)

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
        """The commit, read on demand.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is missing or damaged.
        """
        return self._source.commit(self.oid)

    @property
    def parents(self) -> Sequence[ObjectId]:
        """The ids of its parents."""
        rows = self._source.rows
        row = None if rows is None else rows.row(self._number)
        if rows is None or row is None or row[8] & HAS_MORE_PARENTS:
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
        """Tokens of the messages that it adds, counted on first access.

        Raises:
            StateError: the log does not come from a `Repo`, so there is no token counter.
        """
        if not self.message_count:
            return 0
        if self._source.weigh is None:
            raise errors.StateError("there is no token counter: use the log of a Repo")
        return self._source.weigh(self.commit)

    @property
    def growth(self) -> TokenGrowth | None:
        """The tokens of the context at the commit, in a log with `tokens`; None in any other."""
        found: TokenGrowth | None = getattr(self, "_growth", None)
        return found

    @growth.setter
    def growth(self, growth: TokenGrowth) -> None:
        self._growth = growth

    @property
    def redacted(self) -> dict[str, int]:
        """Number of redacted secrets of each kind in its content, counted on access."""
        commit, found = self.commit, dict[str, int]()
        if secrets.guard.FACT not in commit.meta:
            return found
        read = self._source.store.objects.read
        kept = [read(oid) for oid in links(commit.encode()) if oid not in commit.parents]
        for data in (bytes_of(commit.message), *kept):
            for kind in secrets.placeholders.kinds_in(data):
                found[kind] = found.get(kind, 0) + 1
        return found

    def summary(self, width: int = 72, *, target_width: int = 0) -> str:
        """Return a one-line summary that quotes at most `width` characters of a message.

        If the commit has no message of its own and changes a single one, this quotes `target_width` characters of that.
        """
        if target_width and not self.message:
            said = history.summary.target_line(
                self._source.store, self.oid, self.commit, target_width
            )
            return f"{self.summary(width)} ({said})" if said else self.summary(width)
        lines = self._source.lines
        found = None if lines is None else lines.summary(self._number, width)
        return (
            history.summary.summary(self._source.store, self.commit, width)
            if found is None
            else found
        )

    def tip_summary(self, width: int = 72) -> str:
        """Return a summary for the tip of a branch: of the newest commit, up to this one, that says something."""
        return history.summary.tip_summary(self._source.store, self.commit, width)

    @property
    def addresses(self) -> list[Address]:
        """The addresses of the messages that it adds."""
        return [address for address, _ in ops.added_messages(self.commit, self.oid)]

    def message_lines(self, width: int = 72) -> list[tuple[Address, str]]:
        """Return each message that it adds as one line, with its address; the line names content that is missing."""
        read = self._source.store.objects.read
        return [
            (at, context.content.message_line(stored, read, width))
            for at, stored in ops.added_messages(self.commit, self.oid)
        ]

    @property
    def messages(self) -> list[tuple[Address, Message]]:
        """The messages that it adds, with their addresses, as it has them."""
        read = self._source.store.objects.read
        added = ops.added_messages(self.commit, self.oid)
        return [
            (at, objects.message.load_message(ops.with_current_parts(stored), read))
            for at, stored in added
        ]

    def snippet(self, text: str) -> Snippet | None:
        """Return a snippet around a text in its messages or edits, ignoring case; None if it does not occur."""
        return history.log_filters.snippet_of(self.commit, text, self._source.store.objects.read)


class _LateEntry(LogEntry):
    """A commit whose row lacks some fields, which are read on demand."""

    __slots__ = ()

    def __init__(self, row: Row, source: LogSource) -> None:
        oid, number, _, _, _, time, count, _, flags, author = row
        self.oid = ObjectId(oid)
        self.message_count = count
        self._number = number
        self._source = source
        if not flags & TIME_OVERFLOW:
            self.time = time
        if not flags & AUTHOR_OVERFLOW:
            self.author = source.authors[author]
        if not flags & HAS_MESSAGE:
            self.message = ""

    def __getattr__(self, name: str) -> Any:
        """Read a missing field, once."""
        if name not in ("author", "message", "time"):
            raise AttributeError(name)
        lines = self._source.lines if name == "message" else None
        found: Any = None if lines is None else lines.message(self._number)
        if found is None:
            found = getattr(self.commit, name)
        setattr(self, name, found)
        return found


def entries_of(source: LogSource, first: int, data: bytes) -> Iterator[LogEntry]:
    """Return the entries of consecutive rows, newest first.

    Args:
        source: the log's source, with a commit table.
        first: the number of the first row, which is the oldest.
        data: the bytes of the rows.
    """
    assert source.rows is not None
    last = first + len(data) // ROW_BYTES - 1
    if data[FLAGS_AT::ROW_BYTES].strip(_PLAIN_FLAGS):  # some row has other flags
        return map(_LateEntry, map(source.rows.row, range(last, first - 1, -1)), repeat(source))
    oids, times, counts, authors = zip(*LOG_ROW.iter_unpack(data), strict=True)
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
    """Return the log entry of a commit; `weigh` as in `log`."""
    count = facts_of(commit)[1]
    source = LogSource(store, commit=(oid, commit), weigh=weigh)
    entry = LogEntry(oid, commit.author, commit.time, count, -1, source)
    entry.message = commit.message
    return entry


class _Authors(dict[bytes, str]):
    """Authors by the bytes of their column, decoded once."""

    __slots__ = ()

    def __missing__(self, data: bytes) -> str:
        author = self[data] = data.rstrip(b"\0").decode()
        return author


def _lines_of(commit: Commit, read: Callable[[bytes], bytes]) -> list[SummaryLine]:
    # `summary` is loaded late, because few logs compute a line.
    return history.summary.lines_for(commit, read)


def named(oid: bytes, commit: Commit) -> Iterator[tuple[Address, Operation]]:
    """Yield the messages that a commit adds or changes, each with the operation."""
    number = 0
    for operation in commit.operations:
        for target in ops.targets_of(operation, oid):
            yield target, operation
        if operation.name in ops.ADDS_MESSAGES:
            for stored in operation.fields["messages"]:
                yield ops.address_of(stored, oid, number), operation
                number += 1


def query(
    writer: Writer,
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
    unmatched: Unmatched | None,
) -> Iterator[LogEntry]:
    """Return the commits of revisions and ranges that match filters, newest first, as `Line.log`."""
    store = writer.store
    starts = _starts(store, names, everything=everything, trash=trash)
    is_filtered = any(each not in ("", None) for each in wanted.values())
    found = log(
        store,
        starts,
        limit=None if is_filtered else limit,
        first_parent=first_parent,
        in_lines=in_lines,
        weigh=lambda commit: writer.contexts.weigh_added(commit),
    )
    if "=" in (wanted["meta"] or "") and not first_parent and store.local:
        found = _recorded(writer, starts, wanted["meta"], found, is_told=unmatched is not None)
    if walked is not None:
        found = _noted(found, walked)
    if is_filtered and starts:
        found = islice(_matching(writer.contexts, found, starts, wanted, unmatched), limit)
    return _weighed(writer.contexts, found) if tokens else found


def _starts(store: Store, names: list[str], *, everything: bool, trash: bool) -> Starts:
    """Return where a log starts, and what it excludes as `^A`."""
    if everything:
        given = [name for name in names if name != "HEAD"]
        return [*given, *revisions.all_commits(store, () if trash else (TRASH,))]
    is_named = any(not name.startswith("^") for name in names)
    return [*names] if is_named else [*names, "HEAD"]


def _recorded(
    writer: Writer, starts: Starts, fact: str, entries: Iterator[LogEntry], *, is_told: bool
) -> Iterator[LogEntry]:
    """Yield the commits that record a fact, found by the index of facts; all entries if it cannot answer.

    With `is_told` it is also asked which values there are, so all are returned if none has the fact.
    """
    store = writer.store
    read, weigh = store.objects.read, writer.contexts.weigh_added
    index = stores.fact_index.FactIndex(store)
    try:
        index.catch_up()
        included, hidden = revisions.reach_of_several(store, starts)
        if all(map(index.knows, included)):
            commits = commits_of(store)
            found = [
                oid
                for oid in index.commits(*fact.split("=", 1))
                if store.objects.contains(oid)
                and any(commits.is_ancestor(oid, each) for each in included)
                and not any(commits.is_ancestor(oid, each) for each in hidden)
            ]
            if found or not is_told:
                entries = (entry_of(store, oid, read_commit(oid, read), weigh) for oid in found)
    except (errors.NotFoundError, errors.FormatError):
        pass  # the history is incomplete: the walk says where
    finally:
        index.close()
    yield from entries


def _noted(entries: Iterable[LogEntry], walked: Callable[[LogEntry], object]) -> Iterator[LogEntry]:
    for entry in entries:
        walked(entry)
        yield entry


def _matching(
    contexts: ContextCompiler,
    entries: Iterable[LogEntry],
    starts: Starts,
    wanted: Mapping[str, Any],
    unmatched: Unmatched | None,
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
    return history.log_filters.matching(contexts, entries, filters, tips[0], unmatched)


def _moment(store: Store, argument: str, given: Any) -> int | None:
    """Return a time in milliseconds; None if none is given."""
    if given is None or given == "":
        return None
    found: int | None = given
    if isinstance(given, str):
        found = revisions.parse_moment(given, store, is_end=argument == "until")
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
