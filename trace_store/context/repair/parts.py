"""Repair of single parts: blank text, lone surrogates, arguments, images, reasoning and incomplete blocks.

A repaired part equals what the renderers would send, so a repair does not change requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from trace_store.context.repair.faults import (
    ANTHROPIC,
    BROKEN_BLOCK,
    BROKEN_CHARACTER,
    INVALID_ARGUMENTS,
    OBJECT_ARGUMENTS,
    PROVIDERS,
    UNSIGNED_REASONING,
)
from trace_store.context.repair.working_copy import Item, WorkingCopy
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic import NOWHERE, PROVIDER
from trace_store.providers.media import (
    anthropic_images,
    block_fault,
    image_note,
    invalid_image,
    left_out_code,
    opaque_block,
    opaque_note,
    split_image,
    typed_image,
)
from trace_store.providers.media_facts import ANY_IMAGE, image_fault
from trace_store.providers.validity import maker
from trace_store.providers.values import BLANK_TEXT, INVALID_IMAGE, UNKNOWN_BLOCK
from trace_store.providers.wire import parse_object, scrub

LEFT_OUT = "left out"


def repair_parts(copy: WorkingCopy) -> None:
    """Repair all messages part by part."""
    copy.images = anthropic_images(copy.items)
    for item in copy.items:
        if not (item.ghost or item.says_nothing):
            before: Sequence[Part | None] = (None, *item.parts)
            pairs = zip(before, item.parts, strict=False)
            item.reword(
                [new for last, part in pairs for new in _repair_part(copy, item, part, last)]
            )


def _repair_part(copy: WorkingCopy, item: Item, part: Part, before: Part | None) -> Iterator[Part]:
    """Yield the replacement of a part: the part itself if it is valid, nothing if it is left out."""
    if isinstance(part, Text):
        if _carries_signature(item, part, before):
            yield part
        else:
            yield from _text(copy, item, part)
    elif isinstance(part, ToolResult):
        yield _result(copy, item, part)
    elif isinstance(part, ToolCall):
        yield _call(copy, item, part)
    elif isinstance(part, Image):
        yield from _image(copy, item, part)
    elif isinstance(part, Reasoning):
        yield from _reasoning(copy, item, part)
    elif isinstance(part, Opaque):
        yield from _opaque(copy, item, part)
    else:
        yield part


def _carries_signature(item: Item, part: Text, before: Part | None) -> bool:
    """Return True if this is the empty text that carries Gemini's signature of a finished turn."""
    return (
        not part.text
        and item.role == "assistant"
        and isinstance(before, Reasoning)
        and bool(before.signature)
        and maker(item.model) == "gemini"
    )


def _text(copy: WorkingCopy, item: Item, part: Text) -> Iterator[Text]:
    if not part.text:
        if not copy.find(BLANK_TEXT, item, "a text is empty", LEFT_OUT):
            yield part
    elif not part.text.strip():
        if not copy.find(BLANK_TEXT, item, "a text is only white space", LEFT_OUT, ANTHROPIC):
            yield part
    else:
        text = _replace_surrogates(copy, item, part.text)
        yield part if text is part.text else Text(text)


def _replace_surrogates(copy: WorkingCopy, item: Item, text: str) -> str:
    """Return the text with lone surrogates replaced; the same object if there are none."""
    whole, broken = scrub(text)
    detail = "text contains a lone surrogate"
    if broken and copy.find(BROKEN_CHARACTER, item, detail, "replaced by U+FFFD"):
        return str(whole)
    return text


def _result(copy: WorkingCopy, item: Item, part: ToolResult) -> ToolResult:
    content: list[Part] = []
    for inner in part.content:
        if isinstance(inner, Text) and len(part.content) == 1:
            # The only text of a result may be blank: a tool that printed nothing is valid.
            content.append(Text(_replace_surrogates(copy, item, inner.text)))
        elif isinstance(inner, Text):
            content += _text(copy, item, inner)
        elif isinstance(inner, Image):
            content += _image(copy, item, inner, inside_result=True)
        elif isinstance(inner, Opaque):
            content += _opaque(copy, item, inner, inside_result=True)
        else:
            content.append(inner)
    mended = ToolResult(part.call_id, content, part.is_error, call=part.call)
    return part if mended == part else mended


