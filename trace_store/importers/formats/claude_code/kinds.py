"""What a record is for: which ones a model saw, and which are about them.

Rule: pure; decides by the record alone and fills in its parts.
"""

from __future__ import annotations

from typing import Any

from trace_store.importers.contract import Record
from trace_store.importers.formats.claude_code.normalising import (
    attachment_parts,
    content_parts,
    user_parts,
)
from trace_store.importers.normalise import storable_name
from trace_store.objects.parts import Text, ToolResult

API_LINE = "api-line"
"""A line of an API message."""
RESULT = "result"
"""A user record with the results of tools, and perhaps text beside them."""
SAID = "said"
"""Anything else a model is shown: a prompt, an injected text, an attachment."""
COMPACTION = "compaction"
"""The summary that stands in for all before it."""
MICRO = "microcompaction"
"""The boundary behind which some results are no longer shown."""
METADATA = "metadata"


def classify(record: Record) -> str:
    """Return what a record is for, and give it its parts."""
    data = record.data
    kind = data.get("type")
    if kind == "assistant":
        message = data.get("message")
        if isinstance(message, dict):
            record.parts = content_parts(message.get("content"))
            return API_LINE if record.parts else METADATA
    elif kind == "user":
        record.parts = user_parts(data.get("message"))
        if not record.parts:
            return METADATA
        if data.get("isCompactSummary") is True:
            return COMPACTION
        return RESULT if any(isinstance(part, ToolResult) for part in record.parts) else SAID
    elif kind == "attachment":
        attachment = data.get("attachment")
        if isinstance(attachment, dict):
            record.parts = attachment_parts(attachment)
            return SAID if record.parts else METADATA
    elif kind == "system":
        return _system(record)
    return METADATA


def label(data: dict[str, Any]) -> str:
    """Return a record's type as reports name it: `user`, `system:turn_duration`, `progress:bash_progress`."""
    kind = data.get("type")
    if (kind == "assistant" or kind == "user") and "data" not in data:
        return str(kind)  # as most are
    if not isinstance(kind, str):
        return "untyped"
    if kind == "system":
        detail = data.get("subtype")
    else:
        inner = data.get("attachment" if kind == "attachment" else "data")
        detail = inner.get("type") if isinstance(inner, dict) else None
    return f"{kind}:{detail}"[:100] if isinstance(detail, str) else kind[:100]


def is_prompt(record: Record) -> bool:
    """Tell whether a record is something a user entered, and so could have gone back to an earlier message."""
    data = record.data
    return (
        data.get("type") == "user"
        and not data.get("sourceToolUseID")
        and data.get("isCompactSummary") is not True
        and not any(isinstance(part, ToolResult) for part in record.parts)
    )


def agent_of_result(data: dict[str, Any]) -> str:
    """Return the id of the subagent whose answer a result is, or nothing."""
    result = data.get("toolUseResult")
    return storable_name(result.get("agentId")) if isinstance(result, dict) else ""


def _system(record: Record) -> str:
    subtype = record.data.get("subtype")
    content = record.data.get("content")
    if subtype == "local_command" and isinstance(content, str) and content:
        record.parts = (Text(content),)
        return SAID
    if subtype == "microcompact_boundary":
        return MICRO
    return METADATA
