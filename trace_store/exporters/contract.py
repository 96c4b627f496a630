"""Input and output of exporters: a session, and a file with its losses.

Rule: a writer is a pure function of the session. It uses neither store nor clock, and writes equal bytes for equal
sessions. A new format is a module with the attributes of `FormatWriter` and a row in the registry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from trace_store import exporters
from trace_store.base import check
from trace_store.base.frozen import field, value
from trace_store.base.oid import ObjectId
from trace_store.context.compiled import CompiledContext, CompiledMessage
from trace_store.context.usage import Usage
from trace_store.disk.files import Disk

SESSION, AGENTS, REWINDS, COPIES = "", "agents", "rewinds", "copies"
"""Kinds of session branches: the session itself, or a branch below it."""

SKIPPED = "skipped"
"""`SessionTurn.hidden` of a message that has the priority `skip`."""

LOSSES = {
    "argument-text": "exact text of a tool call's arguments, if the format stores an object",
    "blank-text": "an empty or blank text",
    "call-format": "that a tool call's arguments are not JSON",
    "call-id": "the id that pairs a call with its result",
    "compaction": "that a message is the summary of a compaction",
    "control-character": "a control or invisible character that the format cannot represent",
    "data-schema": "the name of a data part's schema; the data becomes text",
    "empty-message": "a message without content",
    "error-flag": "that a tool result reports a failure",
    "ghost": "that a message is the placeholder of a removed one",
    "image": "an image",
    "image-form": "whether an image was given as bytes or as a URL, and its type",
    "label": "a label of a message",
    "message-author": "author of a message",
    "message-bounds": "where one message ends and the next begins",
    "message-id": "the id that the provider gave a message",
    "message-kind": "a message's kind, if it is not the usual one of its role",
    "message-model": "the model that wrote a message",
    "message-name": "the name of a speaker",
    "message-place": "position of a message or part, if the format requires another",
    "message-role": "a role that the format does not have",
    "message-time": "time of a message",
    "opaque-form": "exact bytes of a provider-specific block",
    "opaque-part": "a provider-specific block",
    "original-bytes": "the imported file, because its records were not kept",
    "priority": "that a message is pinned or important",
    "reasoning-signature": "the provider's signature of reasoning",
    "reasoning-text": "reasoning",
    "session-fact": "the session's id, title, folder, program version or git branch",
    "subagent": "the session of a subagent",
    "text": "a text",
    "tool-call": "a tool call",
    "tool-name": "a tool name that the format does not allow",
    "tool-result": "a tool result",
    "tool-schema": "schema of a tool",
    "usage-report": "a provider's usage report",
}
"""Stable codes of what an export may lose, with descriptions. Codes are added, never renamed."""


@value
class Loss:
    """Content of a session that the file does not have.

    Attributes:
        what: a code of LOSSES.
        count: how many.
        detail: a short addition, such as `bound to claude-opus-4-6`; may be empty.
    """

    what: str
    count: int
    detail: str = ""

    def __str__(self) -> str:
        noun = self.what.replace("-", " ")
        counted = f"{self.count:,} {noun if self.count == 1 else plural(noun)}"
        return f"{counted} ({self.detail})" if self.detail else counted


class Losses:
    """Counts the losses of one export."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, what: str, detail: str = "", count: int = 1) -> None:
        """Add `count` losses of a code; 0 is a no-op."""
        if count:
            self._counts[what, detail] = self._counts.get((what, detail), 0) + count

    def all(self) -> tuple[Loss, ...]:
        """Return the losses in order of code and detail."""
        return tuple(
            Loss(what, count, detail) for (what, detail), count in sorted(self._counts.items())
        )


@value
class SessionTurn:
    """One message of a session, with facts from its commit.

    Attributes:
        message: the message as it is in the context.
        commit: the commit that created it.
        time: commit time in milliseconds since the epoch, UTC.
        author: commit author.
        usage: the provider's usage report; set on one message per report, so that sums are right.
        reason: why it replaces other messages, such as `compaction`; "" for most.
        replaced: number of messages that its commit replaces.
        hidden: "" for a visible message; else "removed", "replaced" or SKIPPED.
        has_stale_usage: whether it had a usage report, of a context that was changed since.
    """

    message: CompiledMessage
    commit: ObjectId
    time: int
    author: str
    usage: Usage | None = None
    reason: str = ""
    replaced: int = 0
    hidden: str = ""
    has_stale_usage: bool = False

    @property
    def is_summary(self) -> bool:
        """Whether it is the summary of a compaction, by an agent or by `trace compress`."""
        return self.reason in ("compaction", "compression")


@value
class Facts:
    """What the records of a transcript say about the session; "" if unknown.

    Attributes:
        session: session id as the transcript writes it.
        title: title given by the program.
        cwd: working folder at the start.
        version: version of the program.
        branch: git branch at the start.
    """

    session: str = ""
    title: str = ""
    cwd: str = ""
    version: str = ""
    branch: str = ""


@value
class SubBranch:
    """A branch below a session's branch.

    Attributes:
        kind: AGENTS, REWINDS or COPIES.
        name: id of the subagent, or another distinguishing id.
        ref: full name of the branch.
        commit: tip of the branch.
    """

    kind: str
    name: str
    ref: str
    commit: ObjectId


class Reader(Protocol):
    """Reader of session data that few writers need."""

    def facts(self) -> Facts: ...
    def records(self, commit: ObjectId) -> list[bytes]: ...
    def is_branch(self, session: str) -> bool: ...


