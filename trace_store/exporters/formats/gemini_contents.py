"""Contents of Google's Gemini: a request to go on from, without the parameters that are the caller's.

Rule: every call is answered at once, in a content of responses alone; what the model says without interruption is one
content. Thoughts and signatures go back to the family of the model that spoke last.

- What system and developer say at the front is `systemInstruction`; later it is said by the user.
- A signature without a thought is that of the part behind it.
- Arguments are an object, and what is none is the text `input` in one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy.coerce import fit_object
from trace_store.exporters.lossy.drafts import ASSISTANT, TOOL, USER, Draft
from trace_store.exporters.lossy.gemini_parts import (
    PROVIDER,
    fit_inside,
    fit_own,
    fit_plain,
    fit_thought,
    plain_part,
    response,
    said_parts,
    settle_signatures,
)
from trace_store.exporters.lossy.loss_count import losses_of, nothing_left
from trace_store.exporters.lossy.requests import (
    BEGINNING,
    bare,
    fit_request,
    joined_answers,
    joined_front,
    kept_tools,
    last_family,
    last_model_of,
    sound_schemas,
)
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.fields import dump
from trace_store.providers.signatures import SKIPS_THE_CHECK, before_gemini_3, model_family
from trace_store.providers.tools import gemini_tool_name, gemini_tools
from trace_store.providers.values import Repairs
from trace_store.providers.wire import marked, scrub, to_bytes

NAME = "gemini-contents"
SUFFIX = ".json"

MODEL = "model"
ID_LIMIT = 128
_SYSTEM = "system"
_ROLES = (_SYSTEM, "developer", USER, ASSISTANT, TOOL)

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    model = last_model_of(session, PROVIDER)
    fit = _Fit(last_family(session, PROVIDER), model)
    drafts = fit_request(session, _ROLES, fit.part, fit.inside, _call_id)
    for draft in drafts:
        settle_signatures(draft)
    drafts = joined_front([draft for draft in drafts if draft.parts], USER)
    drafts = joined_answers(drafts)
    for draft in drafts:
        if draft.role == _SYSTEM:
            _texts_alone(draft)
    drafts = [draft for draft in drafts if draft.parts]
    bare(drafts)
    front = [draft for draft in drafts if draft.role == _SYSTEM]
    if len(front) == len(drafts):
        raise nothing_left()
    names = {call.id: call.name for draft in drafts for call in draft.calls}
    contents = [_content(draft, names) for draft in drafts[len(front) :]]
    if contents[0]["role"] == MODEL:
        contents.insert(0, {"role": USER, "parts": [{"text": BEGINNING}]})
    if not before_gemini_3(model):
        _sign(contents)
    # A reader tells by the beginning of a file what it is, so what may be long comes later.
    request: Wire = {"contents": contents}
    if front:
        request["systemInstruction"] = {"parts": [plain_part(part) for part in front[0].parts]}
    schemas = sound_schemas(gemini_tools(session.tools, Repairs(())))
    if schemas:
        request["tools"] = schemas
    losses = losses_of(session, drafts, tools=kept_tools(session, schemas))
    return Exported(to_bytes(request) + b"\n", losses, file_name(session, SUFFIX))


class _Fit:
    """Says what parts are in a request to a model."""

    def __init__(self, family: str, model: str) -> None:
        self._family = family
        self._old = before_gemini_3(model)

    def part(self, draft: Draft, part: Part) -> Part | None:
        """Return a part as it is in a content, or None."""
        if isinstance(part, Reasoning):
            own = self._family and model_family(draft.model) == self._family
            return fit_thought(part) if own else None
        if isinstance(part, ToolCall):
            made = fit_object(part, lambda value: dump(scrub(value)[0]))
            return ToolCall(part.id, gemini_tool_name(part.name, None, None), made.arguments)
        if isinstance(part, ToolResult):
            return part
        return fit_own(part, draft) if isinstance(part, Opaque) else fit_plain(part)

    def inside(self, part: Part) -> Part | None:
        """Return a part as it is in a response, or None: models before Gemini 3 take text alone."""
        return None if self._old and not isinstance(part, Text) else fit_inside(part)


def _call_id(id_: str) -> str:
    fits = 0 < len(id_) <= ID_LIMIT and all("!" <= character <= "~" for character in id_)
    return id_ if fits else marked(id_, ID_LIMIT, "call")


def _content(draft: Draft, names: Mapping[str, str]) -> Wire:
    if draft.role == ASSISTANT:
        return {"role": MODEL, "parts": said_parts(draft)}
    if draft.role == TOOL:
        answers = [response(result, names[result.call_id]) for result in draft.results]
        return {"role": USER, "parts": answers}
    return {"role": USER, "parts": [plain_part(part) for part in draft.parts]}


def _sign(contents: Sequence[Wire]) -> None:
    """Give the first call of each content that has no signature the one that skips the check."""
    for content in contents:
        call = next((part for part in content["parts"] if "functionCall" in part), None)
        if call is not None:
            call.setdefault("thoughtSignature", SKIPS_THE_CHECK)


def _texts_alone(draft: Draft) -> None:
    for piece in draft.pieces:
        piece.part = piece.part if isinstance(piece.part, Text) else None
