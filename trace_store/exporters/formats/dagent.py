"""A session as a chat of dagent, `chat_ID.json`.

Invariant: a message has at most one text, then its tool uses. A tool use contains its result, so results have no time
of their own, and a result without a call is left out.

- Developer messages become system messages. A text after another text or a tool use starts a new message.
- Tool uses have no ids; the importer numbers them.
- Images, reasoning and provider-specific blocks are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.base.frozen import replace
from trace_store.base.ident import format_time
from trace_store.context.usage import Usage, normalise_usage
from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.coerce import fit_object, object_of, only_text, whole
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    USER,
    DraftMessage,
    answers_behind_calls,
    drafts_of,
    forget,
    only_answers,
    settle_calls,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.importers.convert import storable_name
from trace_store.importers.formats.dagent import CHAT, INTERNAL, report_of
from trace_store.importers.json_records import compact
from trace_store.objects.content import bytes_of
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult
from trace_store.providers.wire import document_to_bytes, marked, word

NAME = "dagent"
SUFFIX = ".json"

ID_LIMIT = 256
_SYSTEM = "system"
_ROLES = (_SYSTEM, USER, ASSISTANT, TOOL)
_ITERATION = re.compile(r"iteration-(0|[1-9]\d{0,14})")

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the chat; see `contract.FormatWriter`."""
    drafts = _fit(session)
    messages = list(_messages(session, drafts))
    chat: Wire = {"totalMessages": len(messages), "messages": messages}
    if messages:
        times = sorted(each["timestamp"] for each in messages)
        chat |= {"oldestMessageTimestamp": times[0], "newestMessageTimestamp": times[-1]}
    # Two spaces, as dagent writes it.
    data = json.dumps(json.loads(document_to_bytes(chat)), ensure_ascii=False, indent=2)
    name = CHAT + file_name(session, SUFFIX).removeprefix(CHAT)
    return Exported(bytes_of(data) + b"\n", losses_of(session, drafts), name)


def _fit(session: ExportSession) -> list[DraftMessage]:
    """Return the messages as the importer of dagent reads them back."""
    drafts = drafts_of(session)
    for draft in drafts:
        draft.role = _SYSTEM if draft.role == "developer" else draft.role
    drafts = coerce.fitted(drafts, _ROLES, _fit_part, _fit_result_text)
    drafts = [one for draft in drafts for one in _one_text_each(draft)]
    drafts = settle_calls(drafts, lambda id_: id_ or marked(id_, 16, "call"))
    drafts = only_answers(answers_behind_calls(drafts))
    numbers: dict[str, int] = {}
    time = 0
    for draft in drafts:
        labels = draft.labels
        forget(draft)
        draft.id = draft.model = ""
        if draft.role == TOOL:
            draft.usage, draft.time = None, time
            draft.pieces.sort(key=lambda piece: numbers.get(piece.call_id, 0))
        else:
            time = draft.time
            draft.labels = frozenset(_labels(labels))
            draft.usage = _fit_usage(draft)
            for call in draft.calls:
                numbers[call.id] = len(numbers) + 1
    _number(drafts, numbers)
    return drafts


def _fit_part(draft: DraftMessage, part: Part) -> Part | None:
    if isinstance(part, ToolCall):
        name = storable_name(part.name) or word(part.name, ID_LIMIT, "tool")
        return fit_object(ToolCall(part.id, name, part.arguments, part.format), compact)
    return part if isinstance(part, ToolResult) else _fit_text(part)


def _fit_text(part: Part) -> Part | None:
    return Text(whole(part.text)) if isinstance(part, Text) and part.text else None


def _fit_result_text(part: Part) -> Part | None:
    return Text(whole(part.text)) if isinstance(part, Text) else None


def _one_text_each(draft: DraftMessage) -> Iterator[DraftMessage]:
    """Split a draft before each text that does not come first."""
    if draft.role == TOOL:
        yield draft
        return
    runs = [replace(draft, pieces=[])]
    for piece in draft.pieces:
        if isinstance(piece.part, Text) and runs[-1].parts:
            runs.append(replace(draft, pieces=[], id="", usage=None))
        runs[-1].pieces.append(piece)
    yield from runs


def _labels(labels: frozenset[str]) -> Iterator[str]:
    """Yield the labels that the format supports: `internal`, and one iteration number."""
    if INTERNAL in labels:
        yield INTERNAL
    yield from sorted(filter(_ITERATION.fullmatch, labels))[:1]


def _fit_usage(draft: DraftMessage) -> Usage | None:
    if draft.usage is None or draft.role != ASSISTANT:
        return None
    report = report_of(_tokens(draft.usage))
    return normalise_usage(report) if report else None


def _tokens(usage: Usage) -> Wire:
    return {"input": usage.input_total, "output": usage.output_total}


def _number(drafts: Sequence[DraftMessage], numbers: dict[str, int]) -> None:
    """Set the call ids that the importer assigns, and drop error flags."""
    for draft in drafts:
        for piece in draft.pieces:
            if isinstance(part := piece.part, ToolCall):
                name = f"call-{numbers[part.id]}"
                piece.part = ToolCall(name, part.name, part.arguments, part.format)
            elif isinstance(part, ToolResult):
                piece.part = ToolResult(f"call-{numbers[part.call_id]}", part.content)


def _messages(session: ExportSession, drafts: Sequence[DraftMessage]) -> Iterator[Wire]:
    """Yield the messages of the file, in order."""
    results = {result.call_id: result for draft in drafts for result in draft.results}
    for draft in drafts:
        if draft.role == TOOL:
            continue
        where = coerce.place(session.turns[draft.turn])
        texts = [part.text for part in draft.parts if isinstance(part, Text)]
        more = dict(_metadata(draft, results))
        yield {
            "id": coerce.uuid(where, str(draft.pieces[0].index)),
            "role": draft.role,
            "content": "".join(texts),
            "timestamp": format_time(draft.time),
            **({"metadata": more} if more else {}),
        }


def _metadata(draft: DraftMessage, results: dict[str, ToolResult]) -> Iterator[tuple[str, Any]]:
    if draft.calls:
        yield "toolUses", [_use(call, results.get(call.id)) for call in draft.calls]
    if draft.usage is not None:
        yield "tokens", _tokens(draft.usage)
    if INTERNAL in draft.labels:
        yield "internal", True
    for label in draft.labels:
        if match := _ITERATION.fullmatch(label):
            yield "iteration", int(match[1])


def _use(call: ToolCall, result: ToolResult | None) -> Wire:
    use: Wire = {"name": call.name, "input": object_of(call)}
    if result is None:
        return use
    text = only_text(result.content) if result.content else ""
    blocks = [
        {"type": "text", "text": part.text} for part in result.content if isinstance(part, Text)
    ]
    return use | {"result": blocks if text is None else text}
