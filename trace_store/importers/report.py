"""The report of an import.

Rule: looks at planned messages alone, so that every format is counted alike.

Rule: every record that was read is counted once: as part of a message, as kept beside a commit, or as skipped for a
named reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trace_store.frozen import field, value
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
from trace_store.oid import ObjectId
from trace_store.providers.fields import UNREAD
from trace_store.providers.media import SENDERS

NOT_READ = "not-read"
"""The reason that the report gives for a block that is kept as it is, and shown to no model."""

_EXCERPT_BYTES = 60


class Losses:
    """Counts what no model will be shown.

    Attributes:
        unread: blocks that could not be read.
        hidden: messages of which no part can be shown to any model.
        skips: the place of each of these blocks.
    """

    def __init__(self) -> None:
        self.unread = 0
        self.hidden = 0
        self.skips: list[Skip] = []

    def note(self, commit: PlannedCommit) -> None:
        """Count the losses in the messages of one new commit."""
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
"""A record without a place in the context, of an import that was told to keep no raw records."""
MAXIMUM_NAMED_SKIPS = 1000


@value
class BranchReport:
    """A branch of the session and its value after the import."""

    ref: str
    oid: ObjectId


@value
class FileReport:
    """What became of one file.

    Attributes:
        path: as it was given or found.
        format: the importer that read it; empty when it was left alone.
        skipped: why it was left alone, or empty.
        session: the session's id.
        branches: where the session is now.
        trashed: refs that keep what a branch was moved over.
        size: the bytes of the file.
        bytes_read: bytes that were read of it, the unfinished end of the last time included.
        commits: new commits.
        commits_present: commits of the plan that were here already.
        commits_shared: of these, commits of the session that this one was copied from.
        messages: new messages.
        calls, results: calls of tools in these, and results.
        unread: blocks of these that could not be read; they are kept, and no model is shown them.
        unread_at: where these stand, at most the first thousand.
        hidden: messages of which nothing can be shown to any model.
        records: how many records of a type became what: (type, what) to number.
        skips: what was skipped, at most the first thousand.
        secrets: how many secrets of each kind were found in what was read of it.
        is_stray: whether it is no file, but rows of the session that stood in the file of another.
        error: why the import of the file was given up, or None. What was written of it until then is a valid beginning.
    """

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
        """How many records were read."""
        return sum(self.records.values())

    @property
    def skipped_count(self) -> int:
        """How many records are neither in a commit nor kept beside one."""
        kept = (EVENT, MESSAGE, SOURCE, NOT_KEPT)
        return sum(count for (_, what), count in self.records.items() if what not in kept)

    def as_map(self) -> dict[str, Any]:
        """Return it as values that JSON knows."""
        records: dict[str, dict[str, int]] = {}
        for (kind, outcome), count in sorted(self.records.items()):
            records.setdefault(kind, {})[outcome] = count
        return {
            "path": self.path,
            "format": self.format,
            "skipped": self.skipped,
            "session": self.session,
            "branches": {branch.ref: str(branch.oid) for branch in self.branches},
            "trashed": list(self.trashed),
            "size": self.size,
            "bytes_read": self.bytes_read,
            "commits": self.commits,
            "commits_present": self.commits_present,
            "commits_shared": self.commits_shared,
            "messages": self.messages,
            "calls": self.calls,
            "results": self.results,
            "unread": self.unread,
            "unread_at": [[skip.line, skip.detail] for skip in self.unread_at],
            "hidden": self.hidden,
            "records": records,
            "skips": [[skip.line, skip.reason, skip.detail] for skip in self.skips],
            "secrets": dict(self.secrets),
            "error": None if self.error is None else str(self.error) or type(self.error).__name__,
        }


@value
class ImportReport:
    """What an import did, file by file."""

    files: tuple[FileReport, ...]

    @property
    def commits(self) -> int:
        """How many commits are new."""
        return sum(file.commits for file in self.files)

    @property
    def messages(self) -> int:
        """How many messages are new."""
        return sum(file.messages for file in self.files)

    @property
    def unread(self) -> int:
        """How many blocks could not be read."""
        return sum(file.unread for file in self.files)

    @property
    def hidden(self) -> int:
        """How many new messages hold nothing that a model can be shown."""
        return sum(file.hidden for file in self.files)

    @property
    def errors(self) -> list[Exception]:
        """Why the import of files was given up, of each that was."""
        return [file.error for file in self.files if file.error is not None]

    @property
    def secrets(self) -> dict[str, int]:
        """How many secrets of each kind were found, the most frequent first."""
        found: dict[str, int] = {}
        for file in self.files:
            for rule, count in file.secrets.items():
                found[rule] = found.get(rule, 0) + count
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def outcomes(self) -> dict[str, int]:
        """Return how many records became what, over all files and types."""
        found: dict[str, int] = {}
        for file in self.files:
            for (_, outcome), count in file.records.items():
                found[outcome] = found.get(outcome, 0) + count
        return dict(sorted(found.items()))

    def as_map(self) -> dict[str, Any]:
        """Return it as values that JSON knows."""
        return {
            "commits": self.commits,
            "messages": self.messages,
            "unread": self.unread,
            "hidden": self.hidden,
            "outcomes": self.outcomes(),
            "secrets": self.secrets,
            "files": [file.as_map() for file in self.files],
        }


def counted(counts: Mapping[Count, int], *, source: bool) -> dict[Count, int]:
    """Return the counts of a plan as they are when raw records are kept, or not."""
    found: dict[Count, int] = {}
    for (kind, outcome), count in counts.items():
        key = (kind, NOT_KEPT if outcome == SOURCE and not source else outcome)
        found[key] = found.get(key, 0) + count
    return found


__all__ = [
    "MAXIMUM_NAMED_SKIPS",
    "MESSAGE",
    "NOT_KEPT",
    "SOURCE",
    "BranchReport",
    "FileReport",
    "ImportReport",
    "counted",
]
