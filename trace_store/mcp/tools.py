"""The tools: search, log, show, compile, diff, why; and, if the user allows it, those that record.

Rule: no tool takes the path of a file that it opens. The repository is fixed when the server starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from trace_store import errors
from trace_store.base.ident import known_time
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import TRAJECTORIES
from trace_store.mcp.answers import (
    MAXIMUM_OFFSET,
    MAXIMUM_TOKENS,
    AnswerWriter,
    EntryPage,
    TextPart,
    offset_of,
)
from trace_store.objects.commit import Commit
from trace_store.objects.parts import Data, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.records import record
from trace_store.repo.repository import Repo
from trace_store.trajectories.event_search import FoundEvent

Query = Annotated[str, Field(max_length=500)]
Ref = Annotated[str, Field(max_length=200)]
Words = Annotated[str, Field(max_length=20_000)]
Cursor = Annotated[str, Field(max_length=100, description="`next` of the last answer")]
Limit = Annotated[int, Field(ge=1, le=100)]
Tokens = Annotated[int, Field(ge=50, le=MAXIMUM_TOKENS)]
Share = Annotated[float, Field(ge=0, le=1)]

SIMILAR = 5
"""How many decisions on similar questions are shown if nothing has all words."""
_OUTSIDE = re.compile(r"[/\\~]|[A-Za-z]:[/\\]|-|.*(?:^|[/\\])\.\.(?:[/\\]|$)|.*[\0\n]", re.DOTALL)
"""Targets that are not paths in the project: absolute paths, paths that leave it, and options."""


class ReadTools:
    """Tools that read one repository."""

    def __init__(self, repo: Repo, folder: str) -> None:
        self._repo = repo
        self._folder = folder
        self._answers = AnswerWriter(repo)

    def search(
        self,
        query: Query,
        session: Ref = "",
        role: Ref = "",
        limit: Limit = 10,
        cursor: Cursor = "",
    ) -> EntryPage:
        """Find messages, decisions and findings that have all words; "a phrase", word*, OR, -word. Newest first."""
        offset = _place(cursor)
        most = offset + limit + 1  # one more shows whether there are more
        hits = self._repo.search(
            query, limit=most, hidden=False, echoes=False, session=session, role=role
        )
        titles = self._repo.sessions.titles(*{hit.ref for hit in hits})
        found = [
            (hit.time, _without(record(hit, title=titles.get(hit.ref, "")), "start", "end"))
            for hit in hits
        ]
        events = () if session or role else self._events(query, most, is_alone=not hits)
        found += [(each.event.time, _event_entry(each)) for each in events]
        found.sort(key=lambda each: -each[0])
        return self._answers.page([entry for _, entry in found], offset, limit)

    def _events(self, query: str, limit: int, *, is_alone: bool) -> Sequence[FoundEvent]:
        """Return the events that match; if nothing else does, the decisions that share a word with the query."""
        found = self._repo.trajectories.search(query, limit=limit)
        if found or not is_alone:
            return found
        return self._repo.trajectories.similar(query, limit=min(limit, SIMILAR))

    def log(self, ref: Ref = "HEAD", limit: Limit = 20, cursor: Cursor = "") -> EntryPage:
        """List the commits of a branch, session, range (A..B) or trajectories/ID, newest first."""
        offset = _place(cursor)
        entries = self._repo.log(ref, limit=offset + limit + 1)
        return self._answers.page(map(record, entries), offset, limit)

    def show(self, address: Ref, max_tokens: Tokens = 2_000, cursor: Cursor = "") -> TextPart:
        """Read a message (COMMIT.N), decision, commit, or branch tip in full, in parts."""
        source, text = self._found(address)
        return self._answers.passage(source, text, offset_of(cursor), max_tokens)

    def compile(self, ref: Ref = "HEAD", limit: Limit = 20, cursor: Cursor = "") -> EntryPage:
        """List the messages that a model would be shown at a commit, in order."""
        offset = _place(cursor)
        context = self._repo.compile(ref)
        sizes = context.message_tokens()
        entries = (
            {
                "address": message.address.hex,
                "role": message.role,
                "kind": message.kind,
                "token_count": sizes[number][0],
                "text": message_text(message.parts),
            }
            for number, message in enumerate(context.messages)
        )
        return self._answers.page(entries, offset, limit)

    def diff(
        self, before: Ref, after: Ref = "HEAD", limit: Limit = 20, cursor: Cursor = ""
    ) -> EntryPage:
        """List the messages that differ between the contexts of two commits."""
        found = self._repo.diff(before, after)
        return self._answers.page(map(record, found.changes), _place(cursor), limit)

    def why(self, target: Ref, limit: Limit = 10, cursor: Cursor = "") -> EntryPage:
        """List the decisions behind a commit of the code, a file in the project, or FILE:LINE."""
        if _OUTSIDE.match(target):
            raise errors.InvalidInputError(
                f"not a commit, or a file in the project: {target[:80]!r}", argument="target"
            )
        offset = _place(cursor)
        reasons = self._repo.trajectories.why(target, folder=self._folder, limit=offset + limit + 1)
        return self._answers.page(map(record, reasons), offset, limit)

    def _found(self, address: str) -> tuple[dict[str, Any], str]:
        """Return what has an address: where it comes from, and its text."""
        repo = self._repo
        try:
            state = repo.message(address)
        except (errors.NotFoundError, errors.InvalidInputError) as error:
            oid = self._commit_named(address, error)
        else:
            born = repo.resolve(state.address.birth.hex())
            message = state.message
            source = {
                "address": state.address.hex,
                "role": message.role,
                "kind": message.kind,
                **self._commit_source(born),
                "hidden": state.hidden or None,
            }
            return source, message_text(message.parts)
        found = repo.get(oid)
        if not isinstance(found, Commit):
            raise errors.InvalidInputError(
                f"not a message or a commit: {address[:80]!r}", argument="address"
            )
        [entry] = repo.log(oid, limit=1)
        messages = [
            f"[{where.short()} {message.role}]\n{message_text(message.parts)}"
            for where, message in entry.messages
        ]
        text = "\n\n".join(messages) or f"It adds no message: {entry.summary()}"
        return {"commit": oid.hex(), **self._commit_source(oid)}, text

    def _commit_named(self, revision: str, error: errors.TraceError) -> ObjectId:
        """Resolve a name that is not a message's; if nothing has it, raise the error about the message."""
        try:
            return self._repo.resolve(revision)
        except errors.NotFoundError:
            if isinstance(error, errors.MessageNotFoundError):
                raise error from None
            raise

    def _commit_source(self, oid: Any) -> dict[str, Any]:
        [entry] = self._repo.log(oid, limit=1)
        names = self._repo.branches.names([oid]).get(oid, ())
        return {
            "author": entry.commit.author,
            "time": known_time(entry.commit.time),
            "message": entry.commit.message,
            "refs": list(names),
        }


