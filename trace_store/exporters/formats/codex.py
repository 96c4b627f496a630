"""Codex's rollout of a session, to lay where it looks for sessions and to go on from.

Rule: what a model is shown is in the response items; events beside them say the same to the person, and what requests
cost. A response ends with its `token_count`, or where the next one's `turn_context` stands.

- Reasoning is there when a model of OpenAI's made it and signed it. What precedes a signature at once is its summary.
- Outputs have no flag for a failure, unless their text has an exit code as builds of 2025 wrote it.
- A result stands where it stands in the session; Codex pairs by id.
- What a compaction left is a `compacted` record when the context begins with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from trace_store.context.usage import Usage, normalise_usage
from trace_store.exporters.contract import Exported, ExportSession, Facts
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.calls import settle_calls
from trace_store.exporters.lossy.coerce import fit_image, whole
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    USER,
    Draft,
    apart,
    drafts_of,
    fit_parts,
    forget,
    join,
    with_roles,
)
from trace_store.exporters.lossy.loss_count import COMPACTION, losses_of
from trace_store.exporters.lossy.openai_parts import (
    PROVIDER,
    REFUSAL,
    data_url,
    fit_inside,
    fit_item,
    fit_own,
    fit_reasoning,
    is_frame,
    is_item,
    is_spoken,
    items_apart,
    items_of,
    settle_frames,
    signed_reasoning,
)
from trace_store.ident import format_time
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.formats.codex.items import is_scaffolding, messages_of
from trace_store.objects.message import ROLES
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.signatures import maker
from trace_store.providers.tools import OPENAI_NAME_LIMIT
from trace_store.providers.wire import marked, to_bytes, word

NAME = "codex"
SUFFIX = ".jsonl"

VERSION = "0.145.0"
"""The version of Codex whose records these are, where a session is not one of Codex's own."""
ORIGINATOR = "trace"
ID_LIMIT = 64
_INPUT_BLOCKS = frozenset({"input_file", "input_image"})
_REFUSALS = frozenset({REFUSAL})
# Items that a reader takes for something else, or passes over.
_UNREAD = frozenset(
    {"agent_message", "ghost_snapshot", "local_shell_call", "local_shell_call_output"}
)
_FROM_AN_AGENT = frozenset({"encrypted_content"}) | _INPUT_BLOCKS

Record = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the rollout; see `contract.Writer`."""
    facts = _facts(session)
    drafts = _fit(session)
    records = _Records(session, facts, drafts).all()
    data = b"".join(to_bytes(record) + b"\n" for record in records)
    time = format_time(drafts[0].time if drafts else 0)[:19].replace(":", "-")
    name = f"rollout-{time}-{facts.session}{SUFFIX}"
    folder = f"~/.codex/sessions/{time[:10].replace('-', '/')}"
    resume = f"in {folder}/ Codex finds it: `codex resume {facts.session}`"
    losses = losses_of(session, drafts, facts=facts)
    return Exported(data, losses, name, resume="" if session.thread else resume)


def _fit(session: ExportSession) -> list[Draft]:
    """Return the messages as Codex's importer reads them back."""
    drafts = drafts_of(session)
    coerce.fit_times(drafts)
    coerce.fit_names(drafts)
    drafts = apart(drafts)
    with_roles(drafts, ROLES)
    drafts = fit_parts(drafts, _fit_part, fit_inside)
    with_roles(drafts, ROLES)
    drafts = settle_calls(drafts, _call_id)
    for draft in drafts:
        settle_frames(draft)
        signed_reasoning(draft)
    drafts = items_apart(draft for draft in drafts if draft.parts)
    drafts = _joined_results(drafts)
    model = ""
    for draft in drafts:
        _read_as(draft, session)
        if draft.role == ASSISTANT:
            model = draft.model = draft.model or model
    block = _compacted(drafts, session)
    told: list[Usage] = []
    for number, draft in enumerate(drafts):
        draft.summary = number < block
        draft.usage = None if draft.summary else _fit_usage(draft.usage, told)
    return drafts


