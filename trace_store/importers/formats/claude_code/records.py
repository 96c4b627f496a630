"""Classification of Claude Code's records, and their message parts.

Invariant: pure; decided by the record alone. An unknown block becomes an opaque part, so that nothing a model saw
is lost.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeGuard

from trace_store.importers.convert import opaque, storable_name, usage_counts
from trace_store.importers.json_records import compact
from trace_store.objects.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

API_LINE = "api-line"
"""A line of an API message."""
RESULT = "result"
"""A user record with tool results, and possibly text."""
SAID = "said"
"""Anything else that the model sees: a prompt, injected text, an attachment."""
COMPACTION = "compaction"
"""The summary that replaces everything before it."""
MICRO = "microcompaction"
"""The boundary after which some results are no longer shown."""
QUEUED = "queued"
"""Text that the user typed while the agent worked."""
TAKEN = "taken"
"""The queue was handed to the model during a turn."""
RECALLED = "recalled"
"""The queue went back into the user's input line."""
METADATA = "metadata"


def classify(record: Record) -> str:
    """Return the purpose of a record, and set its parts."""
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
    elif kind == "queue-operation":
        return _queue_operation(record)
    return METADATA


def label(data: dict[str, Any]) -> str:
    """Return a record's type for reports, such as `user` or `system:turn_duration`."""
    kind = data.get("type")
    if (kind == "assistant" or kind == "user") and "data" not in data:
        return str(kind)  # the common case
    if not isinstance(kind, str):
        return "untyped"
    if kind == "system":
        detail = data.get("subtype")
    else:
        inner = data.get("attachment" if kind == "attachment" else "data")
        detail = inner.get("type") if isinstance(inner, dict) else None
    return f"{kind}:{detail}"[:100] if isinstance(detail, str) else kind[:100]


def is_prompt(record: Record) -> bool:
    """Return True if a user entered the record, which may therefore be a rewind."""
    data = record.data
    return (
        data.get("type") == "user"
        and not data.get("sourceToolUseID")
        and data.get("isCompactSummary") is not True
        and not any(isinstance(part, ToolResult) for part in record.parts)
    )


def agent_of_result(data: dict[str, Any]) -> str:
    """Return the id of the subagent that a result is from, or ""."""
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


def _queue_operation(record: Record) -> str:
    """Classify a change of the queue of prompts.

    Operations are `enqueue`, `remove` (handed over during a turn), `dequeue` (a turn begins with it, and has a
    record of its own) and `popAll` (back into the input line). What the harness and commands put there has other
    records, if the model sees it.
    """
    operation, content = record.data.get("operation"), record.data.get("content")
    if operation == "enqueue":
        if not isinstance(content, str) or not content.strip() or content.startswith(_UNTYPED):
            return METADATA
        record.parts = (Text(content),)
        return QUEUED
    return {"remove": TAKEN, "popAll": RECALLED}.get(str(operation), METADATA)


PROVIDER = "anthropic"
AUTHOR = "claude-code"
SYNTHETIC_MODEL = "<synthetic>"
"""Claude Code's model name for messages it made itself."""

CLEARED_TEXT = "[Old tool result content cleared]"
"""Text shown for results cleared by a microcompaction."""

MAXIMUM_BLOCKS = 10_000
"""Maximum blocks of a content; a commit is limited, and no provider sends as many."""

HARNESS_MARKUP = (
    *("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>"),
    *("<local-command-caveat>", "<bash-input>", "<bash-stdout>", "<bash-stderr>"),
    *("<task-notification>", "[Request interrupted by user"),
)
"""Prefixes of user text that is generated, not typed."""

_UNTYPED = ("/", '{"task_id"', *HARNESS_MARKUP)
"""Prefixes of queued text that is a command or generated."""

_MODEL_SEES_HOOK = ("SessionStart", "UserPromptSubmit")


def content_parts(content: Any) -> tuple[Part, ...]:
    """Return the parts of a content: text or a list of blocks; empty for other shapes."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        if len(content) > MAXIMUM_BLOCKS:
            return (opaque(PROVIDER, content),)
        return tuple([_part(block) for block in content])
    return ()


def user_parts(message: Any) -> tuple[Part, ...]:
    """Return the parts of a user record's `message`, which may be bare text."""
    return content_parts(message.get("content") if isinstance(message, dict) else message)


