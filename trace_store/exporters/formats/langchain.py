"""A session as LangChain messages, for `messages_from_dict` and most chat stores."""

from __future__ import annotations

from typing import Any

from trace_store.context.usage import Usage, normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.coerce import fit_image, whole
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    DraftMessage,
    drafts_of,
    forget,
    settle_calls,
    split_results,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.objects.message import ROLES
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.langchain import block_form, langchain_message, message_from_langchain
from trace_store.providers.wire import document_to_bytes, marked

NAME = "langchain"
SUFFIX = ".json"

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the list of messages; see `contract.FormatWriter`."""
    drafts = coerce.fitted(drafts_of(session), ROLES, _fit_part, _fit_plain)
    drafts = split_results(settle_calls(drafts, lambda id_: id_ or marked(id_, 16, "call")))
    for draft in drafts:
        name = "" if draft.role == TOOL else draft.name
        forget(draft)
        draft.name, draft.time = name, 0
        if draft.role != ASSISTANT:
            draft.model, draft.usage = "", None
        if draft.usage is not None:
            draft.usage = normalise_usage(_usage(draft.usage))
    document = [
        langchain_message(draft, None if draft.usage is None else _usage(draft.usage))
        for draft in drafts
    ]
    losses = losses_of(session, drafts)
    return Exported(document_to_bytes(document) + b"\n", losses, file_name(session, SUFFIX))


def _fit_part(draft: DraftMessage, part: Part) -> Part | None:
    if isinstance(part, ToolCall):
        return ToolCall(part.id, part.name, whole(part.arguments), part.format)
    if isinstance(part, Reasoning):
        return Reasoning(whole(part.text), whole(part.signature) if part.signature else None)
    if isinstance(part, ToolResult):
        return part
    return None if isinstance(part, Image) and draft.role == ASSISTANT else _fit_plain(part)


def _fit_plain(part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(whole(part.text))
    if isinstance(part, Image):
        return fit_image(part)
    return _fit_block(part) if isinstance(part, Opaque) else None


def _fit_block(part: Opaque) -> Opaque | None:
    """Return a block as a reader gets it; None if it would be read as something else."""
    block = block_form(part)
    if block is None:
        return None
    form = {"type": "human", "data": {"content": [block]}}
    try:
        read = message_from_langchain(form, "").parts
    except InvalidInputError:
        return None
    same = len(read) == 1 and isinstance(read[0], Opaque) and read[0].provider == part.provider
    return read[0] if same and isinstance(read[0], Opaque) else None


def _usage(usage: Usage) -> Wire:
    return {
        "input_tokens": usage.input_total,
        "output_tokens": usage.output_total,
        "total_tokens": usage.input_total + usage.output_total,
        "input_token_details": {
            "cache_read": usage.cache_read,
            "cache_creation": usage.cache_write,
        },
        "output_token_details": {"reasoning": usage.reasoning},
    }
