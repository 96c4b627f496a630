"""What an importer makes of a file: planned commits, as values that know nothing of a store.

Rule: pure values and protocols. A plan is a function of the file alone, so two people who import the same file get the
same commits. `writing` puts a plan into a store; whoever reads a new format writes a module with the functions of
`Format` and a row in the registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.frozen import value
from trace_store.importers.decode import Line, ReadAt
from trace_store.importers.files import Inner
from trace_store.objects.parts import Part
from trace_store.transcripts.records import Record

__all__ = [
    "AGENTS_KEY",
    "DUPLICATE",
    "MESSAGE",
    "NOTHING",
    "NO_MESSAGES",
    "SOURCE",
    "UNREADABLE",
    "Count",
    "Format",
    "Place",
    "Plan",
    "Planned",
    "PlannedCommit",
    "PlannedMessage",
    "PlannedThread",
    "Record",
    "Resumption",
    "Skip",
]

Place = tuple[int, int]
"""A message of the plan: the number of its planned commit, and which of its messages."""

AGENTS_KEY = "agents"
"""In a commit's metadata: ids of subagents whose answers it holds, which it called in the commit before."""

MESSAGE = "message"
SOURCE = "source"
EVENT = "event"
"""A record that has a commit of its own in which nobody says anything: what happened, and what it is linked to."""
DUPLICATE = "duplicate"
UNREADABLE = "unreadable"
NO_MESSAGES = "no-messages"
"""A record of a file in which nobody says anything, so that there is no commit to keep it with."""


NOTHING: Mapping[str, Any] = MappingProxyType({})
"""What is planned is a tuple each: there are as many as records, and a tuple is made in a third of the time."""


class Skip(NamedTuple):
    """Something in the file that does not become part of the repository, and why.

    Attributes:
        line: its number in the file.
        reason: a stable word, such as `not-json`.
        detail: more of it, for people.
    """

    line: int
    reason: str
    detail: str


class PlannedMessage(NamedTuple):
    """A message to be stored: what `objects.message.Message` takes, with its content at hand."""

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
        number: by which later commits and places name it.
        key: the id that the transcript gives it; unique in the plan.
        thread: the line of work it continues; see `PlannedThread`.
        parent: the number of the commit whose context it continues; None for a beginning.
        author: plain text.
        time: milliseconds since the epoch.
        removes: messages that it takes out of the context first.
        replaces: messages that its own stand in for; with `reason`.
        edits: messages that get a new wording.
        clears: calls whose results' content is put aside, by the message that holds them.
        placeholder: what the model is shown in place of that content.
        messages: what it adds at the end (or in place of what it replaces).
        after: the neighbour its messages move behind; None leaves them at the end.
        before: messages that move behind its own last one, in this order.
        answers: by the id of a result, the message with its call, where the transcript tells which of several it is.
        tools: the tools that the model is offered from here on, each a schema in JSON; None changes nothing.
        usage: what the provider reported, or nothing.
        meta: small facts, in storable form.
        links: (relation, mention) pairs, such as the code commits that the work led to.
        records: the raw records it is made from, with those that have no place of their own.
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


class PlannedThread(NamedTuple):
    """A line of work gets a name: `` for the session itself, `agents/<id>` or the like for its branches."""

    thread: int
    name: str


Planned = PlannedCommit | PlannedThread
Count = tuple[str, str]
"""A record's type and what became of it: MESSAGE, SOURCE, or the reason of a skip."""


@value
class Resumption:
    """Where a saved plan goes on.

    Attributes:
        offset, line: from where the file is read again.
        commits: how many planned commits are not planned again.
    """

    offset: int
    line: int
    commits: int


class Plan(Protocol):
    """Makes planned commits from the lines of one file; holds what is unfinished, and no more."""

    @property
    def session(self) -> str:
        """The id of the session, fit for a ref; known once a commit was planned."""
        ...

    @property
    def agent(self) -> str:
        """The id of the subagent whose own file this is; empty for the session's file."""
        ...

    def feed(self, line: Line) -> Iterable[Planned]:
        """Take the next line and return what became final."""
        ...

    def finish(self) -> Iterator[Planned]:
        """Yield what the unfinished end of the file makes. The plan takes no more lines."""
        ...

    def save(self) -> Any:
        """Return what is remembered as values that JSON knows, to go on from when the file has grown."""
        ...

    def resumes_at(self) -> Resumption | None:
        """Return where a saved plan wants to read on; None is behind the last line that was understood."""
        ...

    def counts(self) -> Mapping[Count, int]:
        """Return how many records became what."""
        ...

    def skips(self) -> Sequence[Skip]:
        """Return what was skipped, in the order of the file."""
        ...


class Format(Protocol):
    """What reads a format: a row of the registry.

    Attributes:
        NAME: by which `--format` and the branches of its sessions know it.
        SUFFIXES: how the names of its files end, with the dot; a folder is searched for them.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802 - what modules have is a constant

    @property
    def SUFFIXES(self) -> Sequence[str]: ...  # noqa: N802

    def sniff(self, head: bytes) -> bool:
        """Tell from the first bytes of a file whether it is of this format."""
        ...

    def is_document(self, head: bytes) -> bool:
        """Tell from the first bytes whether the file is one document, and not a record a line.

        A document is given to the plan as one line, whole.
        """
        ...

    def histories(self, environment: Environment, project_dir: str, disk: Disk) -> list[str]:
        """Return the transcripts of a project that lie where the program keeps them, sorted."""
        ...

    def plan(self, name: str, read_at: ReadAt) -> Plan:
        """Begin the plan of a file, given its name without the ending."""
        ...

    def resume(self, name: str, read_at: ReadAt, saved: Any) -> Plan:
        """Go on with a saved plan.

        Raises:
            StateError: the file no longer holds what was unfinished.
            KeyError, TypeError, ValueError: it was not saved by this version.
        """
        ...


@runtime_checkable
class Holding(Protocol):
    """What a format is beside `Format` when some of its files hold several transcripts, such as a database."""

    def holds_several(self, head: bytes) -> bool:
        """Tell from the first bytes of a file whether it holds several."""
        ...

    def inside(self, path: str, disk: Disk) -> Sequence[Inner]:
        """Return the transcripts in such a file; each is imported by itself.

        Raises:
            UnreadableInputError: the file cannot be looked into.
        """
        ...
