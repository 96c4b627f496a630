"""Anthropic's messages: a request to go on from, which lacks nothing but the next thing to say.

Rule: every call is answered at once, in a message of results alone; neighbours of the same role stay apart, for the API
joins them. What a model thought goes back to its family, signed.

- What system and developer say at the front is `system`; later it is said by the user.
- Arguments are an object, and what is none is the text `input` in one.
- A failed result says something, in text alone; one that cannot is not marked as failed.
"""

from __future__ import annotations

from typing import Any

from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy.anthropic_parts import PROVIDER, AnthropicParts, block, block_type
from trace_store.exporters.lossy.coerce import sound
from trace_store.exporters.lossy.drafts import ASSISTANT, TOOL, USER, Draft, Piece, thin_out
from trace_store.exporters.lossy.loss_count import losses_of, nothing_left
from trace_store.exporters.lossy.requests import (
    BEGINNING,
    bare,
    fit_request,
    joined_front,
    kept_tools,
    last_family,
    last_model_of,
    sound_schemas,
)
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolResult
from trace_store.providers.anthropic.render import SERVER_CALLS, THINKING, is_server_result
from trace_store.providers.fields import dump, opaque
from trace_store.providers.signatures import model_family
from trace_store.providers.tools import anthropic_tools
from trace_store.providers.values import Repairs
from trace_store.providers.wire import parse_object, scrub, to_bytes, word

NAME = "anthropic"
SUFFIX = ".json"

ID_LIMIT = 256
MAXIMUM_TOKENS = 8192
"""What a model may answer, since the API wants a number; the caller's to change."""

LONG_BYTES = 65_536

_SYSTEM = "system"
_ROLES = (_SYSTEM, "developer", USER, ASSISTANT, TOOL)

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    fit = _Fit(last_family(session, PROVIDER))
    drafts = fit_request(session, _ROLES, fit.part, fit.inside, lambda i: word(i, ID_LIMIT, "call"))
    drafts = joined_front(drafts, USER)
    for draft in drafts:
        if draft.role == ASSISTANT:
            _pair_server_calls(draft, last=draft is drafts[-1])
            _end_in_words(draft)
        elif draft.role == TOOL:
            _settle_results(draft)
        elif draft.role == _SYSTEM:
            _texts_alone(draft)
    drafts = [draft for draft in drafts if draft.parts]
    bare(drafts)
    model = last_model_of(session, PROVIDER)
    request: Wire = {"model": model} if model else {}
    request["max_tokens"] = MAXIMUM_TOKENS
    front = [draft for draft in drafts if draft.role == _SYSTEM]
    system = [block(part) for draft in front for part in draft.parts]
    if len(front) == len(drafts):
        raise nothing_left()
    said = [_message(draft) for draft in drafts[len(front) :]]
    if said and said[0]["role"] == ASSISTANT:
        said.insert(0, {"role": USER, "content": [block(Text(BEGINNING))]})
    # A reader tells by the beginning of a file what it is, so what is long comes later.
    is_long = len(to_bytes(system)) > LONG_BYTES
    request |= (
        {"messages": said, "system": system} if is_long else {"system": system, "messages": said}
    )
    schemas = sound_schemas(anthropic_tools(session.tools, Repairs(())))
    if schemas:
        request["tools"] = schemas
    losses = losses_of(session, drafts, tools=kept_tools(session, schemas))
    return Exported(to_bytes(request) + b"\n", losses, file_name(session, SUFFIX))


class _Fit:
    """Says what parts are in a request to a model of one family."""

    def __init__(self, family: str) -> None:
        self._family = family
        self._parts = AnthropicParts(
            lambda value: dump(scrub(value)[0]), lambda found: opaque(PROVIDER, scrub(found)[0])
        )

    def part(self, draft: Draft, part: Part) -> Part | None:
        """Return a part as it is in a message, or None."""
        if _thinks(part) and not (self._family and model_family(draft.model) == self._family):
            return None
        fit = self._parts.fit(draft, part)
        if isinstance(fit, Text):
            return Text(sound(fit.text)) if fit.text.strip() else None
        return Reasoning(sound(fit.text), fit.signature) if isinstance(fit, Reasoning) else fit

    def inside(self, part: Part) -> Part | None:
        """Return a part as it is in a result, or None."""
        fit = self._parts.inside(part)
        return Text(sound(fit.text)) if isinstance(fit, Text) else fit


def _says(part: Part) -> bool:
    return not isinstance(part, Text) or bool(part.text.strip())


def _thinks(part: Part | None) -> bool:
    return isinstance(part, Reasoning) or (isinstance(part, Opaque) and _type(part) in THINKING)


def _settle_results(draft: Draft) -> None:
    """Let results say something or nothing, never blanks beside other things, and failures in words."""
    for piece in draft.pieces:
        result = piece.part
        if not isinstance(result, ToolResult):
            continue
        if len(result.content) > 1:
            thin_out(piece, _says)
        worded = any(isinstance(part, Text) and _says(part) for part in result.content)
        if result.is_error and worded:
            thin_out(piece, lambda part: isinstance(part, Text))
        elif isinstance(piece.part, ToolResult):
            piece.part = ToolResult(result.call_id, piece.part.content)


def _end_in_words(draft: Draft) -> None:
    """Take from a draft the thinking that nothing follows in it."""
    for piece in reversed(draft.pieces):
        if piece.part is None:
            continue
        if not _thinks(piece.part):
            break
        piece.part = None


def _pair_server_calls(draft: Draft, *, last: bool) -> None:
    """Take from a draft calls and answers of Anthropic's own tools that stand alone; the last may be answered yet."""
    waiting: dict[str, Piece] = {}
    alone: list[Piece] = []
    for piece in draft.pieces:
        found = parse_object(piece.part.data) if isinstance(piece.part, Opaque) else None
        if found is None:
            continue
        type_ = block_type(found)
        if type_ in SERVER_CALLS:
            before = waiting.pop(str(found.get("id")), None)
            alone += [before] if before is not None else []
            waiting[str(found.get("id"))] = piece
        elif is_server_result(type_) and waiting.pop(str(found.get("tool_use_id")), None) is None:
            alone.append(piece)
    for piece in [*alone, *([] if last else waiting.values())]:
        piece.part = None


def _texts_alone(draft: Draft) -> None:
    for piece in draft.pieces:
        piece.part = piece.part if isinstance(piece.part, Text) else None


def _message(draft: Draft) -> Wire:
    role = USER if draft.role == TOOL else draft.role
    return {"role": role, "content": [block(part) for part in draft.parts]}


def _type(part: Opaque) -> str:
    return block_type(parse_object(part.data) or {})
