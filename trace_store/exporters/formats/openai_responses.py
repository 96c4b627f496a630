"""OpenAI's Responses items: a request to go on from, without the parameters that are the caller's.

Rule: every call is answered at once. Reasoning goes back to the model that made it, with what it is signed with; items
have no ids of their own, for the provider would look for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy.coerce import fit_image, sound
from trace_store.exporters.lossy.drafts import ASSISTANT, USER, Draft, join, split_results
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.exporters.lossy.openai_parts import (
    PROVIDER,
    REFUSAL,
    fit_inside,
    fit_item,
    fit_own,
    fit_reasoning,
    is_frame,
    items_apart,
    items_of,
    settle_frames,
    signed_reasoning,
)
from trace_store.exporters.lossy.requests import (
    bare,
    fit_request,
    kept_tools,
    last_family,
    last_model_of,
    sound_schemas,
    with_a_text,
)
from trace_store.objects.message import ROLES
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.openai_responses.parse import place_responses
from trace_store.providers.openai_responses.render import Item, settle
from trace_store.providers.signatures import model_family
from trace_store.providers.tools import OPENAI_NAME_LIMIT, responses_tools
from trace_store.providers.values import Repairs
from trace_store.providers.wire import marked, to_bytes, word

NAME = "openai-responses"
SUFFIX = ".json"

ID_LIMIT = 64
_INPUT_BLOCKS = frozenset({"input_file", "input_image"})

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    family = last_family(session, PROVIDER)
    drafts = fit_request(session, ROLES, _Fit(family).part, fit_inside, _call_id)
    for draft in drafts:
        settle_frames(draft)
        signed_reasoning(draft)
    drafts = items_apart(split_results([draft for draft in drafts if draft.parts]))
    with_a_text(drafts)
    text_calls = {call.id for draft in drafts for call in draft.calls if call.format == "text"}
    items = _settled(drafts, text_calls)
    drafts = _as_read(items)
    bare(drafts)
    model = last_model_of(session, PROVIDER)
    request: Wire = {"model": model} if model else {}
    request["input"] = [_complete(item) for item, _ in items]
    schemas = sound_schemas(responses_tools(session.tools, Repairs(())))
    if schemas:
        request["tools"] = schemas
    losses = losses_of(session, drafts, tools=kept_tools(session, schemas))
    return Exported(to_bytes(request) + b"\n", losses, file_name(session, SUFFIX))


class _Fit:
    """Says what parts are in a request to a model of one family."""

    def __init__(self, family: str) -> None:
        self._family = family

    def part(self, draft: Draft, part: Part) -> Part | None:
        """Return a part as it is in the input, or None."""
        if isinstance(part, Text):
            return Text(sound(part.text)) if part.text else None
        if isinstance(part, Reasoning):
            own = bool(self._family) and model_family(draft.model) == self._family
            thought = fit_reasoning(draft, part) if own else None
            return None if thought is None else Reasoning(sound(thought.text), thought.signature)
        if isinstance(part, ToolCall):
            name = word(part.name, OPENAI_NAME_LIMIT, "tool")
            return ToolCall(part.id, name, sound(part.arguments), part.format)
        if isinstance(part, ToolResult):
            return ToolResult(part.call_id, part.content)
        if isinstance(part, Image):
            return fit_image(part) if draft.role == USER else None
        if not isinstance(part, Opaque):
            return None
        if draft.role == ASSISTANT:
            own_block = part if is_frame(part) else fit_own(part, frozenset({REFUSAL}))
        else:
            own_block = fit_own(part, _INPUT_BLOCKS) if draft.role == USER else None
        return own_block or fit_item(part, draft.role, frozenset())


def _call_id(id_: str) -> str:
    fits = 0 < len(id_) <= ID_LIMIT and all("!" <= character <= "~" for character in id_)
    return id_ if fits else marked(id_, ID_LIMIT, "call")


def _settled(drafts: Sequence[Draft], text_calls: Collection[str]) -> list[tuple[Wire, Draft]]:
    """Return the items with the drafts they are of, without those that may not stand alone; their parts go too."""
    made = [
        (item, draft, parts)
        for draft in drafts
        for item, parts in items_of(draft, text_calls, lambda _: False)
    ]
    numbered = [Item(wire, at, draft.role == ASSISTANT) for at, (wire, draft, _) in enumerate(made)]
    kept = {item.at for item in settle(numbered, Repairs([draft for _, draft, _ in made]))}
    for at, (_, draft, parts) in enumerate(made):
        for piece in draft.pieces:
            if at not in kept and any(piece.part is part for part in parts):
                piece.part = None
    return [(wire, draft) for at, (wire, draft, _) in enumerate(made) if at in kept]


def _as_read(items: Sequence[tuple[Wire, Draft]]) -> list[Draft]:
    """Return the messages that a reader makes of items: those of the assistant that follow each other are one."""
    found: list[Draft] = []
    for placed in place_responses([item for item, _ in items]):
        owners = list(dict.fromkeys(draft for _, draft in items[placed.start : placed.stop]))
        for other in owners[1:]:
            join(owners[0], other)
        found.append(owners[0])
    return found


def _complete(item: Wire) -> Wire:
    """Return an item with what the API's own types want beside its content."""
    is_message = item.get("type") == "message"
    for key in ("content",) if is_message else ("output",):
        if isinstance(item.get(key), list) and (is_message or "call_id" in item):
            return {**item, key: [_complete_block(block) for block in item[key]]}
    return item


def _complete_block(block: Wire) -> Wire:
    if block["type"] == "output_text":
        return {**block, "annotations": []}
    return {**block, "detail": "auto"} if block["type"] == "input_image" else block
