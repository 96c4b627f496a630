"""Interface of importers: planned commits, as values independent of a store.

Invariant: pure values and protocols. A plan depends only on the file, so two people who import the same file get
the same commits. `write` stores a plan. A new format is a module with the functions of `Format` and a row in the
registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.disk.files import Disk
from trace_store.importers.input_files import Inner, InputLine, ReadAt
from trace_store.objects.parts import Part
from trace_store.transcripts.sources import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.oid import ObjectId
    from trace_store.objects.message import Message

__all__ = [
    "AGENTS_KEY",
    "DUPLICATE",
    "MESSAGE",
    "NOTHING",
    "NO_MESSAGES",
    "SOURCE",
    "UNREADABLE",
    "Count",
    "FilePlanner",
    "Format",
    "Place",
    "Planned",
    "PlannedCommit",
    "PlannedMessage",
    "PlannedThread",
    "Record",
    "Resumption",
    "Skip",
    "Watcher",
]

Place = tuple[int, int]
"""A planned message: number of its planned commit, and index in it."""

AGENTS_KEY = "agents"
"""Metadata key: ids of the subagents whose answers a commit holds; their calls are in its parent."""

MESSAGE = "message"
SOURCE = "source"
EVENT = "event"
"""Outcome of a record with a commit but no message: an event and its links."""
DUPLICATE = "duplicate"
UNREADABLE = "unreadable"
NO_MESSAGES = "no-messages"
"""Outcome of a record in a file without messages: no commit can hold it."""


NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Planned values are tuples: three times as fast to create, and there is one per record."""


class Skip(NamedTuple):
    """Something in a file that is not imported, with the reason.

    Attributes:
        line: line number.
        reason: a stable code, such as `not-json`.
        detail: details for people.
    """

    line: int
    reason: str
    detail: str


class PlannedMessage(NamedTuple):
    """A message to store: the fields of `objects.message.Message`."""

    role: str
    parts: tuple[Part, ...]
    kind: str = ""
    model: str = ""
    id: str = ""
    labels: tuple[str, ...] = ()
    skipped: bool = False
    name: str = ""
    priority: str = ""


class PlannedCommit(NamedTuple):
    """One commit of a plan.

    Attributes:
        number: number by which later commits and places refer to it.
        key: id from the transcript, unique in the plan.
        thread: number of its thread; see `PlannedThread`.
        parent: number of the parent commit; None for a root.
        author: commit author.
        time: milliseconds since the epoch.
        removes: messages to remove first.
        replaces: messages that its own replace, with `reason`.
        edits: messages that get new parts.
        clears: calls whose results are cleared, by the message that holds them.
        placeholder: text shown for cleared results.
        messages: messages to add at the end, or in place of `replaces`.
        after: message that its own move behind; None appends them.
        before: messages that move behind its last one, in this order.
        answers: the message with the call of a result, by call id, if the transcript disambiguates it.
        facts: facts of the branch, such as the call that started an agent.
        tools: JSON schemas of the tools offered from here on; None changes nothing.
        usage: the provider's usage report, or empty.
        meta: metadata in storable form.
        links: (relation, target) pairs, such as resulting code commits.
        records: raw records of the commit, with preceding records that have no commit of their own.
    """

    number: int
    key: str
    thread: int
    parent: int | None
    author: str
    time: int
    removes: tuple[Place, ...] = ()
    replaces: tuple[Place, ...] | None = None
    reason: str = ""
    edits: tuple[tuple[Place, tuple[Part, ...]], ...] = ()
    clears: tuple[tuple[Place, tuple[str, ...]], ...] = ()
    placeholder: str = ""
    messages: tuple[PlannedMessage, ...] = ()
    after: Place | None = None
    before: tuple[Place, ...] = ()
    tools: tuple[bytes, ...] | None = None
    usage: Mapping[str, int | str] = NOTHING
    meta: Mapping[str, Any] = NOTHING
    links: tuple[tuple[str, str], ...] = ()
    records: tuple[Record, ...] = ()
    answers: tuple[tuple[str, Place], ...] = ()
    facts: Mapping[str, str] = NOTHING


class PlannedThread(NamedTuple):
    """Names a thread: "" for the session, `agents/<id>` or the like for a branch."""

    thread: int
    name: str


