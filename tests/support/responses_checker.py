"""What OpenAI demands of a Responses request, said a second time and without Trace.

Rule: as in `request_checker.py`: nothing of Trace is imported, and an empty list means the provider would take it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.support.request_checker import check_json, tool_names, valid_name

ROLES = ("system", "developer", "user", "assistant")
INPUT_TYPES = {
    "system": ("input_text",),
    "developer": ("input_text",),
    "user": ("input_text", "input_image", "input_file"),
    "assistant": ("output_text", "refusal"),
}
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
OUTPUTS = {f"{call}_output": call for call in CALLS}
# Calls of OpenAI's own tools that the caller runs.
OWN_CALLS = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
}
# Items from the caller, which cannot follow from reasoning.
NOT_THE_MODELS = (*OUTPUTS, *OWN_CALLS.values(), "tool_search_output", "mcp_approval_response")
IMAGE = re.compile(r"https?://|data:image/(jpeg|png|gif|webp);base64,")


def check_openai_responses(request: Any) -> list[str]:
    """Name each rule of OpenAI Responses that the request breaks, and where."""
    found = list(check_json(request))
    if request.get("instructions") == "":
        found.append("instructions: empty")
    items = request.get("input")
    if not isinstance(items, list) or not items:
        return [*found, "input: must be a list with at least one item"]
    for index, item in enumerate(items):
        place, type_ = f"input[{index}]", item.get("type")
        if type_ == "message":
            found += message(item, place)
        elif type_ == "reasoning":
            found += reasoning(item, items[index + 1 : index + 2], place)
        elif type_ in CALLS:
            found += call(item, place)
        elif type_ in OUTPUTS:
            found += blocks(item.get("output"), INPUT_TYPES["user"], place, empty=True)
        elif not isinstance(type_, str):
            found.append(f"{place}: an item has a type")
        if type_ in ("message", "reasoning", *CALLS, *OUTPUTS) and "id" in item:
            found.append(f"{place}: an id ties the item to what is stored under it")
    found += pairs(items)
    found += own_pairs(items)
    for index, tool in enumerate(request.get("tools", [])):
        found += function(tool, f"tools[{index}]")
    named = [t for t in request.get("tools", []) if t.get("type") in ("function", "custom")]
    return found + list(tool_names(request, named, 64))


def message(item: dict[str, Any], place: str) -> Iterator[str]:
    role = item.get("role")
    if role not in ROLES:
        yield f"{place}: unknown role {role!r}"
        return
    yield from blocks(item.get("content"), INPUT_TYPES[role], place, empty=False)
    if "phase" in item and (
        role != "assistant" or item["phase"] not in ("commentary", "final_answer")
    ):
        yield f"{place}: the assistant's phase is commentary or final_answer"


def blocks(content: Any, types: tuple[str, ...], place: str, *, empty: bool) -> Iterator[str]:
    if isinstance(content, str) and (content or empty):
        return
    if not isinstance(content, list) or not content:
        yield f"{place}: content must be text or a list with at least one block"
        return
    for index, block in enumerate(content):
        type_, where = block.get("type"), f"{place}.content[{index}]"
        if type_ not in types:
            yield f"{where}: takes no {type_!r}"
        elif type_.endswith("_text") and (
            not isinstance(block.get("text"), str) or not block["text"]
        ):
            yield f"{where}: text is not text, or empty"
        elif type_ == "input_image" and not (
            block.get("file_id") or IMAGE.match(str(block.get("image_url")))
        ):
            yield f"{where}: not an image that models take"


def reasoning(item: dict[str, Any], behind: list[dict[str, Any]], place: str) -> Iterator[str]:
    if not isinstance(item.get("encrypted_content"), str) or not item["encrypted_content"]:
        yield f"{place}: reasoning that is not stored needs its encrypted_content"
    if not isinstance(item.get("summary"), list):
        yield f"{place}: reasoning needs a summary"
    user = not behind or (behind[0].get("type") == "message" and behind[0]["role"] != "assistant")
    if user or behind[0].get("type") in NOT_THE_MODELS:
        yield f"{place}: reasoning stands right before what it led to"


def call(item: dict[str, Any], place: str) -> Iterator[str]:
    if not isinstance(item.get("call_id"), str) or not 1 <= len(item["call_id"]) <= 64:
        yield f"{place}: a call_id has 1 to 64 characters"
    if not isinstance(item.get(CALLS[item["type"]]), str):
        yield f"{place}: {CALLS[item['type']]} must be text"
    yield from valid_name(item.get("name"), 64, place)


def pairs(items: list[dict[str, Any]]) -> Iterator[str]:
    """Each call has one output of its kind, with only calls and outputs in between."""
    used: set[str] = set()
    waiting: dict[str, str] = {}
    for index, item in enumerate(items):
        place, type_ = f"input[{index}]", item.get("type")
        if type_ in CALLS:
            id_ = str(item.get("call_id"))
            if id_ in used:
                yield f"{place}: call_id {id_!r} is used twice"
            used.add(id_)
            waiting[id_] = str(type_)
        elif type_ in OUTPUTS:
            called = waiting.pop(str(item.get("call_id")), None)
            if called is None:
                yield f"{place}: answers no call before it"
            elif called != OUTPUTS[type_]:
                yield f"{place}: answers a {called} with a {type_}"
        elif type_ == "message" and waiting and item.get("role") != "assistant":
            yield f"{place}: calls {sorted(waiting)} are not answered before it"
            waiting = {}
    if waiting:
        yield f"input: calls {sorted(waiting)} are not answered at the end"


def own_pairs(items: list[dict[str, Any]]) -> Iterator[str]:
    for call_type, answer in OWN_CALLS.items():
        waiting: list[str] = []
        for item in items:
            name = str(item.get("call_id") or item.get("id"))
            if item.get("type") == call_type:
                waiting.append(name)
            elif item.get("type") == answer:
                if name in waiting:
                    waiting.remove(name)
                else:
                    yield f"input: a {answer} answers no call"
        if waiting:
            yield f"input: a {call_type} is not answered"


def function(tool: dict[str, Any], place: str) -> Iterator[str]:
    if tool.get("type") != "function":
        return
    if not isinstance(tool.get("parameters"), dict):
        yield f"{place}: a function needs parameters"
    if not isinstance(tool.get("strict"), bool):
        yield f"{place}: a function says whether it is strict, for it is when it does not say"