def _call(copy: WorkingCopy, item: Item, part: ToolCall) -> ToolCall:
    arguments = _replace_surrogates(copy, item, part.arguments)
    if part.format != "text" and arguments.strip() and parse_object(arguments) is None:
        detail = f"the arguments of call {part.id!r} are not a JSON object"
        done = "kept as text under the name `input`"
        if copy.find(INVALID_ARGUMENTS, item, detail, done, OBJECT_ARGUMENTS):
            arguments = json.dumps({"input": arguments}, ensure_ascii=False, separators=(",", ":"))
    if arguments is part.arguments:
        return part
    return ToolCall(part.id, part.name, arguments, part.format)


def _image(
    copy: WorkingCopy, item: Item, part: Image, *, inside_result: bool = False
) -> Iterator[Part]:
    found = split_image(part)
    detail = invalid_image(part) if found is None else image_fault(*found)
    limits, refusing = ANY_IMAGE, PROVIDERS
    if not detail and found is not None:
        limits, refusing = copy.images, ANTHROPIC
        detail = image_fault(*found, limits)
    typed = None if found is None else typed_image(part, limits)
    in_model_words = item.role == "assistant" and not inside_result
    done = LEFT_OUT if in_model_words else "replaced by a note"
    if typed is not None:
        done = f"type set to {typed[0]}"
    if not detail or not copy.find(INVALID_IMAGE, item, detail, done, refusing):
        yield part
    elif typed is not None:
        yield from _image(copy, item, Image(*typed), inside_result=inside_result)
    elif not in_model_words:
        yield Text(image_note(part))


def _reasoning(copy: WorkingCopy, item: Item, part: Reasoning) -> Iterator[Part]:
    if maker(item.model) == "anthropic" and not part.signature:
        detail = f"reasoning of {item.model} has no signature"
        if copy.find(UNSIGNED_REASONING, item, detail, LEFT_OUT, ANTHROPIC):
            return
    whole, broken = scrub(part.text)
    if not broken:
        yield part
        return
    # A signature is valid only for the exact text.
    done = LEFT_OUT if part.signature else "replaced by U+FFFD"
    if not copy.find(BROKEN_CHARACTER, item, "reasoning contains a lone surrogate", done):
        yield part
    elif not part.signature:
        yield Reasoning(str(whole), part.signature)


def _opaque(
    copy: WorkingCopy, item: Item, part: Opaque, *, inside_result: bool = False
) -> Iterator[Part]:
    in_model_words = item.role == "assistant" and not inside_result
    if left_out_code(part) == UNKNOWN_BLOCK:
        detail = f"a block has the format of {part.provider!r}, which no provider accepts"
        done = LEFT_OUT if in_model_words else "replaced by a note"
        if not copy.find(UNKNOWN_BLOCK, item, detail, done):
            yield part
        elif not in_model_words:
            yield Text(opaque_note(part))
        return
    block = opaque_block(part) if part.provider == PROVIDER else None
    fault = "" if block is None else block_fault(block, copy.images)
    if fault and copy.find(INVALID_IMAGE, item, fault, "replaced by a note", ANTHROPIC):
        yield Text(opaque_note(part))
        return
    if inside_result or block is None or block["type"] not in NOWHERE:
        yield part
        return
    # A complete block would have been decoded to a part of its own.
    detail = f"a {block['type']} block is incomplete"
    if in_model_words:
        if not copy.find(BROKEN_BLOCK, item, detail, LEFT_OUT, ANTHROPIC):
            yield part
    elif copy.find(BROKEN_BLOCK, item, detail, "replaced by a note", ANTHROPIC):
        yield Text(opaque_note(part))
    else:
        yield part
