"""What a writer is given and what it gives back: a session as values, and a file with a list of what it lacks.

Rule: values and protocols. A writer is a pure function of the session; it reads no store, tells no time, and equal
sessions give equal bytes. Whoever writes a new form makes a module with what `Writer` has and a row in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from trace_store.context.compiled import CompiledContext, CompiledMessage
from trace_store.context.entries import REMOVED, REPLACED
from trace_store.context.usage import Usage
from trace_store.frozen import field, value
from trace_store.oid import ObjectId

SESSION, AGENTS, REWINDS, COPIES = "", "agents", "rewinds", "copies"
"""What a branch of a session is: the session itself, or what stands below it."""

SKIPPED = "skipped"
HIDDEN = (REMOVED, REPLACED, SKIPPED)
"""Why the model is not shown a message."""

LOSSES = {
    "argument-text": "the exact text of a tool call's arguments, where the form has an object",
    "blank-text": "a text that is empty, or of nothing but blanks",
    "call-format": "that a tool call's arguments are text and no JSON",
    "call-id": "the id that pairs a call with its result",
    "compaction": "that a message stands in for what was compacted",
    "control-character": "a character that the form cannot hold, or that would not be seen in it",
    "empty-message": "a message that says nothing",
    "error-flag": "that a tool result reports a failure",
    "ghost": "that a message stands for a removed one",
    "image": "an image",
    "image-form": "whether an image was given as bytes or as an address, and its type",
    "label": "a label of a message",
    "message-author": "who made a message",
    "message-bounds": "where one message ends and the next begins",
    "message-id": "the id that the provider gave a message",
    "message-kind": "a message's kind, where it is not the usual one of its role",
    "message-model": "the model that made a message",
    "message-name": "the name of a speaker",
    "message-place": "the place of a message or a part, where the form wants another",
    "message-role": "a role that the form does not have",
    "message-time": "when a message was made",
    "opaque-form": "the exact bytes of a block in one provider's own form",
    "opaque-part": "a block in one provider's own form",
    "original-bytes": "the file as it was imported, since its records were not kept",
    "priority": "that a message is pinned or important",
    "reasoning-signature": "the provider's proof that reasoning is the model's own",
    "reasoning-text": "reasoning",
    "session-fact": "the session's id, title, folder, program version or git branch",
    "subagent": "the session of a subagent",
    "text": "a text",
    "tool-call": "a call of a tool",
    "tool-name": "the name of a tool, where the form does not take it",
    "tool-result": "the result of a tool call",
    "tool-schema": "the schema of a tool that the model was offered",
    "usage-report": "what the provider reported that a request cost",
}
"""Stable words for what may be lost, and what each means. Words are added, never renamed."""


@value
class Loss:
    """Something of a session that is not in the file.

    Attributes:
        what: a word of LOSSES.
        count: how many of it.
        detail: more of it in a few words, such as `bound to claude-opus-4-6`; may be empty.
    """

    what: str
    count: int
    detail: str = ""

    def __str__(self) -> str:
        noun = self.what.replace("-", " ")
        counted = f"{self.count:,} {noun if self.count == 1 else _plural(noun)}"
        return f"{counted} ({self.detail})" if self.detail else counted


class Losses:
    """Counts what is lost while a file is written."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, what: str, detail: str = "", count: int = 1) -> None:
        """Count `count` more of a word of LOSSES; nothing for none."""
        if count:
            self._counts[what, detail] = self._counts.get((what, detail), 0) + count

    def found(self) -> tuple[Loss, ...]:
        """Return what was counted, sorted by word and detail."""
        return tuple(
            Loss(what, count, detail) for (what, detail), count in sorted(self._counts.items())
        )


@value
class Turn:
    """One message of a session, with what its commit knows of it.

    Attributes:
        message: the message as it stands in the context.
        commit: the commit that made it.
        time: when that was, in milliseconds since the epoch, UTC.
        author: by whom.
        usage: what the provider reported for it; a report is with one message only, so that sums are right.
        reason: why it stands in for others, such as `compaction`; "" for most, which stand for themselves.
        replaced: how many messages it stands in for, together with the others of its commit.
        hidden: "" for what stands in the context; else REMOVED, REPLACED or SKIPPED, where such were asked for.
    """

    message: CompiledMessage
    commit: ObjectId
    time: int
    author: str
    usage: Usage | None = None
    reason: str = ""
    replaced: int = 0
    hidden: str = ""


@value
class Facts:
    """What the records of a transcript say of the session; "" for what they do not say.

    Attributes:
        session: its id as the transcript spells it.
        title: what the program called it.
        cwd: the folder it began in.
        version: of the program.
        branch: git's branch at its beginning.
    """

    session: str = ""
    title: str = ""
    cwd: str = ""
    version: str = ""
    branch: str = ""


