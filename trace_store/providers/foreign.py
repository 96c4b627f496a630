"""Messages and blocks of other programs, converted to OpenAI's and Anthropic's.

Invariant: tables and pure functions. An unknown form gives None and is read unchanged.

    Amp                     a `tool_result` with `toolUseID` and `run`
    Bedrock Converse        blocks without a type: `{"text"}`, `{"toolUse"}`, `{"toolResult"}`, `{"image"}`
    Kimi CLI                blocks of type `think`
    OpenTelemetry GenAI     `parts` with `content`, `tool_call` and `tool_call_response`
    pi                      blocks of type `toolCall`, messages of role `toolResult`
    ShareGPT, Hermes        `from` and `value`, with calls in `<tool_call>` tags
    Vercel AI SDK           `tool-call` and `tool-result`; `parts` of the messages of its user interface
    LangChain and others    roles `human`, `ai`, `bot`, `gpt`, `model`
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from trace_store.objects.message import ROLES
from trace_store.providers.fields import dump

ROLE_NAMES = {
    "ai": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
    "human": "user",
    "model": "assistant",
}
"""Names of roles that other programs use, and ours."""

_TAGS = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESPONSES = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)

Form = Mapping[str, Any]
Block = dict[str, Any]


def familiar_message(form: Form) -> Block | None:
    """Return another program's message with role and content, or None if unknown."""
    role = form.get("role")
    if role is None and isinstance(form.get("value"), str) and isinstance(form.get("from"), str):
        return _share_gpt(form["from"], form["value"])
    if not isinstance(role, str):
        return None
    if role == "toolResult":
        call_id = form.get("toolCallId")
        result = {"type": "tool_result", "tool_use_id": call_id, "content": form.get("content")}
        return {"role": "tool", "content": [{**result, "is_error": form.get("isError") is True}]}
    role = ROLE_NAMES.get(role, role)
    if "content" not in form and are_foreign_parts(form.get("parts")):
        rest = {key: value for key, value in form.items() if key != "parts"}
        content = [block for part in form["parts"] for block in _ui_blocks(part)]
        return {**rest, "role": role, "content": content}
    return {**form, "role": role} if role != form["role"] and "content" in form else None


def are_foreign_parts(parts: Any) -> bool:
    """Return True for typed parts of OpenTelemetry and the Vercel AI SDK."""
    if not isinstance(parts, list) or not parts:
        return False
    typed = [p for p in parts if isinstance(p, dict) and isinstance(p.get("type"), str)]
    return len(typed) == len(parts) and any(_is_mark(p) or _is_foreign_part(p) for p in typed)


def familiar_block(block: Form) -> Block | None:
    """Convert another program's block to Anthropic's form; None if unknown."""
    type_ = block.get("type")
    if type_ is None:
        keys = [key for key in block if key in _BEDROCK]
        return _BEDROCK[keys[0]](block[keys[0]]) if len(keys) == 1 else None
    if not isinstance(type_, str):
        return None
    if type_.startswith("tool-") and type_ not in _BLOCKS and "toolCallId" in block:
        return _ui_call({**block, "toolName": type_.removeprefix("tool-")})
    rewrite = _BLOCKS.get(type_)
    return None if rewrite is None else rewrite(block)


def _is_mark(part: Form) -> bool:
    """Return True for a separator of a message's parts."""
    return part.get("type") == "step-start"


def _ui_blocks(part: Form) -> list[Form]:
    """Return a part of a UI message as blocks: a call there contains its result."""
    if _is_mark(part):
        return []
    held = part.get("toolInvocation")
    part = {**held, "type": "dynamic-tool"} if isinstance(held, dict) else part
    if "toolCallId" not in part or part["type"] in ("tool-call", "tool-result"):
        return [part]
    if part.get("errorText"):
        return [part, _result(part["toolCallId"], part["errorText"], failed=True)]
    return [part, _vercel_result(part)] if "output" in part or "result" in part else [part]


def _is_foreign_part(part: Form) -> bool:
    type_ = part["type"]
    if type_ in ("text", "reasoning"):
        return "content" in part and "text" not in part
    if type_ == "tool_call":
        return not isinstance(part.get("arguments"), str)
    return type_ in _PARTS_ONLY or (type_.startswith("tool-") and "toolCallId" in part)


def _text(block: Form) -> Block | None:
    if "text" in block or not isinstance(block.get("content"), str):
        return None
    return {"type": "text", "text": block["content"]}


def _thinking(*names: str) -> Callable[[Form], Block | None]:
    def rewrite(block: Form) -> Block | None:
        text = next((block[name] for name in names if isinstance(block.get(name), str)), None)
        if text is None:
            return None
        signature = block.get("signature") or block.get("thinkingSignature")
        return {"type": "thinking", "thinking": text, "signature": signature}

    return rewrite


def _call(id_: str, name: str, *inputs: str) -> Callable[[Form], Block | None]:
    def rewrite(block: Form) -> Block:
        given: Any = next((block[key] for key in inputs if key in block), {})
        return {
            "type": "tool_use",
            "id": block.get(id_),
            "name": block.get(name),
            "input": _json(given),
        }

    return rewrite


def _result(call_id: Any, content: Any, *, failed: bool = False) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": failed}