def attachment_parts(attachment: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return what the model sees of an attachment; empty if only the user sees it."""
    kind = attachment.get("type")
    if kind == "hook_success":
        if attachment.get("hookEvent") not in _MODEL_SEES_HOOK:
            return ()
        return _texts(attachment.get("content"))
    if kind in ("hook_additional_context", "skill_listing"):
        return _texts(attachment.get("content"))
    if kind == "queued_command":
        return content_parts(attachment.get("prompt"))
    if kind in ("deferred_tools_delta", "agent_listing_delta", "mcp_instructions_delta"):
        lines = attachment.get("addedLines") or attachment.get("addedBlocks")
        return _texts("\n".join(lines)) if lines and _is_text_list(lines) else ()
    if kind == "edited_text_file":
        return _texts([attachment.get("filename"), attachment.get("snippet")])
    if kind == "date_change":
        return _texts(attachment.get("newDate"))
    if kind == "task_reminder":
        return _json(attachment.get("content"))
    if kind == "diagnostics":
        return _json(attachment.get("files"))
    return ()


def observed_usage(message: Mapping[str, Any], *, final: bool) -> dict[str, int | str]:
    """Return a message's usage in stored form, or empty.

    Args:
        message: the provider's message.
        final: True if its stop reason is known. Until then the output tokens are those at the start of streaming,
            and are left out.
    """
    usage = message.get("usage")
    model = message.get("model")
    if not isinstance(usage, dict) or not isinstance(model, str) or model == SYNTHETIC_MODEL:
        return {}
    counts = usage_counts(usage, model)
    if counts and not final:
        del counts["output_total"], counts["reasoning"]
    return counts


def is_harness_text(parts: tuple[Part, ...]) -> bool:
    """Return True if a user record's text is Claude Code's own markup."""
    first = parts[0] if parts else None
    return isinstance(first, Text) and first.text.startswith(HARNESS_MARKUP)


def _part(block: Any) -> Part:
    if isinstance(block, dict):
        part = _known_part(block)
        return opaque(PROVIDER, block) if part is None else part
    return Text(block) if isinstance(block, str) else opaque(PROVIDER, block)


def _known_part(block: dict[str, Any]) -> Part | None:
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return Text(text) if isinstance(text, str) else None
    if kind == "thinking":
        text, signature = block.get("thinking"), block.get("signature")
        if isinstance(text, str) and (signature is None or isinstance(signature, str)):
            return Reasoning(text, signature)
        return None
    if kind == "tool_use":
        call_id, name = storable_name(block.get("id")), storable_name(block.get("name"))
        if call_id and name and "input" in block:
            return ToolCall(call_id, name, compact(block["input"]))
        return None
    if kind == "tool_result":
        call_id = storable_name(block.get("tool_use_id"))
        return _result(call_id, block) if call_id else None
    if kind == "image":
        return _image(block.get("source"))
    return None


def _result(call_id: str, block: dict[str, Any]) -> ToolResult:
    content = block.get("content")
    if content in (None, "", []):
        return ToolResult(call_id, (), block.get("is_error") is True)
    parts = content_parts(content) or (opaque(PROVIDER, content),)
    if any(isinstance(part, ToolResult) for part in parts):
        parts = (opaque(PROVIDER, content),)  # no provider nests results
    return ToolResult(call_id, parts, block.get("is_error") is True)


def _image(source: Any) -> Image | None:
    if not isinstance(source, dict):
        return None
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return Image(url=source["url"])
    data, media = source.get("data"), storable_name(source.get("media_type"))
    if source.get("type") != "base64" or not isinstance(data, str) or not media:
        return None
    if data.startswith("data:"):
        # A data URL in place of the data; its own type may differ.
        _, _, data = data.partition(";base64,")
    try:
        return Image(media, base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None


def _texts(content: Any) -> tuple[Part, ...]:
    items = content if isinstance(content, list) else [content]
    return tuple(Text(item) for item in items if isinstance(item, str) and item)


def _is_text_list(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _json(value: Any) -> tuple[Part, ...]:
    return (Text(compact(value)),) if value else ()
