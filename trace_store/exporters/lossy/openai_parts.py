"""Parts as OpenAI's blocks and items, for the forms that hold them.

Rule: what is fit can be written, and a reader gets the same part back; which items belong together is told here too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from trace_store.errors import InvalidInputError
from trace_store.exporters.lossy.coerce import block_of, fit_image, only_text, whole
from trace_store.exporters.lossy.drafts import ASSISTANT, TOOL, USER, Draft, Piece
from trace_store.frozen import replace
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import block_part
from trace_store.providers.fields import opaque
from trace_store.providers.openai_responses.render import FRAMES, frame_of, item_of
from trace_store.providers.signatures import maker
from trace_store.providers.wire import parse_object

PROVIDER = "openai"
REFUSAL = "refusal"
_RESULT_BLOCKS = frozenset({"input_file", "input_image"})

Wire = dict[str, Any]


def fit_reasoning(draft: Draft, part: Reasoning) -> Reasoning | None:
    """Return reasoning that a model of OpenAI's made; what of it is signed is `signed_reasoning`'s business."""
    if not draft.model or maker(draft.model) != PROVIDER:
        return None
    return Reasoning(whole(part.text), part.signature or None)


def fit_own(part: Opaque, types: frozenset[str]) -> Opaque | None:
    """Return a block of a message, or of an output, as a reader gets it; None when its type may not stand there."""
    block = block_of(part, PROVIDER)
    if block is None or block.get("type") not in types:
        return None
    try:
        read = block_part(block, "", PROVIDER)
    except InvalidInputError:
        return None
    return read if isinstance(read, Opaque) else None


def fit_item(part: Opaque, role: str, unread: frozenset[str]) -> Opaque | None:
    """Return an opaque part that is an item by itself; None when it is none, or readers take it for something else."""
    item = item_of(part, by_program=role != ASSISTANT) if role in (ASSISTANT, USER) else None
    if item is None or block_of(part, PROVIDER) is None or item["type"] in unread:
        return None
    return opaque(PROVIDER, item)


def fit_inside(part: Part) -> Part | None:
    """Return a part as it is in an output."""
    if isinstance(part, Text):
        return Text(whole(part.text)) if part.text else None
    if isinstance(part, Image):
        return fit_image(part)
    return fit_own(part, _RESULT_BLOCKS) if isinstance(part, Opaque) else None


def signed_reasoning(draft: Draft) -> None:
    """Take from a draft the reasoning that no signature follows at once: without one it is not sent again."""
    signed = False
    for piece in reversed([piece for piece in draft.pieces if piece.part is not None]):
        if not isinstance(piece.part, Reasoning):
            signed = False
        elif piece.part.signature or signed:
            signed = True
        else:
            piece.part = None


def settle_frames(draft: Draft) -> None:
    """Take from a draft the frames that stand before nothing they belong to, and give the others their call's id."""
    pieces = [piece for piece in draft.pieces if piece.part is not None]
    behind: Piece | None = None
    spoken = False
    for index, piece in enumerate(pieces):
        frame = _frame(piece.part)
        behind = pieces[index + 1] if index + 1 < len(pieces) else None
        if frame is None:
            spoken = is_spoken(piece.part)
        elif draft.role == ASSISTANT and behind is not None and _belongs(frame, behind, spoken):
            call = behind.part.id if isinstance(behind.part, ToolCall) else None
            piece.part = _as_read(frame, call)
        else:
            piece.part = None


def is_spoken(part: Part | None) -> bool:
    """Tell whether a part stands in a message of the assistant's, and is no item."""
    if isinstance(part, Opaque):
        block = parse_object(part.data)
        return block is not None and block.get("type") == REFUSAL
    return isinstance(part, Text)


def is_frame(part: Part | None) -> bool:
    """Tell whether an opaque part only gives its fields to what stands behind it."""
    return _frame(part) is not None


def items_apart(drafts: Iterable[Draft]) -> list[Draft]:
    """Return drafts in which an item that the program gave is a message by itself."""
    found: list[Draft] = []
    for draft in drafts:
        if draft.role != USER or not any(is_item(part) for part in draft.parts):
            found.append(draft)
            continue
        runs: list[list[Piece]] = [[]]
        for piece in draft.pieces:
            if runs[-1] and piece.part is not None and is_item(piece.part):
                runs.append([])
            runs[-1].append(piece)
            if is_item(piece.part):
                runs.append([])
        for run in runs:
            if any(piece.part is not None for piece in run):
                found.append(replace(draft, pieces=run))
    return found


