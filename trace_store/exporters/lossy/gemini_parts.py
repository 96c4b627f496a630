"""Parts as Gemini's parts, for the forms that hold its contents.

Rule: what is fit can be written, and a reader gets the same part back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trace_store.errors import InvalidInputError
from trace_store.exporters.lossy.coerce import block_of, object_of, only_text, sound
from trace_store.exporters.lossy.drafts import ASSISTANT, Draft
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.gemini.parse import GeminiCalls, gemini_parts
from trace_store.providers.gemini.render import MEDIA, MODEL_ONLY, NOWHERE
from trace_store.providers.media import gemini_media
from trace_store.providers.wire import parse_object, scrub

PROVIDER = "gemini"

Wire = dict[str, Any]


def fit_plain(part: Part) -> Part | None:
    """Return a text or an image as it is in a content or a response, or None."""
    if isinstance(part, Text):
        return Text(sound(part.text)) if part.text else None
    if not isinstance(part, Image):
        return None
    shown = gemini_media(part)
    read = () if shown is None else _read(shown)
    return read[0] if len(read) == 1 and isinstance(read[0], Image) else None


def fit_own(part: Opaque, draft: Draft) -> Opaque | None:
    """Return a part of Gemini's own as a reader keeps it; None when it may not stand in the message."""
    found = _own(part)
    if found is None or not (draft.role == ASSISTANT or MODEL_ONLY.isdisjoint(found)):
        return None
    return _kept(found)


def fit_inside(part: Part) -> Part | None:
    """Return a part as it is in a response, or None."""
    if not isinstance(part, Opaque):
        return fit_plain(part)
    found = _own(part)
    if found is None or len(found) != 1 or MEDIA.isdisjoint(found):
        return None
    ((kind, fields),) = found.items()
    if not isinstance(fields, dict):
        return None
    return _kept({kind: {key: value for key, value in fields.items() if key != "displayName"}})


def plain_part(part: Part) -> Wire:
    """Return the part of a part that is fit, and is no result."""
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Reasoning):
        thought: Wire = {"text": part.text, "thought": True}
        return thought | ({"thoughtSignature": part.signature} if part.signature else {})
    if isinstance(part, ToolCall):
        return {"functionCall": {"id": part.id, "name": part.name, "args": object_of(part)}}
    if isinstance(part, Image):
        return gemini_media(part) or {}
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def response(result: ToolResult, name: str) -> Wire:
    """Return the response of a result that is fit, given what its tool is called."""
    value, parts = _output(result.content)
    told: Wire = {"error" if result.is_error else "output": value}
    form: Wire = {"id": result.call_id, "name": name, "response": told}
    return {"functionResponse": form | ({"parts": parts} if parts else {})}


def _output(content: Sequence[Part]) -> tuple[Any, list[Wire]]:
    """Return what a tool gave out, and the parts that it refers to."""
    text = only_text(content)
    if text is not None or not content:
        return text, []
    pieces: list[Any] = []
    parts: list[Wire] = []
    for part in content:
        if isinstance(part, Text):
            pieces.append(part.text)
            continue
        label = f"part-{len(parts) + 1}"
        ((kind, fields),) = plain_part(part).items()
        parts.append({kind: {**fields, "displayName": label}})
        pieces.append({"$ref": label})
    return (pieces[0] if len(pieces) == 1 else pieces), parts


def _own(part: Opaque) -> Wire | None:
    """Return a part of Gemini's own that stands by itself, else None."""
    found = block_of(part, PROVIDER)
    if found is None or "type" in found or not NOWHERE.isdisjoint(found):
        return None
    return found if any(isinstance(value, dict) for value in found.values()) else None


def _kept(found: Wire) -> Opaque | None:
    """Return a part as a reader keeps it; None when it takes it for something else."""
    read = _read(scrub(found)[0])
    return read[0] if len(read) == 1 and isinstance(read[0], Opaque) else None


def _read(form: Wire) -> tuple[Part, ...]:
    try:
        return tuple(gemini_parts(form, "", GeminiCalls()))
    except InvalidInputError:
        return ()
