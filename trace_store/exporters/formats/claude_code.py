"""Claude Code's transcript of a session, to lay where it looks for sessions and to go on from.

Rule: a line for each block of an API message and for each result, every line hanging on the one before, so that whoever
walks the links from the end meets all of them.

- What a system or a developer said is a line of the user that Claude Code put in (`isMeta`), as it does with reminders:
  its transcripts hold no system prompt.
- Reasoning is there when a Claude made it, with its signature. Without one the API refuses it.
- Arguments are a JSON object; those that are none are the text `input` in one.
- Results stand behind the message with their calls. Calls without a result stay, as in the transcripts of sessions that
  were interrupted.
- A summary at the very beginning of the context is marked as one, behind the boundary of a compaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.exporters.contract import Exported, ExportSession, Facts, file_name
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.anthropic_parts import (
    PROVIDER,
    AnthropicParts,
    block,
    content,
    fit_usage,
    usage_of,
)
from trace_store.exporters.lossy.calls import answers_behind_calls, settle_calls
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    USER,
    Draft,
    apart,
    drafts_of,
    fit_parts,
    forget,
    with_roles,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.ident import format_time
from trace_store.importers.formats.claude_code.locations import project_name
from trace_store.importers.formats.claude_code.records import SYNTHETIC_MODEL, is_harness_text
from trace_store.importers.json_records import compact
from trace_store.objects.content import bytes_of
from trace_store.objects.parts import Opaque, ToolResult
from trace_store.providers.wire import to_bytes, word

NAME = "claude-code"
SUFFIX = ".jsonl"

VERSION = "2.1.218"
"""The version of Claude Code whose lines these are, where a session is not one of Claude Code's own."""
ID_LIMIT = 256
_INSTRUCTION = "instruction"
_BOUNDARY = "Conversation compacted"

Line = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the transcript; see `contract.Writer`."""
    drafts = _fit(session)
    facts = _facts(session)
    lines = _Lines(session, facts).all(drafts)
    data = b"".join(to_bytes(line) + b"\n" for line in lines)
    # Claude Code finds a session to resume by the name of its file.
    name = file_name(session, SUFFIX) if session.thread else facts.session + SUFFIX
    folder = (
        f"~/.claude/projects/{project_name(facts.cwd)}"
        if facts.cwd
        else "~/.claude/projects/PROJECT"
    )
    where = f" in {facts.cwd}" if facts.cwd else ""
    resume = f"in {folder}/ Claude Code finds it: `claude --resume {facts.session}`{where}"
    losses = losses_of(session, drafts, facts=facts)
    return Exported(data, losses, name, resume="" if session.thread else resume)


def _fit(session: ExportSession) -> list[Draft]:
    """Return the messages as Claude Code's importer reads them back."""
    drafts = drafts_of(session)
    parts = AnthropicParts(compact, lambda b: Opaque(PROVIDER, bytes_of(compact(b))))
    coerce.fit_times(drafts)
    coerce.fit_names(drafts)
    drafts = apart(drafts, beside_results=True)
    with_roles(drafts, (USER, ASSISTANT, TOOL))
    drafts = fit_parts(drafts, parts.fit, parts.inside)
    with_roles(drafts, (USER, ASSISTANT, TOOL))
    drafts = settle_calls(drafts, lambda id_: word(id_, ID_LIMIT, "call"))
    drafts = answers_behind_calls(drafts)
    said: Draft | None = None
    for number, draft in enumerate(drafts):
        summary = draft.summary and not number and draft.role == USER
        put_in = draft.role == USER and draft.read_kind() == _INSTRUCTION
        forget([draft])
        draft.summary = summary
        if draft.role == ASSISTANT:
            draft.usage = None if draft.model == SYNTHETIC_MODEL else fit_usage(draft.usage)
            said = None
        else:
            draft.model = draft.id = ""
            draft.usage = None
        if draft.role == USER:
            harness = "freeform" if is_harness_text(draft.parts) else ""
            draft.kind = _INSTRUCTION if put_in else harness
            # A line that was put in is read as of the commit of the line before it.
            if put_in and said is not None:
                draft.time = said.time
            else:
                said = None if summary else draft
    coerce.unique_ids([d for d in drafts if d.role == ASSISTANT], "msg_01", 22, session)
    return drafts


def _facts(session: ExportSession) -> Facts:
    known = session.facts()
    own = session.format == NAME and known.version
    made = coerce.uuid(NAME, coerce.beginning(session))
    return Facts(
        session=coerce.session_uuid(session, known, made),
        title=known.title,
        cwd=known.cwd,
        version=own or VERSION,
        branch=known.branch,
    )


class _Lines:
    """Writes drafts as lines."""

    def __init__(self, session: ExportSession, facts: Facts) -> None:
        self._session = session
        self._facts = facts
        self._last: str | None = None
        self._count = 0
        self._callers: dict[str, str] = {}

    def all(self, drafts: Sequence[Draft]) -> Iterator[Line]:
        """Yield the lines, in order."""
        facts = self._facts
        if facts.title:
            yield {"type": "ai-title", "aiTitle": facts.title, "sessionId": facts.session}
        for draft in drafts:
            if draft.role == ASSISTANT:
                yield from self._answer(draft)
            elif draft.role == TOOL:
                yield from self._results(draft)
            else:
                yield from self._input(draft)

    def _answer(self, draft: Draft) -> Iterator[Line]:
        parts = draft.parts
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            reason = "tool_use" if draft.calls else "end_turn"
            message: Line = {
                "id": draft.id,
                "type": "message",
                "role": ASSISTANT,
                "model": draft.model,
                "content": [block(part)],
                "stop_reason": reason if last else None,
                "stop_sequence": None,
            }
            if draft.usage is not None:
                message["usage"] = usage_of(draft.usage)
            yield self._line(draft, {"type": ASSISTANT, "message": message})
            for call in draft.calls:
                if call is part and self._last is not None:
                    self._callers[call.id] = self._last

    def _results(self, draft: Draft) -> Iterator[Line]:
        results = draft.results
        rest = [part for part in draft.parts if not isinstance(part, ToolResult)]
        for index, result in enumerate(results):
            told = [block(result)]
            if index == len(results) - 1:
                told += [block(part) for part in rest]
            more: Line = {"type": USER, "message": {"role": USER, "content": told}}
            caller = self._callers.get(result.call_id)
            if caller is not None:
                more["sourceToolAssistantUUID"] = caller
            yield self._line(draft, more)

    def _input(self, draft: Draft) -> Iterator[Line]:
        if draft.summary:
            yield self._boundary(draft)
        said: Line = {"type": USER, "message": {"role": USER, "content": content(draft.parts)}}
        if draft.summary:
            said |= {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        if draft.kind == _INSTRUCTION:
            said["isMeta"] = True
        yield self._line(draft, said)

    def _boundary(self, draft: Draft) -> Line:
        more: Line = {
            "type": "system",
            "subtype": "compact_boundary",
            "content": _BOUNDARY,
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "auto"},
        }
        return self._line(draft, more)

    def _line(self, draft: Draft, more: Line) -> Line:
        facts = self._facts
        turn = self._session.turns[draft.turn]
        uuid = coerce.uuid(facts.session, coerce.place(turn), str(self._count))
        line: Line = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": facts.cwd,
            "sessionId": facts.session,
            "version": facts.version,
            "gitBranch": facts.branch,
            **more,
            "uuid": uuid,
            "timestamp": format_time(draft.time),
        }
        self._count += 1
        self._last = uuid
        return line
