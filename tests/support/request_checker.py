"""What providers demand of a request's shape, said a second time and without Trace.

Rule: this file imports nothing of Trace, so that a mistake in the renderers cannot hide here as well. It reads
requests as JSON gives them and returns what is wrong; an empty list means the provider would take them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

OPENAI_ROLES = ("system", "developer", "user", "assistant", "tool")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
WORD = re.compile(r"[a-zA-Z0-9_-]+")
RESULT_TYPES = ("text", "image", "document", "search_result", "tool_reference", "browser_state")


def check_openai_chat(request: Any) -> list[str]:
    """Name each rule of OpenAI chat completions that the request breaks, and where."""
    found = list(check_json(request))
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages: must be a list with at least one message"]
    waiting: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role")
        if role not in OPENAI_ROLES:
            found.append(f"{where}: unknown role {role!r}")
            continue
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                found.append(f"{where}: answers no call of the assistant message before it")
        elif waiting:
            found.append(f"{where}: calls {waiting} are not answered before it")
            waiting = []
        found += openai_content(message, where)
        if role == "assistant":
            waiting = [call.get("id") for call in message.get("tool_calls", [])]
            found += openai_calls(message, where)
        elif "tool_calls" in message:
            found.append(f"{where}: only the assistant calls")
    if waiting:
        found.append(f"messages: calls {waiting} are not answered at the end")
    found += tool_names(request, [t.get(t.get("type"), {}) for t in request.get("tools", [])], 64)
    return found


def openai_content(message: dict[str, Any], where: str) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    if content is None:
        if role != "assistant" or not message.get("tool_calls"):
            yield f"{where}: has no content"
        return
    if isinstance(content, str):
        if not content and role != "tool":
            yield f"{where}: has empty content"
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: content must be text or a list with at least one part"
        return
    allowed = {
        "user": ("text", "image_url", "input_audio", "file"),
        "assistant": ("text", "refusal"),
    }.get(role, ("text",))
    for index, part in enumerate(content):
        type_ = part.get("type")
        if type_ not in allowed:
            yield f"{where}.content[{index}]: a {role} message takes no {type_!r}"
        elif type_ == "text" and not isinstance(part.get("text"), str):
            yield f"{where}.content[{index}]: text is not text"
        elif type_ == "text" and not part["text"]:
            yield f"{where}.content[{index}]: text is empty"
        elif type_ == "image_url" and not re.match(
            r"https?://|data:image/(jpeg|png|gif|webp);base64,", part["image_url"]["url"]
        ):
            yield f"{where}.content[{index}]: not an image that models take"


def openai_calls(message: dict[str, Any], where: str) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not calls:
        yield f"{where}: tool_calls is empty"
    ids = [call.get("id") for call in calls]
    if len(set(ids)) != len(ids):
        yield f"{where}: an id is used twice"
    for index, call in enumerate(calls):
        place = f"{where}.tool_calls[{index}]"
        if not isinstance(call.get("id"), str) or not 1 <= len(call["id"]) <= 40:
            yield f"{place}: an id has 1 to 40 characters"
        field = {"function": "arguments", "custom": "input"}.get(call.get("type"))
        if field is None:
            yield f"{place}: unknown type {call.get('type')!r}"
            continue
        called = call.get(call["type"], {})
        if not isinstance(called.get(field), str):
            yield f"{place}: {field} must be text"
        yield from valid_name(called.get("name"), 64, place)


def check_anthropic(request: Any) -> list[str]:
    """Name each rule of Anthropic messages that the request breaks, and where."""
    found = list(check_json(request))
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages: must be a list with at least one message"]
    for index, block in enumerate(request.get("system", [])):
        found += anthropic_text(block, f"system[{index}]")
    if messages[0].get("role") != "user":
        found.append("messages[0]: the first message must be the user's")
    used: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            found.append(f"{where}: unknown role {role!r}")
            continue
        if index and messages[index - 1].get("role") == role:
            found.append(f"{where}: {role} speaks twice in a row")
        if not isinstance(content, list) or not content:
            found.append(f"{where}: content must be a list with at least one block")
            continue
        found += anthropic_results(content, waiting, where)
        last = index == len(messages) - 1
        if role == "user":
            waiting = []
            found += anthropic_user(content, where)
        else:
            waiting = [block["id"] for block in content if block.get("type") == "tool_use"]
            found += anthropic_assistant(content, used, where, last)
    if waiting:
        found.append(f"messages: calls {waiting} are not answered at the end")
    found += breakpoints(request)
    tools = [tool for tool in request.get("tools", []) if "input_schema" in tool]
    for tool in tools:
        if tool["input_schema"].get("type") != "object":
            found.append(f"tools: the input of {tool.get('name')!r} is no object")
    return found + list(tool_names(request, tools, 128))


def anthropic_results(content: list[Any], waiting: list[str], where: str) -> Iterator[str]:
    """Results come first, and answer exactly the calls of the previous message."""
    types = [block.get("type") for block in content]
    front = 0
    while front < len(types) and types[front] == "tool_result":
        front += 1
    if "tool_result" in types[front:]:
        yield f"{where}: a result follows other content"
    answered = [b.get("tool_use_id") for b in content if b.get("type") == "tool_result"]
    for id_ in waiting:
        if id_ not in answered:
            yield f"{where}: call {id_!r} of the message before is not answered"
    for id_ in answered:
        if id_ not in waiting:
            yield f"{where}: a result answers {id_!r}, which the message before does not call"
    if len(set(answered)) != len(answered):
        yield f"{where}: a call is answered twice"


def anthropic_user(content: list[Any], where: str) -> Iterator[str]:
    for index, block in enumerate(content):
        place, type_ = f"{where}.content[{index}]", block.get("type")
        if type_ == "text":
            yield from anthropic_text(block, place)
        elif type_ == "image":
            yield from anthropic_image(block, place)
        elif type_ == "tool_result":
            yield from anthropic_result(block, place)
        elif str(type_).removeprefix("redacted_") in (
            "thinking",
            "tool_use",
            "server_tool_use",
        ) or (str(type_).endswith("_tool_result")):
            yield f"{place}: a user message takes no {type_!r}"


def anthropic_result(block: dict[str, Any], place: str) -> Iterator[str]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield f"{place}: a failed result must say something"
    if content is None or isinstance(content, str):
        if block.get("is_error") and isinstance(content, str) and not content.strip():
            yield f"{place}: a failed result must say something"
        return
    if not isinstance(content, list):
        yield f"{place}: content must be text or a list"
        return
    for index, inner in enumerate(content):
        type_ = inner.get("type")
        if type_ not in RESULT_TYPES:
            yield f"{place}.content[{index}]: a result takes no {type_!r}"
        if block.get("is_error") and type_ != "text":
            yield f"{place}.content[{index}]: a failed result takes text only"
        if type_ == "text":
            yield from anthropic_text(inner, f"{place}.content[{index}]")
        if type_ == "image":
            yield from anthropic_image(inner, f"{place}.content[{index}]")


def anthropic_assistant(
    content: list[Any], used: set[str], where: str, last: bool
) -> Iterator[str]:
    called: set[Any] = set()
    for index, block in enumerate(content):
        place, type_ = f"{where}.content[{index}]", block.get("type")
        if type_ == "text":
            yield from anthropic_text(block, place)
        elif type_ == "tool_use":
            if not isinstance(block.get("id"), str) or not WORD.fullmatch(block["id"]):
                yield f"{place}: an id is of letters, digits, _ and -"
            if block.get("id") in used:
                yield f"{place}: id {block.get('id')!r} is used twice"
            used.add(block.get("id", ""))
            if not isinstance(block.get("input"), dict):
                yield f"{place}: the input must be an object"
            yield from valid_name(block.get("name"), 128, place)
        elif type_ in ("image", "document", "tool_result", "search_result"):
            yield f"{place}: an assistant message takes no {type_!r}"
        elif type_ == "thinking" and not block.get("signature"):
            yield f"{place}: thinking needs its signature"
        elif type_ == "server_tool_use":
            called.add(block.get("id"))
            answered = {b.get("tool_use_id") for b in content[index:]}
            if block.get("id") not in answered and not last:
                yield f"{place}: a server's tool call is not answered"
        elif (
            isinstance(type_, str)
            and type_.endswith("_tool_result")
            and block.get("tool_use_id") not in called
        ):
            yield f"{place}: a server's tool result answers no call"
    if content[-1].get("type") in ("thinking", "redacted_thinking"):
        yield f"{where}: the last block is thinking"
    text = content[-1].get("text", "")
    if last and isinstance(text, str) and text != text.rstrip():
        yield f"{where}: the last message ends in white space"


def anthropic_text(block: dict[str, Any], place: str) -> Iterator[str]:
    if not isinstance(block.get("text"), str):
        yield f"{place}: text is not text"
    elif not block["text"].strip():
        yield f"{place}: text is blank"


def anthropic_image(block: dict[str, Any], place: str) -> Iterator[str]:
    source = block.get("source", {})
    if source.get("type") == "base64" and source.get("media_type") in IMAGE_TYPES:
        return
    if source.get("type") == "file":
        return
    if source.get("type") != "url" or not re.match("https?://", source.get("url", "")):
        yield f"{place}: not an image that models take"


def breakpoints(request: dict[str, Any]) -> Iterator[str]:
    """At most four marks, none on thinking."""
    blocks = [*request.get("tools", []), *request.get("system", [])]
    for message in request["messages"]:
        content = message.get("content")
        blocks += content if isinstance(content, list) else []
    marked = [block for block in blocks if "cache_control" in block]
    if len(marked) > 4:
        yield f"cache: {len(marked)} breakpoints, at most 4"
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        yield "cache: thinking takes no breakpoint"


def tool_names(request: dict[str, Any], tools: list[dict[str, Any]], limit: int) -> Iterator[str]:
    if request.get("tools") == []:
        yield "tools: an empty list"
    for index, tool in enumerate(tools):
        yield from valid_name(tool.get("name"), limit, f"tools[{index}]")


def valid_name(name: object, limit: int, place: str) -> Iterator[str]:
    if not isinstance(name, str) or not WORD.fullmatch(name) or len(name) > limit:
        yield f"{place}: a name is 1 to {limit} letters, digits, _ and -"


def check_json(request: Any) -> Iterator[str]:
    """A request is JSON in UTF-8."""
    try:
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        yield "request: holds lone surrogates"
    except (TypeError, ValueError) as error:
        yield f"request: is not JSON: {error}"
