"""Blocks and items of OpenAI Responses: which stand where, and which belong together.

Rule: an item is right by itself here; the order of items is `openai_responses.py`'s business.
"""

from __future__ import annotations

from typing import NamedTuple

from trace_store.context.media_facts import OPENAI_IMAGES
from trace_store.context.render.media import base64_image, opaque_block, web_url
from trace_store.context.render.values import OPAQUE_LEFT_OUT, REASONING_LEFT_OUT, Repairs
from trace_store.objects.parts import Image, Opaque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Wire: TypeAlias = dict[str, Any]

PROVIDER = "openai"
# What a part has no place for and must be sent again: kept before the part, in a frame.
FRAMES = {
    "message": ("phase",),
    "function_call": ("caller", "namespace"),
    "custom_tool_call": ("caller", "namespace"),
}
_INPUT_BLOCKS = frozenset({"input_file", "input_image"})
# Blocks of a message, and what is a part of its own here: none of them is an item.
_NO_ITEMS = frozenset(
    {
        *("custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output"),
        *("encrypted_content", "message", "reasoning", "reasoning_text", "summary_text"),
        *("file", "image_url", "input_audio", "input_file", "input_image", "input_text"),
        *("output_text", "refusal", "text"),
    }
)
_BY_PROGRAM = frozenset(
    {"additional_tools", "compaction_trigger", "configuration_update", "mcp_approval_response"}
)
# Calls that the program answers, and what answers them.
_ANSWERED_BY = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
_ANSWERS = {answer: call for call, answer in _ANSWERED_BY.items()}


class Item(NamedTuple):
    """An item, the position of the message it comes from, and whether the model made it."""

    wire: Wire
    at: int
    by_model: bool


def input_text(text: str) -> Wire:
    """Return a text that no model wrote."""
    return {"type": "input_text", "text": text}


def image_part(image: Image) -> Wire | None:
    """Return an image as a block, or None when models do not take it."""
    encoded = base64_image(image, OPENAI_IMAGES)
    url = f"data:{encoded[0]};base64,{encoded[1]}" if encoded else web_url(image)
    return None if url is None else {"type": "input_image", "image_url": url, "detail": "auto"}


def input_block(part: Opaque) -> Wire | None:
    """Return an opaque block that may stand in a user message or an output, else None."""
    block = opaque_block(part) if part.provider == PROVIDER else None
    if block is None:
        return None
    if block["type"] == "file" and isinstance(block.get("file"), dict):
        # The same file, as chat completions write it.
        return {"type": "input_file", **block["file"]}
    return block if block["type"] in _INPUT_BLOCKS else None


def refusal_of(part: Opaque) -> Wire | None:
    """Return a refusal, which stands in a message of the model, else None."""
    block = opaque_block(part) if part.provider == PROVIDER else None
    return block if block is not None and block["type"] == "refusal" else None


def frame_of(part: Opaque) -> Wire | None:
    """Return a frame, else None."""
    block = opaque_block(part) if part.provider == PROVIDER else None
    if block is None or block["type"] not in FRAMES:
        return None
    return block if set(block) - {"type", "call_id"} <= set(FRAMES[block["type"]]) else None


def is_by_program(type_: str) -> bool:
    """Tell whether an item of this type comes from the program; all others come from the model."""
    return type_.endswith("_output") or type_ in _BY_PROGRAM


def item_of(part: Opaque, *, by_program: bool) -> Wire | None:
    """Return an opaque part that is an item by itself, of the program or of the model, else None.

    An item of a type that is not known here is one as well.
    """
    block = opaque_block(part) if part.provider == PROVIDER else None
    if block is None or block["type"] in _NO_ITEMS:
        return None
    return block if is_by_program(block["type"]) == by_program else None


def settle(items: Sequence[Item], repairs: Repairs) -> list[Item]:
    """Return the items without calls and answers that stand alone, and reasoning that nothing follows."""
    alone = _alone(items)
    paired: list[Item] = []
    for index, item in enumerate(items):
        if index in alone:
            detail = f"a {item.wire['type']} item stands alone; left out"
            repairs.add(OPAQUE_LEFT_OUT, item.at, detail)
        else:
            paired.append(item)
    kept: list[Item] = []
    followed = False
    for item in reversed(paired):
        if item.wire["type"] == "reasoning" and not followed:
            repairs.add(REASONING_LEFT_OUT, item.at, "nothing follows the reasoning; left out")
            continue
        followed = item.by_model
        kept.append(item)
    return kept[::-1]


def _alone(items: Sequence[Item]) -> set[int]:
    """Return the places of opaque calls that nothing answers, and of answers that nothing calls."""
    waiting: dict[tuple[str, str], int] = {}
    alone: set[int] = set()
    for index, (wire, _, _) in enumerate(items):
        type_ = wire["type"]
        # An answer of a local shell names its call in `id`; all others have a `call_id`.
        name = wire.get("call_id") or wire.get("id")
        if type_ in _ANSWERED_BY and (wire.get("call_id") or type_ != "tool_search_call"):
            alone.add(index)
            waiting[type_, str(name)] = index
        elif type_ in _ANSWERS and (wire.get("call_id") or type_ != "tool_search_output"):
            call = waiting.pop((_ANSWERS[type_], str(name)), None)
            if call is None:
                alone.add(index)
            else:
                alone.discard(call)
    return alone
