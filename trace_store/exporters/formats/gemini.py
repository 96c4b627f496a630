"""A session as a chat recording of Gemini CLI, which can resume from it.

Invariant: one record per message. A result is inside its call, so it has no time of its own, and a result without a
call is left out.

- System and developer messages become user messages: the program has its own prompt.
- Reasoning of any model becomes a thought, which is displayed but never sent again, and has no signature.
- A message has its reasoning first, then its text, then its calls. Arguments are an object; other arguments become its
text field `input`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.base.ident import format_time
from trace_store.base.oid import sha256_hex
from trace_store.context.usage import Usage, normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import Exported, ExportSession, Facts
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.coerce import fit_object, object_of, only_text, read_again, sound
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
from trace_store.importers.formats.gemini import parse_content
from trace_store.importers.json_records import compact
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.gemini import (
    MEDIA,
    MODEL_ONLY,
    GeminiCalls,
    gemini_parts,
    own_part,
    refer,
    response_part,
)
from trace_store.providers.media import gemini_media
from trace_store.providers.tools import call_id, gemini_tool_name
from trace_store.providers.wire import parse_object, scrub, to_lines

NAME = "gemini"
SUFFIX = ".jsonl"

ID_LIMIT = 128
MODEL = "gemini"
_THOUGHT = re.compile(r"\*\*([^*\n]+)\*\* (\S.*)", re.DOTALL)

Record = dict[str, Any]
Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the recording; see `contract.FormatWriter`."""
    drafts = _fit(session)
    facts = _facts(session)
    records = [_header(session, facts, drafts), *_records(session, facts, drafts)]
    data = to_lines(records)
    time = format_time(drafts[0].time if drafts else 0)[:16].replace(":", "-")
    name = f"session-{time}-{facts.session[:8]}{SUFFIX}"
    return Exported(data, losses_of(session, drafts, facts=Facts(session=facts.session)), name)


def _fit(session: ExportSession) -> list[DraftMessage]:
    """Return the messages as the importer of Gemini CLI reads them back."""
    drafts = coerce.fitted(drafts_of(session), (USER, ASSISTANT, TOOL), _fit_part, _fit_content)
    drafts = only_answers(settle_calls(drafts, lambda id_: call_id(id_, ID_LIMIT)))
    drafts = answers_behind_calls(drafts)
    time = 0
    order: dict[str, int] = {}
    for draft in drafts:
        forget(draft)
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


def _fit_part(draft: DraftMessage, part: Part) -> Part | None:
    if isinstance(part, Reasoning):
        return Reasoning(sound(part.text)) if part.text else None
    if isinstance(part, ToolCall):
        made = fit_object(part, lambda value: compact(scrub(value)[0]))
        return ToolCall(part.id, gemini_tool_name(part.name, None, None), made.arguments)
    if isinstance(part, ToolResult):
        return part
    fit = _fit_own(part, draft) if isinstance(part, Opaque) else _fit_plain(part)
    # A part that the program itself would not record is read back differently.
    whole = not isinstance(fit, Opaque | Image) or _is_read(draft.role, fit)
    return fit if whole else None


def _is_read(role: str, part: Part) -> bool:
    kind = MODEL if role == ASSISTANT else USER
    record = {"id": "", "type": kind, "content": [_part(part)]}
    said = parse_content(record, ()).messages
    return bool(said) and said[0].parts == (part,)


def _rank(part: Part | None) -> int:
    if isinstance(part, Reasoning):
        return 0
    return 2 if isinstance(part, ToolCall) else 1


def _fit_usage(usage: Usage | None) -> Usage | None:
    """Return a usage report as a reader gets it; one with only zeros is ignored."""
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


def _header(session: ExportSession, facts: Facts, drafts: Sequence[DraftMessage]) -> Record:
    times = [draft.time for draft in drafts] or [0]
    return {
        "sessionId": facts.session,
        "projectHash": sha256_hex(facts.cwd.encode("utf-8", "surrogatepass")),
        "startTime": format_time(times[0]),
        "lastUpdated": format_time(max(times)),
        "kind": "main",
    }


def _records(
    session: ExportSession, facts: Facts, drafts: Sequence[DraftMessage]
) -> Iterator[Record]:
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


def _asked(draft: DraftMessage) -> Record:
    text = only_text(draft.parts)
    return {"content": [_part(part) for part in draft.parts] if text is None else text}


def _said(draft: DraftMessage, results: dict[str, ToolResult]) -> Record:
    spoken = [part for part in draft.parts if not isinstance(part, Reasoning | ToolCall)]
    text = only_text(spoken) if spoken else ""
    said: Record = {"content": [_part(part) for part in spoken] if text is None else text}
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
    match = _THOUGHT.fullmatch(part.text)
    subject, description = match.groups() if match is not None else ("", part.text)
    return {"subject": subject, "description": description, "timestamp": format_time(time)}


def _call(call: ToolCall, result: ToolResult | None, time: int) -> Record:
    form: Record = {"id": call.id, "name": call.name, "args": object_of(call)}
    if result is None:
        form |= {"result": None, "status": "cancelled"}
    else:
        status = "error" if result.is_error else "success"
        form |= {"result": [_response(result, call.name)], "status": status}
    return form | {"timestamp": format_time(time), "displayName": call.name}


def _fit_plain(part: Part) -> Part | None:
    """Return the form of a text or an image in a content or a response, or None."""
    if isinstance(part, Text):
        return Text(sound(part.text)) if part.text else None
    if not isinstance(part, Image):
        return None
    shown = gemini_media(part)
    read = () if shown is None else _read(shown)
    return read[0] if len(read) == 1 and isinstance(read[0], Image) else None


def _fit_own(part: Opaque, draft: DraftMessage) -> Opaque | None:
    """Return a Gemini-specific part as a reader gets it; None if not allowed here."""
    found = _own_block(part)
    if found is None or not (draft.role == ASSISTANT or MODEL_ONLY.isdisjoint(found)):
        return None
    return _kept(found)


def _fit_content(part: Part) -> Part | None:
    """Return the form of a part in a response, or None."""
    if not isinstance(part, Opaque):
        return _fit_plain(part)
    found = _own_block(part)
    if found is None or len(found) != 1 or MEDIA.isdisjoint(found):
        return None
    ((kind, fields),) = found.items()
    if not isinstance(fields, dict):
        return None
    return _kept({kind: {key: value for key, value in fields.items() if key != "displayName"}})


def _part(part: Part) -> Wire:
    """Return the part of a text, an image or a block."""
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Image):
        return gemini_media(part) or {}
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _response(result: ToolResult, name: str) -> Wire:
    """Return the response of a result, given the name of its tool."""
    parts: list[Wire] = []
    values = [
        part.text if isinstance(part, Text) else refer(_part(part), parts)
        for part in result.content
    ]
    value = values[0] if len(values) == 1 else values or None
    return response_part(result, name, value, parts)


def _kept(found: Wire) -> Opaque | None:
    """Return a part as a reader gets it; None if it would read it differently."""
    read = _read(scrub(found)[0])
    return read[0] if len(read) == 1 and isinstance(read[0], Opaque) else None


def _read(form: Wire) -> tuple[Part, ...]:
    try:
        return tuple(gemini_parts(form, "", GeminiCalls()))
    except InvalidInputError:
        return ()


def _own_block(part: Opaque) -> Wire | None:
    """Return a separate Gemini part as it is read back, else None."""
    found = own_part(part)
    return None if found is None else read_again(found)