@value
class ExportSession:
    """A session to export: what a branch or commit compiles to.

    Attributes:
        id: session id as in the branch name; a branch name or abbreviated commit id for others.
        format: source format, such as `claude-code`; "" if it was not imported.
        thread: "" for the session itself; `agents/<id>`, `rewinds/<id>` or `copies/<id>` for a branch below it.
        ref: full name of its branch; "" if it was given as another revision.
        commit: the compiled commit.
        turns: messages in context order; hidden ones only if requested.
        context: the compiled context, which counts tokens and renders for providers.
        model: the model of the last answer in `turns`, or "".
        below: branches below the session's: subagents, rewinds, copies.
        hidden_count: number of messages that the context hides; 0 in a part without hidden messages.
        reader: reads the facts and raw records of its transcript when asked.
        begin: index in `turns` of the message that the session was looked up by; 0 if by anything else.
        project: the folder that holds the repository; "" if it is in memory.
        start: number of messages before `turns`; 0 unless it is a part of a session.
        count: number of messages of the whole session.
    """

    id: str
    format: str
    thread: str
    ref: str
    commit: ObjectId
    turns: tuple[SessionTurn, ...]
    context: CompiledContext
    model: str
    below: tuple[SubBranch, ...]
    hidden_count: int
    reader: Reader = field(hidden=True)
    begin: int = 0
    project: str = ""
    start: int = 0
    count: int = 0

    @property
    def tools(self) -> tuple[Any, ...]:
        """Schemas of the tools offered to the model, decoded from JSON."""
        return self.context.tools

    @property
    def subagents(self) -> tuple[SubBranch, ...]:
        """Branches of subagents."""
        return tuple(each for each in self.below if each.kind == AGENTS)

    @property
    def title(self) -> str:
        """Its title, else the start of its first prompt, else its id."""
        return exporters.overview.title_of(self)

    def overview(self) -> list[tuple[str, str]]:
        """Return what is known of the session as (name, value), in plain text; errors as in `facts`."""
        return exporters.overview.session_facts(self)

    def facts(self) -> Facts:
        """Return what the transcript's records say about the session.

        Empty if they were not stored.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a record is missing or damaged.
        """
        return self.reader.facts()

    def continues_other_session(self, facts: Facts) -> bool:
        """Return True if the branch was forked from a session that has its own branch."""
        return not self.format and self.reader.is_branch(facts.session)

    def records(self, turn: SessionTurn) -> list[bytes]:
        """Return the raw records of a message's commit; errors as in `facts`."""
        return self.reader.records(turn.commit)


@value
class SavedFile:
    """An exported file on the disk.

    Attributes:
        path: absolute path.
        size: size in bytes.
    """

    path: str
    size: int


@value
class Exported:
    """An exported file.

    Attributes:
        data: its bytes, or an iterable of chunks.
        losses: what the file lacks; empty if complete.
        file_name: suggested name, valid on every file system.
        text: True if it is UTF-8 text that a terminal can show.
        resume: where to put the file and how to resume the session; "" if the agent cannot resume from it.
        blake3: hash of the file, in hex, if it is the one that was imported; else "".
        placeholders: the number of secrets in an imported file that are stored as placeholders; 0 for other files.
        hidden_count: number of hidden messages that were left out although the format could hold them.
    """

    data: bytes | Iterable[bytes]
    losses: tuple[Loss, ...]
    file_name: str
    text: bool = True
    resume: str = ""
    blake3: str = ""
    placeholders: int = 0
    hidden_count: int = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes in chunks; only once, unless `data` is bytes or a list."""
        return iter((self.data,) if isinstance(self.data, bytes) else self.data)

    def to_bytes(self) -> bytes:
        """Return all bytes; only once, as `chunks`."""
        return b"".join(self.chunks())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> SavedFile:
        """Write it to a file, or under its suggested name to a folder; one given as `NAME/` is created.

        Raises:
            AlreadyExistsError: the file exists, and `overwrite` is not given.
            StorageError: the disk failed; no file is left.
        """
        check.path(path=path)
        check.flag(overwrite=overwrite)
        target = os.path.abspath(path)
        disk = Disk()
        if os.fspath(path).endswith((os.sep, "/")):
            disk.make_directory(target)
        if os.path.isdir(target):
            target = os.path.join(target, self.file_name)
        size = exporters.files.save_file(disk, target, self, overwrite=overwrite)
        return SavedFile(target, size)


class FormatWriter(Protocol):
    """Interface of a module that writes one format.

    A format for people may set `SHOWS_HIDDEN = True`: it then receives hidden turns and marks them. Others receive
    what the model is shown.

    Attributes:
        NAME: name of the format, such as `markdown`.
        SUFFIX: file suffix, such as `.md`.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a module's constant
    @property
    def SUFFIX(self) -> str: ...  # noqa: N802 - a module's constant
    @property
    def write(self) -> Callable[[ExportSession], Exported]:
        """Return the file of a session.

        Raises:
            InvalidInputError: the format cannot represent the session at all.
            ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
        """
        ...


def file_name(session: ExportSession, suffix: str) -> str:
    """Return the suggested file name of a session: id, thread and suffix."""
    name = "-".join(part for part in (session.id, *session.thread.split("/")) if part)
    clean = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return (clean.strip(".-")[:120] or "session") + suffix


def models_of(turns: Sequence[SessionTurn]) -> list[str]:
    """Return the models that answered, in order of first use."""
    return list(dict.fromkeys(turn.message.model for turn in turns if turn.message.model))


def plural(noun: str) -> str:
    """Return the plural of a noun; knows only the endings that occur in loss codes and reports."""
    if noun.endswith("s"):
        return noun
    return f"{noun.removesuffix('y')}ies" if noun.endswith(("ry", "ty")) else f"{noun}s"
