"""What a format says happens in a transcript, for those in which one thing is said after the other.

Rule: a `TurnReader` looks at one record at a time and says what it means; `turn_plan` makes commits of it. So a format
is a reader and a row of the registry, and knows nothing of commits, growing files or what is remembered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.importers.contract import NOTHING, PlannedMessage, Skip
from trace_store.importers.decode import Line
from trace_store.importers.documents import read_document
from trace_store.importers.json_records import records_of
from trace_store.objects.parts import Part
from trace_store.transcripts.records import Record


class Turn(NamedTuple):
    """Something is said: one commit, unless it goes with another of its group.

    Attributes:
        messages: what is added, in order.
        key: the transcript's own id of it; without one, the bytes of its record give it.
        time: milliseconds since the epoch; None is that of the turn before.
        author: the rest of the author behind the format's name: `user`, a model, or nothing.
        usage: what the provider reported, as `normalise.usage_counts` returns it.
        group: turns of one group in the same round are one commit, and their parts one message of each role: the
            pieces of one API message, or the results of its calls. Empty is a commit of its own.
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
    """Messages stand in for what was said so far; attributes as in `Turn`, and two more.

    Attributes:
        keeps: keys of turns that stay in the context; unknown keys keep nothing.
        last: whether the messages go behind what stays; else they stand where the first that went stood.
    """

    messages: tuple[PlannedMessage, ...]
    key: str = ""
    time: int | None = None
    author: str = ""
    usage: Mapping[str, int | str] = NOTHING
    reason: str = "compaction"
    keeps: tuple[str, ...] = ()
    last: bool = False


class Rewording(NamedTuple):
    """A turn again, as it is now: its messages get other parts, and those that it has gained go to the end.

    Attributes:
        key: of the turn; unknown keys change nothing.
        messages: all that it says now.
        time: milliseconds since the epoch; None is that of the turn before.
        usage: what the provider reported by now; it counts while the turn's round is not over.
    """

    key: str
    messages: tuple[PlannedMessage, ...]
    time: int | None = None
    usage: Mapping[str, int | str] = NOTHING


class Clearing(NamedTuple):
    """The content of results is put aside, and a model is shown something else in its place.

    Attributes:
        results: (the key of a turn, which of its messages, ids of calls). What is unknown, or out of the context, is
            passed over.
        placeholder: what is shown.
        time: milliseconds since the epoch; None is that of the turn before.
    """

    results: tuple[tuple[str, int, tuple[str, ...]], ...]
    placeholder: str
    time: int | None = None


class Reported(NamedTuple):
    """The provider's usage of an API message, told behind it. Nothing when its round is over.

    Attributes:
        usage: as in `Turn`.
        key: of the message's turn; empty is that of the round.
    """

    usage: Mapping[str, int | str]
    key: str = ""


class GoBack(NamedTuple):
    """The talk goes on from before a turn; what it leaves becomes a branch of its own.

    Attributes:
        key: of the first turn that is left; None goes back to the very beginning. Unknown keys change nothing.
    """

    key: str | None


class Switch(NamedTuple):
    """What follows is said in another line of work.

    Attributes:
        name: what its branch is called below the session's: `agents/<id>`, `conversations/<n>`; empty for the session.
            Its components are fit for a ref (`naming.ref_component`).
        at: the key of the turn it branches from, when it is new; None begins with nothing.
        fresh: whether a new one that branches begins by taking out the context it was called from.
    """

    name: str
    at: str | None = None
    fresh: bool = True


Event = Turn | Compaction | Rewording | Clearing | Reported | GoBack | Switch


def joined(turn: Turn, more: Turn) -> Turn:
    """Return two turns of a group as one: their messages' parts, role by role, and the later usage."""
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
    """Reads the records of one format; subclasses say what they mean.

    Attributes:
        name: the file's name without its ending.
        state: what it remembers between records: flat, of values that JSON knows. It is saved while the file grows, by
            a shallow copy: put new values in, do not change lists and maps that are in it.
    """

    AGENT = ""
    """By which name authors of commits begin, such as `codex`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: dict[str, Any] = {}

    def records(self, line: Line) -> Iterable[Record | Skip]:
        """Return the records of a line; of a document, given as one line, its elements."""
        return records_of(line)

    @abstractmethod
    def read(self, record: Record) -> Iterable[Event]:
        """Return what a record means, in order; nothing when nobody says anything in it."""

    def finish(self) -> Iterable[Event]:
        """Return what the end of the file means, for what could not be said before."""
        return ()

    def label(self, record: Record) -> str:
        """Return a record's type as reports name it."""
        kind = record.data.get("type")
        return kind[:100] if isinstance(kind, str) else "untyped"

    @property
    def session(self) -> str:
        """The id that the transcript gives its session, once it is known; empty takes the file's name."""
        found = self.state.get("session")
        return found if isinstance(found, str) else ""

    @property
    def agent(self) -> str:
        """The id of the subagent whose own file this is; empty for a session's file."""
        found = self.state.get("agent")
        return found if isinstance(found, str) else ""


class DocumentReader(TurnReader):
    """A reader of files that are one JSON document; its records are the elements of the lists in it."""

    LISTS: tuple[str, ...] = ()
    """Keys of the document's lists; `documents.ROOT` when the document itself is the list."""

    def begin(self, fields: Mapping[str, Any]) -> None:
        """Take what the document says beside its lists."""

    def records(self, line: Line) -> Iterable[Record | Skip]:
        """Return the elements of the document's lists, and then where it is damaged, if it is.

        What the file holds as one record a line comes as it is.
        """
        return self._elements(line) if line.whole else records_of(line)

    def _elements(self, line: Line) -> Iterator[Record | Skip]:
        document = read_document(line, *self.LISTS)
        if document.damage is None and document.lists.keys().isdisjoint(self.LISTS):
            yield from records_of(line)
            return
        self.begin(document.fields)
        for name in self.LISTS:
            yield from document.lists.get(name, ())
        if document.damage is not None:
            yield document.damage
