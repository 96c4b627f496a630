"""Events of sequential transcripts, and readers that produce them.

Invariant: a `TurnReader` looks at one record at a time and returns its events; `turn_plan` builds commits. A format
is a reader and a row of the registry, and knows nothing of commits, growing files or saved state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.importers.contract import NOTHING, PlannedMessage, Skip
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import read_document, records_of
from trace_store.objects.parts import Part
from trace_store.transcripts.sources import Record


class Turn(NamedTuple):
    """New messages: one commit, unless grouped with others.

    Attributes:
        messages: messages to add, in order.
        key: id from the transcript; by default a hash of its record.
        time: milliseconds since the epoch; None repeats the last turn's.
        author: author without the format prefix: `user`, a model, or "".
        usage: the provider's usage report, as `convert.usage_counts` returns it.
        group: turns with the same group in a round form one commit, their parts one message per role: the pieces of
            an API message, or the results of its calls. "" is a commit of its own.
        tools, meta, links: as in `PlannedCommit`.
    """

    messages: tuple[PlannedMessage, ...]
    key: str = ""
    time: int | None = None
    author: str = ""
    usage: Mapping[str, int | str] = NOTHING
    group: str = ""
    tools: tuple[bytes, ...] | None = None
    meta: Mapping[str, Any] = NOTHING
    links: tuple[tuple[str, str], ...] = ()


class Compaction(NamedTuple):
    """Messages that replace the context so far; further attributes as in `Turn`.

    Attributes:
        keeps: keys of turns that stay in the context; unknown keys are ignored.
        since: key of a turn that stays with all that follow it; an earlier summary does not.
        after: key of a turn whose followers stay; "" is the start.
        last: True to place the messages after what stays; else they take the place of the first replaced one.
    """

    messages: tuple[PlannedMessage, ...]
    key: str = ""
    time: int | None = None
    author: str = ""
    usage: Mapping[str, int | str] = NOTHING
    reason: str = "compaction"
    keeps: tuple[str, ...] = ()
    last: bool = False
    since: str | None = None
    after: str | None = None


class TurnEdit(NamedTuple):
    """A new version of a turn.

    Its messages get new parts, and additional ones are appended.

    Attributes:
        key: key of the turn; unknown keys are ignored.
        messages: all of its messages now.
        time: milliseconds since the epoch; None repeats the last turn's.
        usage: current usage report; ignored once the round is over.
    """

    key: str
    messages: tuple[PlannedMessage, ...]
    time: int | None = None
    usage: Mapping[str, int | str] = NOTHING


class ResultClearing(NamedTuple):
    """Cleared content of results, with a placeholder for the model.

    Attributes:
        results: (key of a turn, message index, call ids); ignored if unknown or out of the context.
        placeholder: text to show.
        time: milliseconds since the epoch; None repeats the last turn's.
    """

    results: tuple[tuple[str, int, tuple[str, ...]], ...]
    placeholder: str
    time: int | None = None


class UsageReport(NamedTuple):
    """A usage report that follows its API message; ignored once its round is over.

    Attributes:
        usage: as in `Turn`.
        key: key of the turn; "" for the round's.
    """

    usage: Mapping[str, int | str]
    key: str = ""


class Rewind(NamedTuple):
    """A return to before a turn; the abandoned turns become a branch of their own.

    Attributes:
        key: key of the first abandoned turn; None abandons all. Unknown keys are ignored.
    """

    key: str | None


class Return(NamedTuple):
    """A return to a turn of any line of work; what the current line has after it becomes a branch of its own.

    Attributes:
        key: key of the turn that becomes the last one; "" is the start. Unknown keys are ignored.
    """

    key: str


class Switch(NamedTuple):
    """A change to another line of work.

    Attributes:
        name: branch name below the session's: `agents/<id>`, `conversations/<n>`; "" for the session. Components
            are valid in a ref (`convert.ref_component`).
        at: key of the turn that a new line branches from; None starts empty.
        fresh: True if a new line first removes the context it branched from.
    """

    name: str
    at: str | None = None
    fresh: bool = True


Event = Turn | Compaction | TurnEdit | ResultClearing | UsageReport | Rewind | Return | Switch


def join_turns(turn: Turn, more: Turn) -> Turn:
    """Merge two turns of a group: parts by role, and the later usage."""
    messages = list(turn.messages)
    for added in more.messages:
        same = [index for index, message in enumerate(messages) if message.role == added.role]
        if not same:
            messages.append(added)
            continue
        role, parts, kind, model, id_, labels, skipped, name, priority = messages[same[-1]]
        messages[same[-1]] = PlannedMessage(
            role,
            (*parts, *added.parts),
            kind,
            added.model or model,
            id_ or added.id,
            labels,
            skipped,
            name,
            priority,
        )
    return Turn(
        tuple(messages),
        turn.key,
        turn.time,
        turn.author,
        more.usage or turn.usage,
        turn.group,
        turn.tools if more.tools is None else more.tools,
        {**turn.meta, **more.meta} if more.meta else turn.meta,
        tuple(dict.fromkeys((*turn.links, *more.links))),
    )


def all_parts(messages: Sequence[PlannedMessage]) -> tuple[Part, ...]:
    """Return the parts of messages, in order."""
    if len(messages) == 1:
        return tuple(messages[0].parts)
    return tuple([part for message in messages for part in message.parts])


class TurnReader(ABC):
    """Reader of the records of one format.

    Attributes:
        name: file name without suffix.
        state: state between records: flat JSON values. It is saved by shallow copy, so replace lists and maps
            instead of changing them.
    """

    AGENT = ""
    """Prefix of commit authors, such as `codex`."""
    LABELS: tuple[str, ...] = ("type",)
    """Fields that name a record's type in reports; the first that is text counts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: dict[str, Any] = {}

    def records(self, line: InputLine) -> Iterable[Record | Skip]:
        """Return the records of a line, or the elements of a document."""
        return records_of(line)

    @abstractmethod
    def read(self, record: Record) -> Iterable[Event]:
        """Return the events of a record in order; empty if it has no message."""

    def finish(self) -> Iterable[Event]:
        """Return the events at the end of the file."""
        return ()

    def label(self, record: Record) -> str:
        """Return a record's type for reports."""
        found = (record.data.get(name) for name in self.LABELS)
        return next((each[:100] for each in found if isinstance(each, str)), "untyped")

    @property
    def session(self) -> str:
        """Session id from the transcript; "" means the file name."""
        session = self.state.get("session")
        return session if isinstance(session, str) else ""

    @property
    def agent(self) -> str:
        """Id of the subagent whose file this is; "" for a session's file."""
        agent = self.state.get("agent")
        return agent if isinstance(agent, str) else ""


class DocumentReader(TurnReader):
    """Reader of JSON documents, whose records are the elements of their lists."""

    LISTS: tuple[str, ...] = ()
    """Keys of the document's lists; `json_records.ROOT` if the document is the list."""

    def begin(self, fields: Mapping[str, Any]) -> None:
        """Receive the document's other fields."""

    def records(self, line: InputLine) -> Iterable[Record | Skip]:
        """Return the elements of the lists, then the damage, if any.

        A file with one record a line is read as such.
        """
        return self._elements(line) if line.whole else records_of(line)

    def _elements(self, line: InputLine) -> Iterator[Record | Skip]:
        document = read_document(line, *self.LISTS)
        if document.damage is None and document.lists.keys().isdisjoint(self.LISTS):
            yield from records_of(line)
            return
        self.begin(document.fields)
        for name in self.LISTS:
            yield from document.lists.get(name, ())
        if document.damage is not None:
            yield document.damage