def _amp_result(block: Form) -> Block | None:
    run = block.get("run")
    if "toolUseID" not in block or not isinstance(run, dict):
        return None
    value = run.get("result", run.get("error"))
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        value = value["content"]
    return _result(block["toolUseID"], _as_content(value), failed=run.get("status") == "error")


def _otel_result(block: Form) -> Block:
    return _result(block.get("id"), _as_content(block.get("result", block.get("response"))))


def _vercel_result(block: Form) -> Block:
    output = block.get("output", block.get("result"))
    failed = block.get("isError") is True
    if isinstance(output, dict) and "value" in output and isinstance(output.get("type"), str):
        failed = failed or output["type"].startswith("error")
        output = output["value"]
    return _result(block.get("toolCallId"), _as_content(output), failed=failed)


def _ui_call(block: Form) -> Block:
    return {
        "type": "tool_use",
        "id": block.get("toolCallId"),
        "name": block.get("toolName"),
        "input": _json(block.get("input", block.get("args", {}))),
    }


def _bedrock_result(value: Any) -> Block | None:
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    if isinstance(content, list):
        content = [
            {"type": "text", "text": dump(each["json"])}
            if isinstance(each, dict) and "json" in each
            else each
            for each in content
        ]
    return _result(value.get("toolUseId"), content, failed=value.get("status") == "error")


def _bedrock_image(value: Any) -> Block | None:
    source = value.get("source") if isinstance(value, dict) else None
    if not isinstance(source, dict) or not isinstance(source.get("bytes"), str):
        return None
    media = f"image/{value.get('format', 'png')}"
    return _base64_image(media, source["bytes"])


def _bedrock_reasoning(value: Any) -> Block | None:
    held = value.get("reasoningText", value) if isinstance(value, dict) else None
    return _thinking("text")(held) if isinstance(held, dict) else None


def _image(block: Form) -> Block | None:
    data = block.get("data", block.get("image"))
    media = block.get("mimeType", block.get("mediaType"))
    if not isinstance(data, str) or not isinstance(media, str) or "source" in block:
        return None
    return _base64_image(media, data)


def _file(block: Form) -> Block | None:
    media, url = block.get("mediaType"), block.get("url")
    if not isinstance(media, str) or not media.startswith("image/"):
        return None
    if isinstance(url, str):
        return {"type": "image_url", "image_url": {"url": url}}
    return _image(block)


def _base64_image(media: str, data: str) -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def _reasoning_content(block: Form) -> Block | None:
    return _bedrock_reasoning(block.get("reasoning_content"))


_BEDROCK: dict[str, Callable[[Any], Block | None]] = {
    "image": _bedrock_image,
    "reasoningContent": _bedrock_reasoning,
    "text": lambda value: {"type": "text", "text": value},
    "toolResult": _bedrock_result,
    "toolUse": lambda value: (
        _call("toolUseId", "name", "input")(value) if isinstance(value, dict) else None
    ),
}
_BLOCKS: dict[str, Callable[[Form], Block | None]] = {
    "dynamic-tool": _ui_call,
    "file": _file,
    "image": _image,
    "reasoning": _thinking("text", "content"),
    "reasoning_content": _reasoning_content,
    "text": _text,
    "think": _thinking("think"),
    "tool-call": _call("toolCallId", "toolName", "input", "args"),
    "tool-result": _vercel_result,
    "toolCall": _call("id", "name", "arguments"),
    "tool_call": _call("id", "name", "arguments", "args"),
    "tool_call_response": _otel_result,
    "tool_result": _amp_result,
}
_PARTS_ONLY = frozenset({"dynamic-tool", "tool-invocation", "tool_call_response"})


def _share_gpt(speaker: str, value: str) -> Block:
    """Return a ShareGPT turn; calls have no ids, so tool names pair them with results."""
    role = ROLE_NAMES.get(speaker, speaker)
    if role not in ROLES:
        return {"role": role, "content": value}
    pattern = _RESPONSES if role == "tool" else _TAGS
    blocks: list[Block] = []
    counts: dict[str, int] = {}
    end = 0
    for match in pattern.finditer(value):
        form = _json(match[1])
        if not isinstance(form, dict) or not isinstance(form.get("name"), str):
            continue
        if value[end : match.start()].strip():
            blocks.append({"type": "text", "text": value[end : match.start()].strip()})
        end = match.end()
        name = form["name"]
        counts[name] = counts.get(name, 0) + 1
        id_ = form.get("tool_call_id") or form.get("id")
        id_ = id_ or (name if counts[name] == 1 else f"{name}_{counts[name]}")
        if role == "tool":
            blocks.append(_result(id_, _as_content(form.get("content"))))
        else:
            given = form.get("arguments", {})
            blocks.append({"type": "tool_use", "id": id_, "name": name, "input": given})
    if not blocks:
        alone = {"tool_call_id": "tool"} if role == "tool" else {}
        return {"role": role, "content": value, **alone}
    if value[end:].strip():
        blocks.append({"type": "text", "text": value[end:].strip()})
    return {"role": role, "content": blocks}


def _as_content(value: Any) -> Any:
    """Return the output of a tool as text, or as blocks if it has any."""
    if value is None or isinstance(value, str):
        return value or ""
    blocks = value if isinstance(value, list) else []
    if blocks and all(isinstance(each, dict) and "type" in each for each in blocks):
        return blocks
    return dump(value)


def _json(value: Any) -> Any:
    """Return the value of JSON in a text; anything else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
