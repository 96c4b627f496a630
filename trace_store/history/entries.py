"""One commit of a log, told from the commit table where it is in there, and from the commit where not.

Rule: an entry costs as little as a row; what it is not asked for is not looked for.
"""

from __future__ import annotations

from trace_store import history
from trace_store.commit_table.records import MANY, ODD, SAYS, UNNAMED, facts_of, names_of
from trace_store.history.lines import NEAR, Lines
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_store.commit_table import CommitRows
    from trace_store.commit_table.records import Row
    from trace_store.context.line import Line
    from trace_store.store import Store


class LogSource:
    """Where the entries of one log come from."""

    __slots__ = ("_lines", "_whole", "rows", "store")

    def __init__(
        self, store: Store, rows: CommitRows | None = None, *, whole: bool = False
    ) -> None:
        """Say where from; `whole` when all of a history is told, which is worth a line for each commit."""
        self.store = store
        self.rows = rows
        self._whole = whole
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines | None:
        """The lines that are kept, brought up to date when little is missing or all is asked for."""
        if self._lines is None and self.rows is not None:
            lines = self._lines = Lines(self.store, self.rows, _told)
            if self._whole or self.rows.stored - lines.count <= NEAR:
                lines.catch_up()
        return self._lines


class LogEntry:
    """One commit of a log."""

    __slots__ = ("_commit", "_row", "_source")

    def __init__(self, source: LogSource, row: Row, commit: Commit | None = None) -> None:
        self._source = source
        self._row = row
        self._commit = commit

    def __repr__(self) -> str:
        return f"LogEntry({self.oid.short()!r})"

    @property
    def oid(self) -> ObjectId:
        """Its id."""
        return ObjectId(self._row[0])

    @property
    def commit(self) -> Commit:
        """The commit itself, which is read when it is asked for.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is not here any more.
        """
        if self._commit is None:
            self._commit = read_commit(self._row[0], self._source.store.objects.read)
        return self._commit

    @property
    def time(self) -> int:
        """When it was made, in milliseconds since the epoch, UTC."""
        return self.commit.time if self._row[8] & ODD else self._row[5]

    @property
    def message_count(self) -> int:
        """Messages that it creates."""
        return self._row[6]

    @property
    def parents(self) -> Sequence[ObjectId]:
        """The ids of its parents."""
        rows = self._source.rows
        if self._commit is not None or rows is None or self._row[8] & MANY:
            return self.commit.parents
        return [rows.oid(parent - 1) for parent in self._row[2:4] if parent]

    @property
    def operations(self) -> Sequence[str]:
        """The names of its operations."""
        names = names_of(self._row[7])
        return [each.name for each in self.commit.operations] if names is None else names

    @property
    def author(self) -> str:
        """Who made it."""
        if self._row[8] & UNNAMED:
            return self.commit.author
        return self._row[9].rstrip(b"\0").decode()

    @property
    def message(self) -> str:
        """What was said about it; empty when nothing was."""
        if not self._row[8] & SAYS:
            return ""
        lines = self._source.lines if self._commit is None else None
        found = None if lines is None else lines.message(self._row[1])
        return self.commit.message if found is None else found

    def summary(self, width: int = 72) -> str:
        """Return it as one line, with the first `width` characters of a message's text, or of what happened."""
        lines = self._source.lines if self._commit is None else None
        found = None if lines is None else lines.summary(self._row[1], width)
        return history.summary(self._source.store, self.commit, width) if found is None else found


def entry_of(store: Store, oid: ObjectId, commit: Commit) -> LogEntry:
    """Return the entry of a commit that was read."""
    return LogEntry(LogSource(store), (oid, 0, 0, 0, 0, *facts_of(commit)), commit)


def _told(commit: Commit, read: Callable[[bytes], bytes]) -> list[Line]:
    # What says it is imported when a line is made for the first time, which few logs do.
    return history.told(commit, read)