@value
class Below:
    """A branch below a session's.

    Attributes:
        kind: AGENTS, REWINDS or COPIES.
        name: the subagent's id, or what else tells it apart.
        ref: the full name of the branch.
        commit: where it ends.
    """

    kind: str
    name: str
    ref: str
    commit: ObjectId


class Reader(Protocol):
    """Reads of a session what few writers ask for."""

    def facts(self) -> Facts: ...
    def records(self, commit: ObjectId) -> list[bytes]: ...
    def session(self, ref: str) -> ExportSession: ...
    def is_branch(self, session: str) -> bool: ...


@value
class ExportSession:
    """A session to be written: what its branch, or any commit, compiles to.

    Attributes:
        id: of the session, as its branch is named; a branch's name, or the beginning of a commit's id for others.
        format: what it was imported from, such as `claude-code`; "" when it was not.
        thread: "" for the session itself, `agents/<id>`, `rewinds/<id>` or `copies/<id>` for a branch below it.
        ref: the full name of its branch; "" for a commit that was named otherwise.
        commit: the commit that was compiled.
        turns: its messages, in the order of the context; those that it hides only where they were asked for.
        context: the compiled context, which counts tokens and renders for providers.
        model: the model that spoke last, or "".
        below: the branches below the session's: subagents, rewinds, copies.
        hidden_count: messages that its commits made and the context hides.
        reader: reads the rest.
    """

    id: str
    format: str
    thread: str
    ref: str
    commit: ObjectId
    turns: tuple[Turn, ...]
    context: CompiledContext
    model: str
    below: tuple[Below, ...]
    hidden_count: int
    reader: Reader = field(hidden=True)

    @property
    def tools(self) -> tuple[Any, ...]:
        """The schemas of the tools that the model is offered, decoded from JSON."""
        return self.context.tools

    @property
    def subagents(self) -> tuple[Below, ...]:
        """The branches of its subagents."""
        return tuple(each for each in self.below if each.kind == AGENTS)

    def facts(self) -> Facts:
        """Return what the transcript's records say of the session; nothing when they were not kept.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a record is not here, or damaged.
        """
        return self.reader.facts()

    def goes_on_another(self, facts: Facts) -> bool:
        """Return True for a branch that was made from a session which has a branch of its own."""
        return not self.format and self.reader.is_branch(facts.session)

    def records(self, turn: Turn) -> list[bytes]:
        """Return the raw records that a message's commit was made from; errors as in `facts`."""
        return self.reader.records(turn.commit)

    def read_below(self, below: Below) -> ExportSession:
        """Return the session of a branch below; errors as in `session.read_session`."""
        return self.reader.session(below.ref)


@value
class Exported:
    """A file that was made of a session.

    Attributes:
        data: its bytes, or what makes them piece by piece.
        losses: what of the session is not in it; empty when nothing is missing.
        file_name: what it may be called; fit for every file system.
        text: whether it is UTF-8 text, which a terminal can be shown.
        resume: where to put the file and how to resume the session, as text; "" if the agent cannot resume from it.
    """

    data: bytes | Iterable[bytes]
    losses: tuple[Loss, ...]
    file_name: str
    text: bool = True
    resume: str = ""

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes in pieces; once only, unless `data` is bytes or a list."""
        return iter((self.data,) if isinstance(self.data, bytes) else self.data)

    def to_bytes(self) -> bytes:
        """Return all its bytes; once only, as `chunks`."""
        return b"".join(self.chunks())


class Writer(Protocol):
    """What a module that writes a form has.

    One that is for reading may also have `SHOWS_HIDDEN = True`: it can be given sessions with hidden turns, and marks
    them. Others are given what the model is shown.

    Attributes:
        NAME: by which it is asked for, such as `markdown`.
        SUFFIX: what names of its files end in, such as `.md`.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a module's constant
    @property
    def SUFFIX(self) -> str: ...  # noqa: N802 - a module's constant
    @property
    def write(self) -> Callable[[ExportSession], Exported]:
        """Return the file of a session.

        Raises:
            InvalidInputError: the form has no place for such a session at all.
            ObjectNotFoundError, CorruptObjectError: a content is not here, or damaged.
        """
        ...


def file_name(session: ExportSession, suffix: str) -> str:
    """Return what a session's file may be called: its id and thread, with this ending."""
    name = "-".join(part for part in (session.id, *session.thread.split("/")) if part)
    clean = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return (clean.strip(".-")[:120] or "session") + suffix


def models_of(turns: Sequence[Turn]) -> list[str]:
    """Return the models that spoke, in the order in which they first did."""
    return list(dict.fromkeys(turn.message.model for turn in turns if turn.message.model))


def _plural(noun: str) -> str:
    if noun.endswith("s"):
        return noun
    return f"{noun.removesuffix('y')}ies" if noun.endswith("ty") else f"{noun}s"
