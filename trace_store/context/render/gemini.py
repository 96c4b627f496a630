"""Google's Gemini: `{"systemInstruction": {...}, "contents": [...], "tools": [...]}`, in the names of REST.

Rule: each turn of `pairing.arrange` becomes a content of role `user` or `model`; the responses to a turn's calls
are a user content of their own right behind it, one for each call.

- System and developer messages at the front are `systemInstruction`, one part for each text. Later ones are user
  text inside `<system>` and `</system>`, for contents know no such role.
- Neighbouring contents of the model are one. When the assistant speaks first, a user content that says so stands
  before it. Empty text is left out. A speaker's name is not sent.
- Thoughts and signatures go back only to the model that made them. A reasoning part without text is the
  `thoughtSignature` of the part behind it in its message; when that is not sent, neither is the signature.
- The first call of a content that has no signature gets the one that skips the check, since Gemini 3 refuses a
  call without; not for models known to be older.
- The arguments of a call are an object. Arguments that are none, or no JSON, are sent as `{"input": text}`.
- A response is `{"output": …}`, or `{"error": …}` when the tool failed: a text, or a list of texts and
  `{"$ref": name}` when there are several or media among them. Media are parts of the response; for models known
  to be older than Gemini 3 they follow in a user content, and a note stands in their place.
- Images are `inlineData`, or `fileData` with the URL; other images than JPEG, PNG, WebP, HEIC and HEIF become
  notes. Those of the model stay where they are.
- Opaque parts of provider "gemini" go out verbatim where they may stand. Others become notes in user contents
  and responses and are left out of the model's.
- Call ids are 1 to 128 printable ASCII characters; names 1 to 64 of `a-z A-Z 0-9 _ - . :` that begin with a
  letter or `_`. Others are changed.
- Lone surrogates become U+FFFD.
"""

from __future__ import annotations

import re

from trace_store.context.render.gemini_parts import Parts
from trace_store.context.render.pairing import Turn, arrange
from trace_store.context.render.signatures import (
    SKIPS_THE_CHECK,
    EarlierReasoning,
    before_gemini_3,
)
from trace_store.context.render.tools import gemini_tools
from trace_store.context.render.values import (
    CALL_UNSIGNED,
    LEADING_ASSISTANT,
    NO_MESSAGES,
    SURROGATE_REPLACED,
    Options,
    Renderable,
    Repairs,
)
from trace_store.context.render.wire import marked, scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from trace_store.context.render.gemini_parts import Placed, Wire

    Draft: TypeAlias = tuple[str, Placed]

PROVIDER = "gemini"
ID_LIMIT = 128
BEGINNING = "[The conversation begins with the assistant.]"
SYSTEM_ROLES = ("system", "developer")
_ID = re.compile(r"[!-~]{1,128}")


def render_gemini(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> Wire:
    """Return the request, without model and limits, which are the caller's."""
    turns = arrange(messages, repairs, call_id=_call_id)
    reasoning = EarlierReasoning(messages, repairs, options, PROVIDER)
    asked = reasoning.model if options.model is None else options.model
    parts = Parts(messages, repairs, reasoning, with_media=not before_gemini_3(asked))
    front = 0
    while front < len(turns) and turns[front].role in SYSTEM_ROLES:
        front += 1
    system = [placed for turn in turns[:front] for placed in parts.system(turn)]
    drafts = _merge([draft for turn in turns[front:] for draft in _drafts(turn, parts)])
    if not before_gemini_3(asked):
        for role, content in drafts:
            if role == "model":
                _sign(content, repairs)
    request: Wire = {}
    if system:
        request["systemInstruction"] = {"parts": _clean(system, repairs)}
    request["contents"] = [
        {"role": role, "parts": _clean(content, repairs)} for role, content in drafts
    ]
    _begin(request["contents"], drafts, repairs)
    schemas, changed = scrub(gemini_tools(tools, repairs))
    if changed:
        repairs.add(SURROGATE_REPLACED, None, "lone surrogates in tool schemas became U+FFFD")
    if schemas:
        request["tools"] = schemas
    return request


def _call_id(id_: str) -> str:
    return id_ if _ID.fullmatch(id_) else marked(id_, ID_LIMIT, "call")


def _drafts(turn: Turn, parts: Parts) -> list[Draft]:
    if turn.role in SYSTEM_ROLES:
        return [("user", parts.late_system(turn))]
    if turn.role == "user":
        return [("user", [placed for piece in turn.pieces for placed in parts.user(piece)])]
    said = parts.model(turn)
    responses, media = parts.responses(turn)
    return [("model", said), ("user", responses), ("user", media)]


def _merge(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the contents that say something, neighbours of the model as one.

    A content with calls must follow one of the user.
    """
    merged: list[Draft] = []
    for role, content in drafts:
        if not content:
            continue
        if role == "model" and merged and merged[-1][0] == role:
            merged[-1][1].extend(content)
        else:
            merged.append((role, list(content)))
    return merged


def _sign(content: Placed, repairs: Repairs) -> None:
    """Give the first call of a content a signature when it has none."""
    call = next(((part, at) for part, at in content if "functionCall" in part), None)
    if call is None or "thoughtSignature" in call[0]:
        return
    part, at = call
    part["thoughtSignature"] = SKIPS_THE_CHECK
    detail = f"call {part['functionCall']['id']!r} has no signature; the check is skipped"
    repairs.add(CALL_UNSIGNED, at, detail)


def _clean(content: Placed, repairs: Repairs) -> list[Wire]:
    clean: list[Wire] = []
    for part, at in content:
        found, changed = scrub(part)
        if changed:
            repairs.add(SURROGATE_REPLACED, at, "lone surrogates became U+FFFD")
        clean.append(found)
    return clean


def _begin(contents: list[Wire], drafts: Sequence[Draft], repairs: Repairs) -> None:
    """See to the first content."""
    if not contents:
        repairs.add(NO_MESSAGES, None, "nothing to send: no message has content")
    elif contents[0]["role"] == "model":
        detail = "the first message is the assistant's; a user message stands before it"
        repairs.add(LEADING_ASSISTANT, drafts[0][1][0][1], detail)
        contents.insert(0, {"role": "user", "parts": [{"text": BEGINNING}]})