class WriteTools:
    """Tools that record. Each call is one commit, which `trace undo` takes back."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._answers = AnswerWriter(repo)

    def decision(
        self,
        chosen: Words,
        question: Words = "",
        reasoning: Words = "",
        alternatives: Annotated[list[str], Field(max_length=20)] = [],  # noqa: B006 - shown in the schema
        supersedes: Annotated[list[str], Field(max_length=20)] = [],  # noqa: B006
        confidence: Share | None = None,
        trajectory: Ref = "",
    ) -> EntryPage:
        """Record a decision of the current trajectory. An alternative is "OPTION: REASON"."""
        event = self._repo.trajectories.decide(
            question,
            chosen,
            reasoning=reasoning,
            alternatives=alternatives,
            supersedes=supersedes,
            confidence=confidence,
            trajectory=trajectory,
        )
        return self._done(event)

    def finding(self, text: Words, significance: Ref = "", trajectory: Ref = "") -> EntryPage:
        """Record a finding of the current trajectory; significance is low, medium, high or critical."""
        event = self._repo.trajectories.record(
            "finding", text, significance=significance, trajectory=trajectory
        )
        return self._done(event)

    def pin(self, address: Ref, ref: Ref = "") -> EntryPage:
        """Protect a message from compression."""
        return self._done(self._repo.annotate(address, priority="pinned", ref=ref))

    def checkpoint(
        self, name: Ref, ref: Ref = "HEAD", reason: Words = "", soft: bool = False
    ) -> EntryPage:
        """Save the state of a branch under a name; soft saves a summary of it instead."""
        return self._done(self._repo.checkpoints.save(name, ref=ref, reason=reason, soft=soft))

    def _done(self, result: object) -> EntryPage:
        self._repo.seal()
        return self._answers.page([record(result)], 0, 1)


def message_text(parts: Any) -> str:
    """Return the text of a message, with its calls and results; reasoning and media are only named."""
    return "\n".join(text for part in parts for text in _part_text(part))


def _part_text(part: Part) -> Iterator[str]:
    if isinstance(part, Data):  # which is a text, too
        yield part.indented
    elif isinstance(part, Text):
        yield part.text
    elif isinstance(part, ToolCall):
        yield f"[call {part.name}] {part.arguments}"
    elif isinstance(part, ToolResult):
        yield "[failed result]" if part.is_error else "[result]"
        for each in part.content:
            yield from _part_text(each)
    elif isinstance(part, Reasoning):
        yield "[reasoning, not shown]"
    else:
        yield f"[{part.type}]"


def _place(cursor: str) -> int:
    """Return the number of entries before a cursor; raises as `offset_of`."""
    offset = offset_of(cursor)
    if offset > MAXIMUM_OFFSET:
        raise errors.InvalidInputError(f"not a cursor: {cursor[:40]!r}", argument="cursor")
    return offset


def _event_entry(found: FoundEvent) -> dict[str, Any]:
    """Return an event of a trajectory as an entry, in the shape of a message's."""
    event = found.event
    return {
        "address": event.id.hex,
        "ref": f"{TRAJECTORIES}{found.state.id}",
        "time": known_time(event.time),
        "type": event.type,
        "snippet": found.snippet.text,
        "title": found.state.title,
    }


def _without(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: each for name, each in found.items() if name not in names}
