"""What single parts say: blank text, half characters, arguments, images, reasoning and blocks that are not whole.

Rule: a part is mended to what the renderers would send in its place, so that a request says the same before and after.
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
from trace_store.context.repair.working_copy import Bench, Item
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic import PROVIDER
from trace_store.providers.anthropic.render import NOWHERE
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
from trace_store.providers.signatures import maker
from trace_store.providers.values import BLANK_TEXT, INVALID_IMAGE, UNKNOWN_BLOCK
from trace_store.providers.wire import parse_object, scrub

LEFT_OUT = "left out"


def mend_contents(bench: Bench) -> None:
    """Mend what messages say, part by part."""
    bench.images = anthropic_images(bench.items)
    for item in bench.items:
        if not (item.ghost or item.says_nothing):
            before: Sequence[Part | None] = (None, *item.parts)
            pairs = zip(before, item.parts, strict=False)
            item.reword([new for last, part in pairs for new in _mended(bench, item, part, last)])


def _mended(bench: Bench, item: Item, part: Part, before: Part | None) -> Iterator[Part]:
    """Yield what stands in a part's place: itself when it is sound, nothing when it is left out."""
    if isinstance(part, Text):
        if _carries_signature(item, part, before):
            yield part
        else:
            yield from _text(bench, item, part)
    elif isinstance(part, ToolResult):
        yield _result(bench, item, part)
    elif isinstance(part, ToolCall):
        yield _call(bench, item, part)
    elif isinstance(part, Image):
        yield from _image(bench, item, part)
    elif isinstance(part, Reasoning):
        yield from _reasoning(bench, item, part)
    elif isinstance(part, Opaque):
        yield from _opaque(bench, item, part)
    else:
        yield part


def _carries_signature(item: Item, part: Text, before: Part | None) -> bool:
    """Tell whether it is the empty text with which Gemini sends the signature of a finished turn."""
    return (
        not part.text
        and item.role == "assistant"
        and isinstance(before, Reasoning)
        and bool(before.signature)
        and maker(item.model) == "gemini"
    )


def _text(bench: Bench, item: Item, part: Text) -> Iterator[Text]:
    if not part.text:
        if not bench.find(BLANK_TEXT, item, "a text is empty", LEFT_OUT):
            yield part
    elif not part.text.strip():
        if not bench.find(BLANK_TEXT, item, "a text is only white space", LEFT_OUT, ANTHROPIC):
            yield part
    else:
        text = _whole(bench, item, part.text)
        yield part if text is part.text else Text(text)


def _whole(bench: Bench, item: Item, text: str) -> str:
    """Return the text with half characters replaced; the very same one when it has none."""
    whole, broken = scrub(text)
    detail = "text holds half a character"
    if broken and bench.find(BROKEN_CHARACTER, item, detail, "U+FFFD in its place"):
        return str(whole)
    return text


def _result(bench: Bench, item: Item, part: ToolResult) -> ToolResult:
    content: list[Part] = []
    for inner in part.content:
        if isinstance(inner, Text) and len(part.content) == 1:
            # As the only text it may say nothing: a tool that printed nothing is no damage.
            content.append(Text(_whole(bench, item, inner.text)))
        elif isinstance(inner, Text):
            content += _text(bench, item, inner)
        elif isinstance(inner, Image):
            content += _image(bench, item, inner, inside_result=True)
        elif isinstance(inner, Opaque):
            content += _opaque(bench, item, inner, inside_result=True)
        else:
            content.append(inner)
    mended = ToolResult(part.call_id, content, part.is_error, call=part.call)
    return part if mended == part else mended


def _call(bench: Bench, item: Item, part: ToolCall) -> ToolCall:
    arguments = _whole(bench, item, part.arguments)
    if part.format != "text" and arguments.strip() and parse_object(arguments) is None:
        detail = f"the arguments of call {part.id!r} are no JSON object"
        done = "kept as text under the name `input`"
        if bench.find(INVALID_ARGUMENTS, item, detail, done, OBJECT_ARGUMENTS):
            arguments = json.dumps({"input": arguments}, ensure_ascii=False, separators=(",", ":"))
    if arguments is part.arguments:
        return part
    return ToolCall(part.id, part.name, arguments, part.format)


def _image(bench: Bench, item: Item, part: Image, *, inside_result: bool = False) -> Iterator[Part]:
    found = split_image(part)
    detail = invalid_image(part) if found is None else image_fault(*found)
    limits, refusing = ANY_IMAGE, PROVIDERS
    if not detail and found is not None:
        limits, refusing = bench.images, ANTHROPIC
        detail = image_fault(*found, limits)
    typed = None if found is None else typed_image(part, limits)
    in_model_words = item.role == "assistant" and not inside_result
    done = LEFT_OUT if in_model_words else "a note in its place"
    if typed is not None:
        done = f"its type is {typed[0]}"
    if not detail or not bench.find(INVALID_IMAGE, item, detail, done, refusing):
        yield part
    elif typed is not None:
        yield from _image(bench, item, Image(*typed), inside_result=inside_result)
    elif not in_model_words:
        yield Text(image_note(part))


def _reasoning(bench: Bench, item: Item, part: Reasoning) -> Iterator[Part]:
    if maker(item.model) == "anthropic" and not part.signature:
        detail = f"reasoning of {item.model} has no signature"
        if bench.find(UNSIGNED_REASONING, item, detail, LEFT_OUT, ANTHROPIC):
            return
    whole, broken = scrub(part.text)
    if not broken:
        yield part
        return
    # A signature is for the very text; any other is refused.
    done = LEFT_OUT if part.signature else "U+FFFD in its place"
    if not bench.find(BROKEN_CHARACTER, item, "reasoning holds half a character", done):
        yield part
    elif not part.signature:
        yield Reasoning(str(whole), part.signature)


def _opaque(
    bench: Bench, item: Item, part: Opaque, *, inside_result: bool = False
) -> Iterator[Part]:
    in_model_words = item.role == "assistant" and not inside_result
    if left_out_code(part) == UNKNOWN_BLOCK:
        detail = f"a block is in the form of {part.provider!r}, which no provider takes"
        done = LEFT_OUT if in_model_words else "a note in its place"
        if not bench.find(UNKNOWN_BLOCK, item, detail, done):
            yield part
        elif not in_model_words:
            yield Text(opaque_note(part))
        return
    block = opaque_block(part) if part.provider == PROVIDER else None
    fault = "" if block is None else block_fault(block, bench.images)
    if fault and bench.find(INVALID_IMAGE, item, fault, "a note in its place", ANTHROPIC):
        yield Text(opaque_note(part))
        return
    if inside_result or block is None or block["type"] not in NOWHERE:
        yield part
        return
    # A whole one would be a part of its own; this lacks what pairs it.
    detail = f"a {block['type']} block is not whole"
    if in_model_words:
        if not bench.find(BROKEN_BLOCK, item, detail, LEFT_OUT, ANTHROPIC):
            yield part
    elif bench.find(BROKEN_BLOCK, item, detail, "a note in its place", ANTHROPIC):
        yield Text(opaque_note(part))
    else:
        yield part
