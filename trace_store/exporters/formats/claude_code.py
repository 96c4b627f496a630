"""A session as a transcript of Claude Code, which can resume from it.

Invariant: one line for each block of an API message and for each result. The parent of each line is the line before,
so a walk along the links from the end visits all of them.

- System and developer messages become injected user lines (`isMeta`), like reminders: Claude Code's transcripts have
  no system prompt.
- Reasoning is there when a Claude made it, with its signature. Without one the API refuses it.
- Arguments are a JSON object; those that are none are the text `input` in one.
- Results stand behind the message with their calls. Calls without a result stay, as in the transcripts of sessions that
  were interrupted.
- A summary at the start of the context is marked as one and follows a compaction boundary.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.base.ident import format_time
from trace_store.context.usage import Usage, normalise_usage
from trace_store.exporters.contract import Exported, ExportSession, Facts, file_name
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.coerce import (
    block_of,
    fit_image,
    fit_object,
    object_of,
    only_text,
    whole,
)
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    USER,
    DraftMessage,
    answers_behind_calls,
    drafts_of,
    forget,
    settle_calls,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.importers.formats.claude_code import project_name
from trace_store.importers.formats.claude_code.records import SYNTHETIC_MODEL, is_harness_text
from trace_store.importers.json_records import compact
from trace_store.objects.content import bytes_of
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic import (
    ASSISTANT_ONLY,
    IN_RESULTS_ONLY,
    NOWHERE,
    PROVIDER,
    RESULT_BLOCKS,
    THINKING,
    USER_ONLY,
    call_block,
    image_block,
    is_server_result,
    linked_image_block,
    text_block,
    thinking_block,
)
from trace_store.providers.tools import ANTHROPIC_NAME_LIMIT
from trace_store.providers.validity import maker
from trace_store.providers.wire import parse_object, to_lines, word

NAME = "claude-code"
SUFFIX = ".jsonl"

VERSION = "2.1.218"
"""Version of Claude Code to write for sessions of other programs."""
ID_LIMIT = 256
_INSTRUCTION = "instruction"
_BOUNDARY = "Conversation compacted"
# Trace has its own part types for these blocks.
_PARTS = NOWHERE | {"image", "text", "thinking"}

Line = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the transcript; see `contract.FormatWriter`."""
    drafts = _fit(session)
    facts = _facts(session)
    lines = _Lines(session, facts).all(drafts)
    data = to_lines(lines)
    # Claude Code finds a session to resume by the name of its file.
    name = file_name(session, SUFFIX) if session.thread else facts.session + SUFFIX
    # The recorded folder may be on another machine.
    is_here = bool(facts.cwd) and os.path.isdir(facts.cwd)
    project = facts.cwd if is_here else session.project or facts.cwd
    folder = f"~/.claude/projects/{project_name(project) if project else 'PROJECT'}"
    where = f" in {project}" if project else ""
    resume = f"copy the file to {folder}/{name} and run `claude --resume {facts.session}`{where}"
    losses = losses_of(session, drafts, facts=facts)
    return Exported(data, losses, name, resume="" if session.thread else resume)


def _fit(session: ExportSession) -> list[DraftMessage]:
    """Return the messages as Claude Code's importer reads them back."""
    roles = (USER, ASSISTANT, TOOL)
    drafts = coerce.fitted(drafts_of(session), roles, _fit_part, _fit_content, beside_results=True)
    drafts = settle_calls(drafts, lambda id_: word(id_, ID_LIMIT, "call"))
    drafts = answers_behind_calls(drafts)
    said: DraftMessage | None = None
    for number, draft in enumerate(drafts):
        summary = draft.summary and not number and draft.role == USER
        put_in = draft.role == USER and draft.read_kind() == _INSTRUCTION
        forget(draft)
        draft.summary = summary
        if draft.role == ASSISTANT:
            draft.usage = None if draft.model == SYNTHETIC_MODEL else _fit_usage(draft.usage)
            said = None
        else:
            draft.model = draft.id = ""
            draft.usage = None
        if draft.role == USER:
            harness = "freeform" if is_harness_text(draft.parts) else ""
            draft.kind = _INSTRUCTION if put_in else harness
            # A reader puts an injected line into the commit of the line before.
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

    def all(self, drafts: Sequence[DraftMessage]) -> Iterator[Line]:
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

    def _answer(self, draft: DraftMessage) -> Iterator[Line]:
        parts = draft.parts
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            reason = "tool_use" if draft.calls else "end_turn"
            message: Line = {
                "id": draft.id,
                "type": "message",
                "role": ASSISTANT,
                "model": draft.model,
                "content": [_block(part)],
                "stop_reason": reason if last else None,
                "stop_sequence": None,
            }
            if draft.usage is not None:
                message["usage"] = _usage(draft.usage)
            yield self._line(draft, {"type": ASSISTANT, "message": message})
            for call in draft.calls:
                if call is part and self._last is not None:
                    self._callers[call.id] = self._last

    def _results(self, draft: DraftMessage) -> Iterator[Line]:
        results = draft.results
        rest = [part for part in draft.parts if not isinstance(part, ToolResult)]
        for index, result in enumerate(results):
            content = [_block(result)]
            if index == len(results) - 1:
                content += [_block(part) for part in rest]
            more: Line = {"type": USER, "message": {"role": USER, "content": content}}
            caller = self._callers.get(result.call_id)
            if caller is not None:
                more["sourceToolAssistantUUID"] = caller
            yield self._line(draft, more)

    def _input(self, draft: DraftMessage) -> Iterator[Line]:
        if draft.summary:
            yield self._boundary(draft)
        said: Line = {"type": USER, "message": {"role": USER, "content": _content(draft.parts)}}
        if draft.summary:
            said |= {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        if draft.kind == _INSTRUCTION:
            said["isMeta"] = True
        yield self._line(draft, said)

    def _boundary(self, draft: DraftMessage) -> Line:
        more: Line = {
            "type": "system",
            "subtype": "compact_boundary",
            "content": _BOUNDARY,
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "auto"},
        }
        return self._line(draft, more)

    def _line(self, draft: DraftMessage, more: Line) -> Line:
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