def is_item(part: Part | None) -> bool:
    """Tell whether an opaque part is an item by itself, and no block of a message."""
    if not isinstance(part, Opaque):
        return False
    return any(item_of(part, by_program=by_program) is not None for by_program in (True, False))


def items_of(
    draft: Draft, text_calls: Collection[str], listed: Callable[[ToolResult], bool]
) -> Iterator[tuple[Wire, list[Part]]]:
    """Yield the items of a draft that is fit, each with the parts that it holds.

    Args:
        draft: the draft.
        text_calls: the ids of calls whose arguments are free text.
        listed: whether an output is a list, though a text alone would be enough.
    """
    spoken: list[Part] = []
    summary: list[Part] = []
    frame: Wire = {}
    for part in draft.parts:
        if _is_block(part):
            spoken.append(part)
            continue
        framed = frame if not spoken else {}
        yield from _message(draft, spoken, frame)
        spoken, frame = [], _fields(part)
        if frame:
            continue
        if isinstance(part, Reasoning):
            summary.append(part)
            if part.signature:
                yield _thought(summary, part.signature), summary
                summary = []
        elif isinstance(part, ToolResult):
            yield _answer(part, text_calls, as_list=listed(part)), [part]
        else:
            yield _item(part, framed), [part]
    yield from _message(draft, spoken, frame)


def output(parts: Sequence[Part], *, as_list: bool) -> str | list[Wire]:
    """Return what a tool gave out: a text that stands alone is a string, unless a list is wanted."""
    text = None if as_list else only_text(parts)
    return [_block(part, TOOL) for part in parts] if text is None else text


def data_url(image: Image) -> str:
    """Return the address of an image: its own, or its bytes."""
    if image.url is not None:
        return image.url
    return f"data:{image.media_type};base64,{base64.b64encode(image.data or b'').decode()}"


def _is_block(part: Part) -> bool:
    if isinstance(part, Opaque):
        return not is_item(part) and not is_frame(part)
    return isinstance(part, Text | Image)


def _block(part: Part, role: str) -> Wire:
    if isinstance(part, Text):
        if role == ASSISTANT:
            return {"type": "output_text", "text": part.text}
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": data_url(part)}
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _message(draft: Draft, spoken: list[Part], frame: Wire) -> Iterator[tuple[Wire, list[Part]]]:
    if spoken:
        content = [_block(part, draft.role) for part in spoken]
        yield {"type": "message", "role": draft.role, "content": content, **frame}, spoken


def _thought(summary: Sequence[Part], signature: str) -> Wire:
    texts = [part.text for part in summary if isinstance(part, Reasoning)]
    told = [] if texts == [""] else [{"type": "summary_text", "text": text} for text in texts]
    return {"type": "reasoning", "summary": told, "encrypted_content": signature}


def _answer(result: ToolResult, text_calls: Collection[str], *, as_list: bool) -> Wire:
    kind = "custom_tool_call" if result.call_id in text_calls else "function_call"
    told = output(result.content, as_list=as_list)
    return {"type": f"{kind}_output", "call_id": result.call_id, "output": told}


def _item(part: Part, frame: Wire) -> Wire:
    if isinstance(part, ToolCall):
        if part.format == "text":
            form = {"type": "custom_tool_call", "call_id": part.id, "name": part.name}
            return form | {"input": part.arguments} | frame
        form = {"type": "function_call", "name": part.name, "arguments": part.arguments}
        return form | {"call_id": part.id} | frame
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _frame(part: Part | None) -> Wire | None:
    return frame_of(part) if isinstance(part, Opaque) else None


def _fields(part: Part) -> Wire:
    """Return what a frame gives to the item behind it; nothing for other parts."""
    frame = _frame(part)
    return {} if frame is None else {k: frame[k] for k in FRAMES[frame["type"]] if k in frame}


def _belongs(frame: Wire, behind: Piece, spoken: bool) -> bool:
    """Tell whether a frame is meant for the piece behind it; a message that goes on takes none."""
    part = behind.part
    if frame["type"] == "message":
        fits = is_spoken(part) and not spoken
    else:
        kind = "custom_tool_call" if getattr(part, "format", "") == "text" else "function_call"
        original = behind.original
        fits = (
            isinstance(original, ToolCall)
            and frame["type"] == kind
            and frame.get("call_id") == original.id
        )
    return fits and any(frame.get(key) is not None for key in FRAMES[frame["type"]])


def _as_read(frame: Wire, call_id: str | None) -> Opaque:
    kept = {key: frame[key] for key in FRAMES[frame["type"]] if frame.get(key) is not None}
    named = {} if call_id is None else {"call_id": call_id}
    return opaque(PROVIDER, {"type": frame["type"], **named, **kept})
