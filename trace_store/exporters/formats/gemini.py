"""Gemini CLI's recording of a session, to lay where it looks for chats and to go on from.

Rule: a record a message; the result of a call stands inside it, so it has no time of its own, and a result without a
call no place.

- What a system or a developer said is said by the user: the program has a prompt of its own.
- Reasoning of any model is among the thoughts, which are shown and never sent again; they have no signatures.
- A message thinks, then speaks, then calls. Arguments are an object, and what is none is the text `input` in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.context.usage import Usage, normalise_usage
from trace_store.exporters.contract import Exported, ExportSession, Facts
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.calls import answers_behind_calls, only_answers, settle_calls
from trace_store.exporters.lossy.coerce import fit_object, object_of, only_text, sound
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
from trace_store.exporters.lossy.gemini_parts import (
    fit_inside,
    fit_own,
    fit_plain,
    plain_part,
    response,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.ident import format_time
from trace_store.importers.formats.gemini.messages import what_is_said
from trace_store.importers.json_records import compact
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, ToolCall, ToolResult
from trace_store.oid import sha256_hex
from trace_store.providers.tools import gemini_tool_name
from trace_store.providers.wire import marked, scrub, to_bytes

NAME = "gemini"
SUFFIX = ".jsonl"

ID_LIMIT = 128
MODEL = "gemini"
_THOUGHT = re.compile(r"\*\*([^*\n]+)\*\* (\S.*)", re.DOTALL)

Record = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the recording; see `contract.Writer`."""
    drafts = _fit(session)
    facts = _facts(session)
    records = [_header(session, facts, drafts), *_records(session, facts, drafts)]
    data = b"".join(to_bytes(record) + b"\n" for record in records)
    time = format_time(drafts[0].time if drafts else 0)[:16].replace(":", "-")
    name = f"session-{time}-{facts.session[:8]}{SUFFIX}"
    return Exported(data, losses_of(session, drafts, facts=Facts(session=facts.session)), name)


def _fit(session: ExportSession) -> list[Draft]:
    """Return the messages as the importer of Gemini CLI reads them back."""
    drafts = drafts_of(session)
    coerce.fit_times(drafts)
    coerce.fit_names(drafts)
    drafts = apart(drafts)
    with_roles(drafts, (USER, ASSISTANT, TOOL))
    drafts = fit_parts(drafts, _fit_part, fit_inside)
    with_roles(drafts, (USER, ASSISTANT, TOOL))
    drafts = only_answers(settle_calls(drafts, _call_id))
    drafts = answers_behind_calls(drafts)
    time = 0
    order: dict[str, int] = {}
    for draft in drafts:
        forget([draft])
        draft.id = ""
        if draft.role == ASSISTANT:
            draft.pieces.sort(key=lambda piece: _rank(piece.part))
            draft.usage = _fit_usage(draft.usage)
            time = draft.time
            order = {call.id: number for number, call in enumerate(draft.calls)}
        else:
            draft.model, draft.usage = "", None
        if draft.role == TOOL:
            draft.time = time
            draft.pieces.sort(key=lambda piece: order.get(piece.call_id, -1))
    return drafts


def _fit_part(draft: Draft, part: Part) -> Part | None:
    if isinstance(part, Reasoning):
        return Reasoning(sound(part.text)) if part.text else None
    if isinstance(part, ToolCall):
        made = fit_object(part, lambda value: compact(scrub(value)[0]))
        return ToolCall(part.id, gemini_tool_name(part.name, None, None), made.arguments)
    if isinstance(part, ToolResult):
        return part
    fit = fit_own(part, draft) if isinstance(part, Opaque) else fit_plain(part)
    # A part that the recorder of the program would not write comes back as something else.
    whole = not isinstance(fit, Opaque | Image) or _is_read(draft.role, fit)
    return fit if whole else None