def _fit_part(draft: Draft, part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(whole(part.text)) if part.text else None
    if isinstance(part, Image):
        return fit_image(part) if draft.role == USER else None
    if isinstance(part, Reasoning):
        return fit_reasoning(draft, part)
    if isinstance(part, ToolCall):
        name = word(part.name, OPENAI_NAME_LIMIT, "tool")
        return ToolCall(part.id, name, whole(part.arguments), part.format)
    if isinstance(part, ToolResult):
        return ToolResult(part.call_id, part.content, part.is_error and _tells_failure(part))
    if not isinstance(part, Opaque):
        return None
    if draft.role == ASSISTANT:
        own = part if is_frame(part) else fit_own(part, _REFUSALS)
        return own or fit_item(part, ASSISTANT, _UNREAD)
    blocks = _FROM_AN_AGENT if draft.name else _INPUT_BLOCKS
    own = fit_own(part, blocks) if draft.role == USER else None
    return own or fit_item(part, draft.role, _UNREAD)


def _tells_failure(result: ToolResult) -> bool:
    """Tell whether a reader takes a result for a failure, by the exit code in its only text."""
    text = result.content[0] if len(result.content) == 1 else None
    if not isinstance(text, Text) or not text.text.startswith("{"):
        return False
    item = {"type": "function_call_output", "call_id": result.call_id, "output": text.text}
    read = messages_of([item], "")[0].parts[0]
    return isinstance(read, ToolResult) and read.is_error


def _call_id(id_: str) -> str:
    fits = 0 < len(id_) <= ID_LIMIT and all("!" <= character <= "~" for character in id_)
    return id_ if fits else marked(id_, ID_LIMIT, "call")


def _joined_results(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts in which results that follow each other are one message, as a reader takes them."""
    found: list[Draft] = []
    for draft in drafts:
        if found and found[-1].role == TOOL == draft.role:
            join(found[-1], draft)
        else:
            found.append(draft)
    return found


def _read_as(draft: Draft, session: ExportSession) -> None:
    """Make of a draft's marks what a reader makes of its records."""
    name = draft.name if _is_from_agent(draft, session) else ""
    own = session.format == NAME or (draft.model and maker(draft.model) == PROVIDER)
    spoken = any(isinstance(part, Text | Image) or is_spoken(part) for part in draft.parts)
    forget([draft])
    if draft.role == USER and is_scaffolding(PlannedMessage(USER, draft.parts)):
        draft.kind = "instruction"
    elif name:
        draft.name = name
    draft.id = draft.id if own and spoken and draft.role != TOOL and not name else ""
    if draft.role != ASSISTANT:
        draft.model, draft.usage = "", None


def _is_from_agent(draft: Draft, session: ExportSession) -> bool:
    """Tell whether another agent of Codex's said it; people have no names there."""
    by_name = draft.role == USER and bool(draft.name) and session.format == NAME
    return by_name and not is_item(draft.parts[0])


def _fit_usage(usage: Usage | None, told: list[Usage]) -> Usage | None:
    """Return a report as a reader gets it; one that adds nothing to the totals is taken for a repetition."""
    if usage is None:
        return None
    read = normalise_usage(_usage_of(usage))
    if told and not (read.input_total or read.output_total or read.cache_read or read.cache_write):
        return None
    told.append(read)
    return read


def _usage_of(usage: Usage) -> dict[str, int]:
    form = {
        "input_tokens": usage.input_total,
        "cached_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_write,
        "output_tokens": usage.output_total,
        "reasoning_output_tokens": usage.reasoning,
    }
    return form | {"total_tokens": usage.input_total + usage.output_total}


def _compacted(drafts: Sequence[Draft], session: ExportSession) -> int:
    """Return how many drafts at the beginning can be a record of a compaction: those that one made, if they read so."""
    first = session.turns[drafts[0].turn] if drafts else None
    if first is None or first.reason != COMPACTION:
        return 0
    count = 0
    for draft in drafts:
        turns = [session.turns[number] for number in draft.turns]
        if any(turn.commit != first.commit or turn.reason != COMPACTION for turn in turns):
            break
        count += 1
    block = drafts[:count]
    items = [item for draft in block for item in _items(draft, ())]
    model = next((draft.model for draft in block if draft.role == ASSISTANT), "")
    told = [(m.role, m.parts, m.model, m.id, m.name) for m in messages_of(items, model)]
    held = [(d.role, d.parts, d.model, d.id, d.name) for d in block]
    return count if told == held else 0


def _items(draft: Draft, text_calls: Collection[str]) -> list[Record]:
    """Return the response items of a draft."""
    if draft.name:
        content = next(items_of(draft, (), _is_listed))[0]["content"]
        return [{"type": "agent_message", "author": draft.name, "content": content}]
    items = [item for item, _ in items_of(draft, text_calls, _is_listed)]
    spoken = next((item for item in items if item.get("type") == "message"), None)
    if draft.id and spoken is not None:
        spoken["id"] = draft.id
    return items


def _is_listed(result: ToolResult) -> bool:
    """Tell whether a text must be in a list, or it would be taken for a failure."""
    return not result.is_error and _tells_failure(result)


def _facts(session: ExportSession) -> Facts:
    known = session.facts()
    time = session.turns[0].time if session.turns else 0
    made = coerce.timed_uuid(time, NAME, coerce.beginning(session))
    return Facts(
        session=coerce.session_uuid(session, known, made),
        cwd=known.cwd,
        version=known.version if session.format == NAME and known.version else VERSION,
        branch=known.branch,
    )


class _Records:
    """Writes drafts as records."""

    def __init__(self, session: ExportSession, facts: Facts, drafts: Sequence[Draft]) -> None:
        self._session = session
        self._facts = facts
        self._drafts = drafts
        calls = [call for draft in drafts for call in draft.calls]
        self._text_calls = frozenset(call.id for call in calls if call.format == "text")
        self._totals: dict[str, int] = {}
        self._model = ""
        self._turn = ""
        self._open = False

    def all(self) -> Iterator[Record]:
        """Yield the records, in order."""
        drafts = self._drafts
        yield self._header(drafts[0].time if drafts else 0)
        block = [draft for draft in drafts if draft.summary]
        yield from self._compaction(block)
        for draft in drafts[len(block) :]:
            if draft.role == ASSISTANT:
                yield from self._answer(draft)
                continue
            if draft.role != TOOL:
                self._open = False
            items = _items(draft, self._text_calls)
            yield from (_record(draft.time, "response_item", item) for item in items)
            if draft.role == USER and not draft.kind and not draft.name:
                self._turn = ""
                yield from self._asked(draft)

    def _header(self, time: int) -> Record:
        facts = self._facts
        meta: Record = {
            "id": facts.session,
            "timestamp": format_time(time),
            "cwd": facts.cwd,
            "originator": ORIGINATOR,
            "cli_version": facts.version,
            "source": "cli",
            "model_provider": PROVIDER,
        }
        if facts.branch:
            meta["git"] = {"branch": facts.branch}
        return _record(time, "session_meta", meta)

    def _compaction(self, block: Sequence[Draft]) -> Iterator[Record]:
        if not block:
            return
        model = next((draft.model for draft in block if draft.model), "")
        if model:
            yield self._context(block[0], model)
        history = [item for draft in block for item in _items(draft, self._text_calls)]
        told = {"message": "", "replacement_history": history}
        yield _record(block[0].time, "compacted", told)
        yield _record(block[0].time, "event_msg", {"type": "context_compacted"})
        self._open = False

    def _answer(self, draft: Draft) -> Iterator[Record]:
        if self._open or draft.model != self._model or not self._turn:
            yield self._context(draft, draft.model)
        for item in _items(draft, self._text_calls):
            yield from _events(draft.time, item)
            yield _record(draft.time, "response_item", item)
        self._open = True
        if draft.usage is not None:
            yield self._count(draft.time, draft.usage)
            self._open = False

    def _context(self, draft: Draft, model: str) -> Record:
        where = coerce.place(self._session.turns[draft.turn])
        self._turn = self._turn or coerce.timed_uuid(draft.time, self._facts.session, where)
        self._model = model
        self._open = False
        told = {
            "turn_id": self._turn,
            "cwd": self._facts.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "model": model,
            "summary": "auto",
        }
        return _record(draft.time, "turn_context", told)

    def _asked(self, draft: Draft) -> Iterator[Record]:
        texts = [part.text for part in draft.parts if isinstance(part, Text)]
        images = [data_url(part) for part in draft.parts if isinstance(part, Image)]
        told = {"type": "user_message", "message": "\n".join(texts), "images": images}
        yield _record(draft.time, "event_msg", {**told, "local_images": [], "text_elements": []})

    def _count(self, time: int, usage: Usage) -> Record:
        last = _usage_of(usage)
        self._totals = {name: self._totals.get(name, 0) + count for name, count in last.items()}
        info = {
            "total_token_usage": self._totals,
            "last_token_usage": last,
            "model_context_window": None,
        }
        told = {"type": "token_count", "info": info, "rate_limits": None}
        return _record(time, "event_msg", told)


def _events(time: int, item: Record) -> Iterator[Record]:
    """Yield what the person is shown of an item of the model's."""
    if item["type"] == "message":
        texts = [block["text"] for block in item["content"] if "text" in block]
        told = {"type": "agent_message", "message": "".join(texts), "phase": item.get("phase")}
        yield _record(time, "event_msg", told)
    elif item["type"] == "reasoning":
        for block in item["summary"]:
            yield _record(time, "event_msg", {"type": "agent_reasoning", "text": block["text"]})


def _record(time: int, type_: str, payload: Record) -> Record:
    return {"timestamp": format_time(time), "type": type_, "payload": payload}
