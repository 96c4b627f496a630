"""Import reports.

Invariant: every record is counted once: in a message, stored beside a commit, or skipped with a reason. Losses are
counted on planned messages, so all formats are counted alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trace_store.base.frozen import field, value
from trace_store.base.oid import ObjectId
from trace_store.importers.contract import (
    EVENT,
    MESSAGE,
    SOURCE,
    Count,
    PlannedCommit,
    PlannedMessage,
    Skip,
)
from trace_store.objects.parts import Opaque, Part, ToolResult
from trace_store.providers.fields import UNREAD
from trace_store.providers.media import SENDERS

NOT_READ = "not-read"
"""Reason for a block that is stored but sent to no model."""

_EXCERPT_BYTES = 60


class ImportLosses:
    """Counter of content that no model will see.

    Attributes:
        unread: number of unreadable blocks.
        hidden: number of messages without any part that a model can see.
        skips: place of each unreadable block.
    """

    def __init__(self) -> None:
        self.unread = 0
        self.hidden = 0
        self.skips: list[Skip] = []

    def note(self, commit: PlannedCommit) -> None:
        """Count the losses in a new commit."""
        for message in commit.messages:
            for number, part in enumerate(message.parts, 1):
                for block in _unread(part):
                    self.unread += 1
                    self.skips.append(Skip(_line(commit), NOT_READ, _place(message, number, block)))
            self.hidden += bool(message.parts) and all(map(_is_hidden, message.parts))


def _unread(part: Part) -> Iterable[Opaque]:
    if isinstance(part, ToolResult):
        return [each for inner in part.content for each in _unread(inner)]
    return [part] if isinstance(part, Opaque) and part.provider == UNREAD else []


def _is_hidden(part: Part) -> bool:
    return isinstance(part, Opaque) and part.provider not in SENDERS


def _line(commit: PlannedCommit) -> int:
    lines = [record.line for record in commit.records if record.parts or len(commit.records) == 1]
    return lines[0] if lines else 0


def _place(message: PlannedMessage, number: int, block: Opaque) -> str:
    excerpt = block.data[:_EXCERPT_BYTES].decode("utf-8", "replace")
    more = "…" if len(block.data) > _EXCERPT_BYTES else ""
    count = len(message.parts)
    return f"part {number} of {count} of a message ({message.role}): {excerpt}{more}"


NOT_KEPT = "not-kept"
"""Outcome of a record without a message, if raw records are not stored."""
MAXIMUM_NAMED_SKIPS = 1000


@value
class BranchReport:
    """A branch of the session and its tip after the import."""

    ref: str
    oid: ObjectId


@value
class FileReport:
    """Result for one file.

    Attributes:
        path: path as given or discovered.
        format: format it was read as; "" if skipped.
        skipped: why it was skipped, or "".
        session: session id.
        branches: branches of the session.
        trashed: refs that keep replaced commits.
        size: file size in bytes.
        bytes_read: bytes read, including the unfinished end of the last import.
        commits: new commits.
        commits_present: planned commits that already existed.
        commits_shared: of these, commits of the session that this one was copied from.
        messages: new messages.
        calls, results: tool calls and results in these.
        unread: unreadable blocks, which are stored but sent to no model.
        unread_at: their places, at most the first thousand.
        hidden: messages without any part that a model can see.
        records: number of records by (type, outcome).
        skips: skipped data, at most the first thousand.
        secrets: number of secrets found, by kind.
        is_stray: True for rows of the session from another session's file.
        error: why the import stopped, or None; earlier commits stay valid.
    """

    JSON = "branches=tips unread_at=unread_places records=counts_by_type -is_stray"

    path: str
    format: str = ""
    skipped: str = ""
    session: str = ""
    branches: tuple[BranchReport, ...] = ()
    trashed: tuple[str, ...] = ()
    size: int = 0
    bytes_read: int = 0
    commits: int = 0
    commits_present: int = 0
    commits_shared: int = 0
    messages: int = 0
    calls: int = 0
    results: int = 0
    unread: int = 0
    unread_at: Sequence[Skip] = ()
    hidden: int = 0
    records: Mapping[Count, int] = field(default_factory=dict)
    skips: Sequence[Skip] = ()
    error: Exception | None = None
    secrets: Mapping[str, int] = field(default_factory=dict)
    is_stray: bool = False

    @property
    def record_count(self) -> int:
        """Number of records read."""
        return sum(self.records.values())

    @property
    def skipped_count(self) -> int:
        """Number of records that are neither in a commit nor stored as its source."""
        kept = (EVENT, MESSAGE, SOURCE, NOT_KEPT)
        return sum(count for (_, what), count in self.records.items() if what not in kept)

    @property
    def tips(self) -> dict[str, ObjectId]:
        """The tips of the branches after the import, by ref."""
        return {branch.ref: branch.oid for branch in self.branches}

    @property
    def unread_places(self) -> list[tuple[int, str]]:
        """The line and the place of each unreadable block."""
        return [(skip.line, skip.detail) for skip in self.unread_at]

    @property
    def counts_by_type(self) -> dict[str, dict[str, int]]:
        """Number of records by type and outcome."""
        counts: dict[str, dict[str, int]] = {}
        for (kind, outcome), count in sorted(self.records.items()):
            counts.setdefault(kind, {})[outcome] = count
        return counts


@value
class ImportReport:
    """Result of an import, file by file.

    Attributes:
        files: the results.
        dry_run: whether nothing was written.
    """

    JSON = "dry_run commits messages unread hidden outcomes secrets"

    files: tuple[FileReport, ...]
    dry_run: bool = False

    @property
    def commits(self) -> int:
        """Number of new commits."""
        return sum(file.commits for file in self.files)

    @property
    def messages(self) -> int:
        """Number of new messages."""
        return sum(file.messages for file in self.files)

    @property
    def unread(self) -> int:
        """Number of unreadable blocks."""
        return sum(file.unread for file in self.files)

    @property
    def hidden(self) -> int:
        """Number of new messages without any part that a model can see."""
        return sum(file.hidden for file in self.files)

    @property
    def errors(self) -> list[Exception]:
        """Errors of the files that failed."""
        return [file.error for file in self.files if file.error is not None]

    @property
    def secrets(self) -> dict[str, int]:
        """Number of secrets by kind, most frequent first."""
        totals: dict[str, int] = {}
        for file in self.files:
            for rule, count in file.secrets.items():
                totals[rule] = totals.get(rule, 0) + count
        return dict(sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])))

    def outcomes(self) -> dict[str, int]:
        """Return the number of records by outcome, over all files."""
        totals: dict[str, int] = {}
        for file in self.files:
            for (_, outcome), count in file.records.items():
                totals[outcome] = totals.get(outcome, 0) + count
        return dict(sorted(totals.items()))


def record_outcomes(counts: Mapping[Count, int], *, source: bool) -> dict[Count, int]:
    """Return a plan's counts, with SOURCE as NOT_KEPT without stored records."""
    totals: dict[Count, int] = {}
    for (kind, outcome), count in counts.items():
        key = (kind, NOT_KEPT if outcome == SOURCE and not source else outcome)
        totals[key] = totals.get(key, 0) + count
    return totals


__all__ = [
    "MAXIMUM_NAMED_SKIPS",
    "MESSAGE",
    "NOT_KEPT",
    "SOURCE",
    "BranchReport",
    "FileReport",
    "ImportReport",
    "record_outcomes",
]