class Watcher(Protocol):
    """Receives what an import writes while it is in memory."""

    def note(
        self,
        oid: ObjectId,
        parent: ObjectId | None,
        messages: Sequence[PlannedMessage | Message],
        token_count: int,
    ) -> None:
        """Receive a new commit; `token_count` is that of its usage report, or 0."""
        ...

    def end_file(self, branches: Iterable[tuple[str, ObjectId]]) -> None:
        """Receive the branches, with their tips, of a file whose commits are all written."""
        ...

    def found(self) -> Any:
        """Return what it found in the files so far, for `take` in another process."""
        ...

    def take(self, found: Any) -> None:
        """Add what a watcher of the same kind found in a file, instead of `note` and `end_file`."""
        ...

    def end(self, tips: Mapping[str, ObjectId]) -> None:
        """Receive the tips of all imported branches, by full name, at the end of the import."""
        ...


Planned = PlannedCommit | PlannedThread
Count = tuple[str, str]
"""A record's type and outcome: MESSAGE, SOURCE, or the reason of a skip."""


@value
class Resumption:
    """Where a saved planner resumes.

    Attributes:
        offset, line: where to resume reading.
        commits: number of planned commits that are not planned again.
    """

    offset: int
    line: int
    commits: int


class FilePlanner(Protocol):
    """Plans the commits of one file; holds only unfinished state."""

    @property
    def session(self) -> str:
        """Session id, valid in a ref; known after the first planned commit."""
        ...

    @property
    def agent(self) -> str:
        """Id of the subagent whose file this is; "" for a session's file."""
        ...

    def feed(self, line: InputLine) -> Iterable[Planned]:
        """Plan the next line; return what became final."""
        ...

    def finish(self) -> Iterator[Planned]:
        """Yield what the unfinished end of the file becomes; no more lines may follow."""
        ...

    def save(self) -> Any:
        """Return the state needed to resume when the file has grown, as JSON values."""
        ...

    def resumes_at(self) -> Resumption | None:
        """Return where a saved planner resumes reading; None is after the last complete line."""
        ...

    def counts(self) -> Mapping[Count, int]:
        """Return the number of records by type and outcome."""
        ...

    def skips(self) -> Sequence[Skip]:
        """Return the skips in file order."""
        ...


class Format(Protocol):
    """Reader of one format: a row of the registry.

    Attributes:
        NAME: name for `--format` and session branches.
        SUFFIXES: file suffixes to look for in folders, with the dot.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802 - what modules have is a constant

    @property
    def SUFFIXES(self) -> Sequence[str]: ...  # noqa: N802

    def sniff(self, head: bytes) -> bool:
        """Return True if the first bytes of a file match this format."""
        ...

    def is_document(self, head: bytes) -> bool:
        """Return True if the file is one document rather than one record a line.

        A document is passed to the planner as one line.
        """
        ...

    def histories(self, environment: Environment, project_dir: str, disk: Disk) -> list[str]:
        """Return a project's transcripts in the program's own folders, sorted."""
        ...

    def plan(self, name: str, read_at: ReadAt) -> FilePlanner:
        """Return the planner of a file, given its name without suffix."""
        ...

    def resume(self, name: str, read_at: ReadAt, saved: Any) -> FilePlanner:
        """Return a planner that resumes from saved state.

        Raises:
            StateError: the file no longer matches the saved state.
            KeyError, TypeError, ValueError: the state is from another version.
        """
        ...


@runtime_checkable
class AgentFormat(Protocol):
    """Interface of a format that keeps a file about each subagent beside its transcript."""

    def facts_of_agent(self, path: str, disk: Disk) -> Mapping[str, str]:
        """Return what is known of the subagent with this transcript, by the names in `contracts.agent_facts`."""
        ...


@runtime_checkable
class MediaFormat(Protocol):
    """Interface of a format whose messages name files beside the transcript."""

    def with_media(self, planned: PlannedCommit, path: str, disk: Disk) -> PlannedCommit:
        """Return a commit of the transcript at a path, with the images that its messages name."""
        ...


@runtime_checkable
class MultiTranscriptFormat(Protocol):
    """Interface of a format whose files may hold several transcripts."""

    def holds_several(self, head: bytes) -> bool:
        """Return True if the file holds several transcripts, given its first bytes."""
        ...

    def inside(self, path: str, disk: Disk) -> Sequence[Inner]:
        """Return the transcripts in the file; each is imported separately.

        Raises:
            UnreadableInputError: the file cannot be read.
        """
        ...