def _fit_part(draft: DraftMessage, part: Part) -> Part | None:
    """Return a part as a reader gets it from a message; None if it has no place there."""
    if isinstance(part, Reasoning):
        signed = part.signature and maker(draft.model) == PROVIDER and draft.model
        return Reasoning(whole(part.text), part.signature) if signed else None
    if isinstance(part, ToolCall):
        name = word(part.name, ANTHROPIC_NAME_LIMIT, "tool")
        return ToolCall(part.id, name, fit_object(part, compact).arguments)
    if isinstance(part, ToolResult):
        return part
    if isinstance(part, Opaque):
        return _fit_own(part, draft)
    if isinstance(part, Image) and draft.role == ASSISTANT:
        return None
    return _fit_plain(part)


def _fit_content(part: Part) -> Part | None:
    """Return a part as a reader gets it from a result; None if it has no place there."""
    if not isinstance(part, Opaque):
        return _fit_plain(part)
    found = block_of(part, PROVIDER)
    fits = found is not None and found.get("type") in RESULT_BLOCKS - _PARTS
    return _kept(found) if fits and found is not None else None


def _fit_plain(part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(whole(part.text)) if part.text else None
    return fit_image(part) if isinstance(part, Image) else None


def _fit_own(part: Opaque, draft: DraftMessage) -> Opaque | None:
    found = block_of(part, PROVIDER)
    type_ = None if found is None else found.get("type")
    if found is None or not isinstance(type_, str) or not type_:
        return None
    if type_ in _PARTS | IN_RESULTS_ONLY:
        return None
    if draft.role == ASSISTANT:
        thinks = type_ in THINKING
        fits = type_ not in USER_ONLY and (not thinks or maker(draft.model) == PROVIDER)
    else:
        fits = type_ not in ASSISTANT_ONLY and not is_server_result(type_)
    return _kept(found) if fits else None


def _kept(block: Line) -> Opaque:
    return Opaque(PROVIDER, bytes_of(compact(block)))


def _block(part: Part) -> Line:
    """Return the block of a part."""
    if isinstance(part, Text):
        return text_block(part.text)
    if isinstance(part, Reasoning):
        return thinking_block(part)
    if isinstance(part, ToolCall):
        return call_block(part, part.name, object_of(part))
    if isinstance(part, ToolResult):
        result: Line = {"type": "tool_result", "tool_use_id": part.call_id}
        result["content"] = _content(part.content)
        return result | ({"is_error": True} if part.is_error else {})
    if isinstance(part, Image):
        if part.url is not None:
            return linked_image_block(part.url)
        return image_block(part.media_type, base64.b64encode(part.data or b"").decode())
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _content(parts: Sequence[Part]) -> str | list[Line]:
    """Return the content of a message or a result: a string for a single text."""
    text = only_text(parts)
    return [_block(part) for part in parts] if text is None else text


def _usage(usage: Usage) -> Line:
    """Return a report in Anthropic's numbers, which are disjoint."""
    form: Line = {
        "input_tokens": max(0, usage.input_total - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output_total,
    }
    if usage.reasoning:
        form["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return form


def _fit_usage(usage: Usage | None) -> Usage | None:
    """Return a report as a reader gets it back from Anthropic's numbers."""
    return None if usage is None else normalise_usage(_usage(usage))