def _is_read(role: str, part: Part) -> bool:
    kind = MODEL if role == ASSISTANT else USER
    record = {"id": "", "type": kind, "content": [plain_part(part)]}
    said = what_is_said(record, ()).messages
    return bool(said) and said[0].parts == (part,)


def _rank(part: Part | None) -> int:
    if isinstance(part, Reasoning):
        return 0
    return 2 if isinstance(part, ToolCall) else 1


def _call_id(id_: str) -> str:
    fits = 0 < len(id_) <= ID_LIMIT and all("!" <= character <= "~" for character in id_)
    return id_ if fits else marked(id_, ID_LIMIT, "call")


def _fit_usage(usage: Usage | None) -> Usage | None:
    """Return a report as a reader gets it; numbers that are all 0 tell it nothing."""
    if usage is None:
        return None
    tokens = _tokens(usage)
    return normalise_usage(tokens) if any(tokens.values()) else None


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input_total,
        "output": max(0, usage.output_total - usage.reasoning),
        "cached": usage.cache_read,
        "thoughts": usage.reasoning,
        "tool": 0,
        "total": usage.input_total + usage.output_total,
    }


def _facts(session: ExportSession) -> Facts:
    known = session.facts()
    made = coerce.uuid(NAME, coerce.beginning(session))
    return Facts(session=coerce.session_uuid(session, known, made), cwd=known.cwd)


def _header(session: ExportSession, facts: Facts, drafts: Sequence[Draft]) -> Record:
    times = [draft.time for draft in drafts] or [0]
    return {
        "sessionId": facts.session,
        "projectHash": sha256_hex(facts.cwd.encode("utf-8", "surrogatepass")),
        "startTime": format_time(times[0]),
        "lastUpdated": format_time(max(times)),
        "kind": "main",
    }


def _records(session: ExportSession, facts: Facts, drafts: Sequence[Draft]) -> Iterator[Record]:
    results = {result.call_id: result for draft in drafts for result in draft.results}
    for draft in drafts:
        if draft.role == TOOL:
            continue
        where = coerce.place(session.turns[draft.turn])
        number = str(draft.pieces[0].index)
        record: Record = {
            "id": coerce.uuid(facts.session, where, number),
            "timestamp": format_time(draft.time),
            "type": MODEL if draft.role == ASSISTANT else USER,
        }
        yield record | (_said(draft, results) if draft.role == ASSISTANT else _asked(draft))


def _asked(draft: Draft) -> Record:
    text = only_text(draft.parts)
    return {"content": [plain_part(part) for part in draft.parts] if text is None else text}


def _said(draft: Draft, results: dict[str, ToolResult]) -> Record:
    spoken = [part for part in draft.parts if not isinstance(part, Reasoning | ToolCall)]
    text = only_text(spoken) if spoken else ""
    said: Record = {"content": [plain_part(part) for part in spoken] if text is None else text}
    thoughts = [_thought(part, draft.time) for part in draft.parts if isinstance(part, Reasoning)]
    said["thoughts"] = thoughts
    if draft.usage is not None:
        said["tokens"] = _tokens(draft.usage)
    if draft.model:
        said["model"] = draft.model
    if draft.calls:
        said["toolCalls"] = [_call(call, results.get(call.id), draft.time) for call in draft.calls]
    return said


def _thought(part: Reasoning, time: int) -> Record:
    told = _THOUGHT.fullmatch(part.text)
    subject, description = told.groups() if told is not None else ("", part.text)
    return {"subject": subject, "description": description, "timestamp": format_time(time)}


def _call(call: ToolCall, result: ToolResult | None, time: int) -> Record:
    form: Record = {"id": call.id, "name": call.name, "args": object_of(call)}
    if result is None:
        form |= {"result": None, "status": "cancelled"}
    else:
        status = "error" if result.is_error else "success"
        form |= {"result": [response(result, call.name)], "status": status}
    return form | {"timestamp": format_time(time), "displayName": call.name}
