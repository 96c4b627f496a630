"""A session as a trajectory in ATIF, Harbor's format.

Invariant: a step is a message; the results of its calls are its observations.

- Developer messages become system messages.
- A step has its reasoning first, then its text, then its calls. An answer that reasons again after its text or calls
  is split into several steps.
- The format stores media in separate files, not as bytes: images are left out.
- A result without a call is left out, too.
"""

from __future__ import annotations

import json
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
from trace_store.exporters.lossy.read_back import kept_tools
from trace_store.importers.convert import storable_name
from trace_store.importers.formats.atif import COPIED, PROVIDER, content_parts
from trace_store.importers.json_records import compact
from trace_store.objects.content import bytes_of
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.rendering import Repairs
from trace_store.providers.tools import openai_tools
from trace_store.providers.wire import document_to_bytes, marked, parse_json, scrub, word

NAME = "atif"
SUFFIX = ".json"

VERSION = "ATIF-v1.7"
ID_LIMIT = 256
_SYSTEM = "system"
_ROLES = (_SYSTEM, USER, ASSISTANT, TOOL)

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the trajectory; see `contract.FormatWriter`."""
    drafts = _fit(session)
    schemas = scrub(openai_tools(session.tools, Repairs(())))[0]
    models = [draft.model for draft in drafts if draft.role == ASSISTANT]
    known = session.facts()
    agent: Wire = {"name": session.format or "trace", "version": known.version or "unknown"}
    if models and all(models):
        agent["model_name"] = models[-1]
    if schemas:
        agent["tool_definitions"] = schemas
    steps = list(_steps(drafts))
    trajectory = {
        "schema_version": VERSION,
        "session_id": _session_id(session),
        "agent": agent,
        "steps": steps,
        "final_metrics": _totals(drafts, len(steps)),
    }
    losses = losses_of(session, drafts, tools=kept_tools(session, schemas))
    # A document on one line would be detected as JSON Lines.
    data = json.dumps(json.loads(document_to_bytes(trajectory)), ensure_ascii=False, indent=2)
    return Exported(bytes_of(data) + b"\n", losses, file_name(session, SUFFIX))


def _session_id(session: ExportSession) -> str:
    name = "-".join(each for each in (session.id, *session.thread.split("/")) if each)
    return storable_name(name) or coerce.uuid(NAME, coerce.beginning(session))


def _fit(session: ExportSession) -> list[DraftMessage]:
    """Return the messages as the importer of ATIF reads them back."""
    drafts = drafts_of(session)
    for draft in drafts:
        draft.role = _SYSTEM if draft.role == "developer" else draft.role
    drafts = coerce.fitted(drafts, _ROLES, _fit_part, _fit_content)
    drafts = [step for draft in drafts for step in _split_at_reasoning(draft)]
    drafts = only_answers(answers_behind_calls(settle_calls(drafts, _call_id)))
    caller: DraftMessage | None = None
    for draft in drafts:
        copied = COPIED in draft.labels
        forget(draft)
        draft.id = ""
        if draft.role == ASSISTANT:
            caller = draft
            draft.usage = None if copied or draft.usage is None else _read_usage(draft.usage)
            draft.pieces.sort(key=lambda piece: isinstance(piece.part, ToolCall))
        else:
            draft.model, draft.usage = "", None
        if draft.role == TOOL and caller is not None:
            # An observation is part of its step, so it takes the time and the copied mark of the step.
            draft.time, draft.labels = caller.time, caller.labels
        elif copied:
            draft.labels = frozenset({COPIED})
    return drafts


def _fit_part(draft: DraftMessage, part: Part) -> Part | None:
    if isinstance(part, Reasoning):
        return Reasoning(whole(part.text)) if part.text else None
    if isinstance(part, ToolCall):
        name = part.name if storable_name(part.name) else word(part.name, ID_LIMIT, "tool")
        return fit_object(ToolCall(part.id, name, part.arguments, part.format), compact)
    return part if isinstance(part, ToolResult) else _fit_content(part)


def _fit_content(part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(whole(part.text)) if part.text else None
    value = _value_of(part)
    read: list[Part] = content_parts([value]) if value is not None else []
    return read[0] if len(read) == 1 and isinstance(read[0], Opaque) else None


def _value_of(part: Part) -> Any:
    """Return the JSON of an ATIF-specific block; None for other parts."""
    if not isinstance(part, Opaque) or part.provider != PROVIDER:
        return None
    try:
        return parse_json(part.data.decode())
    except ValueError:
        return None


def _call_id(id_: str) -> str:
    return id_ if storable_name(id_) else marked(id_, ID_LIMIT, "call")


def _split_at_reasoning(draft: DraftMessage) -> Iterator[DraftMessage]:
    """Split a draft before each run of reasoning."""
    runs: list[DraftMessage] = [replace(draft, pieces=[])]
    for piece in draft.pieces:
        if isinstance(piece.part, Reasoning) and runs[-1].parts:
            runs.append(replace(draft, pieces=[], id="", usage=None))
        runs[-1].pieces.append(piece)
    yield from runs


def _read_usage(usage: Usage) -> Usage:
    return normalise_usage(_metrics(usage))


def _metrics(usage: Usage) -> Wire:
    return {
        "prompt_tokens": usage.input_total,
        "completion_tokens": usage.output_total,
        "cached_tokens": usage.cache_read,
    }


def _totals(drafts: Sequence[DraftMessage], steps: int) -> Wire:
    """Return the total usage that providers reported."""
    reports = [_metrics(draft.usage) for draft in drafts if draft.usage is not None]
    keys = ("prompt_tokens", "completion_tokens", "cached_tokens") if reports else ()
    sums = {f"total_{key}": sum(each[key] for each in reports) for key in keys}
    return {**sums, "total_steps": steps}


def _steps(drafts: Sequence[DraftMessage]) -> Iterator[Wire]:
    """Yield the steps, in order."""
    last: Wire | None = None
    number = 0
    for draft in drafts:
        if draft.role == TOOL and last is not None:
            results = [_observation(result) for result in draft.results]
            last["observation"] = {"results": results}
            continue
        if last is not None:
            yield last
        number += 1
        last = _step(draft, number)
    if last is not None:
        yield last


def _step(draft: DraftMessage, number: int) -> Wire:
    step: Wire = {
        "step_id": number,
        "timestamp": format_time(draft.time),
        "source": "agent" if draft.role == ASSISTANT else draft.role,
    }
    if draft.model:
        step["model_name"] = draft.model
    said = [part for part in draft.parts if not isinstance(part, Reasoning | ToolCall)]
    step["message"] = _content(said)
    for part in draft.parts:
        if isinstance(part, Reasoning):
            step["reasoning_content"] = part.text
    if draft.calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": object_of(call)}
            for call in draft.calls
        ]
    if draft.usage is not None:
        step["metrics"] = _metrics(draft.usage)
    if COPIED in draft.labels:
        step["is_copied_context"] = True
    return step


def _content(parts: Sequence[Part]) -> str | list[Any]:
    text = only_text(parts)
    if text is not None or not parts:
        return text or ""
    return [
        {"type": "text", "text": part.text} if isinstance(part, Text) else _value_of(part)
        for part in parts
    ]


def _observation(result: ToolResult) -> Wire:
    observation: Wire = {"source_call_id": result.call_id, "content": _content(result.content)}
    return observation | ({"extra": {"is_error": True}} if result.is_error else {})
