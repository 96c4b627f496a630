"""Google's Gemini API: contents of parts.

Reading: contents with camelCase (REST) or snake_case (Python) names.

Invariant: one content is one message; unknown parts are kept verbatim as opaque parts of provider
"gemini", in camelCase.

- `model` is the assistant. A content with only function responses is a `tool` message.
- A thought is a reasoning part. A `thoughtSignature` on any other part is a reasoning part without text, directly
  before that part: it signs the part after it. The signature that only skips the check is ignored.
- A call or a response without an `id` gets one. Responses are paired with calls by id, else by name, oldest
  first.
- A response `{"output": …}` is the tool's output, `{"error": …}` that of a failed call; any other response is the
  whole output. Text is text, a list of texts and `{"$ref": name}` is a list of parts (the names are those
  of the response's own `parts`), anything else is JSON.

Requests: `systemInstruction`, `contents`, `tools`.

Invariant: each turn of `validity.arrange` becomes a content of role `user` or `model`; the responses to a turn's
calls are a separate user content directly after it, one for each call.

- System and developer messages at the front are `systemInstruction`, one part for each text. Later ones are user
  text inside `<system>` and `</system>`, since contents have no such role.
- Neighbouring contents of the model are merged. If the assistant speaks first, a user content that says so
  precedes it. Empty text is left out. A speaker's name is not sent.
- Thoughts and signatures are sent only to the model that wrote them. A reasoning part without text is the
  `thoughtSignature` of the next part in its message; if that is not sent, neither is the signature.
- If the first call of a content has no signature, it gets the one that skips the check, since Gemini 3 rejects a
  call without one; not for models known to be older.
- The arguments of a call are an object. Other arguments are sent as `{"input": text}`.
- A response is `{"output": …}`, or `{"error": …}` if the tool failed: a text, or a list of texts and
  `{"$ref": name}` if there are several or media among them. Media are parts of the response; for models known
  to be older than Gemini 3 they follow in a user content, and a note replaces them.
- Images are `inlineData`, or `fileData` with the URL; images other than JPEG, PNG, WebP, HEIC and HEIF become
  notes. Images of the model stay.
- Opaque parts of provider "gemini" are sent verbatim where they are allowed. Others become notes in user contents
  and responses and are left out of the model's.
- Call ids are 1 to 128 printable ASCII characters; names 1 to 64 of `a-z A-Z 0-9 _ - . :` that begin with a
  letter or `_`. Others are changed.
- Lone surrogates become U+FFFD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.fields import (
    decoded,
    dump,
    entries,
    mapping,
    message,
    opaque,
    optional,
    parts_of,
    parts_of_each,
    required,
    wrong,
)
from trace_store.providers.media import (
    BEGINNING,
    document_fault,
    gemini_media,
    gemini_media_type,
    invalid_image,
    left_out_code,
)
from trace_store.providers.media_facts import GEMINI_IMAGES
from trace_store.providers.rendering import (
    CALL_UNSIGNED,
    IMAGE_LEFT_OUT,
    IMAGE_MOVED,
    INVALID_IMAGE,
    SYSTEM_ROLES,
    Options,
    Renderable,
    Repairs,
)
from trace_store.providers.tools import (
    add_tools,
    call_id,
    call_input,
    gemini_tool_name,
    gemini_tools,
)
from trace_store.providers.validity import (
    SKIPS_THE_CHECK,
    EarlierReasoning,
    Place,
    PlacedPart,
    PlacedResult,
    RoleTurn,
    arrange,
    before_gemini_3,
    is_signature,
)
from trace_store.providers.wire import INNER_DEPTH, parse_object
from trace_store.providers.writers import TurnWriter, begin, merged, split_front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.writers import Draft, Placed, Wire
PROVIDER = "gemini"
CANNOT_CARRY = (
    "front",
    "answers",
    "results-apart",
    "name",
    "arguments",
)
"""Losses besides `rendering.LOST_EVERYWHERE`; codes of `rendering.LOST_BY_DESIGN`."""
ID_LIMIT = 128
_ROLES = {"model": "assistant", "user": "user", "function": "tool", "system": "system"}


def render_gemini(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> Wire:
    """Return the request, without model and limits, which the caller adds."""
    turns = arrange(messages, repairs, call_id=lambda id_: call_id(id_, ID_LIMIT))
    reasoning = EarlierReasoning(messages, repairs, options, PROVIDER)
    is_old = before_gemini_3(reasoning.model)
    parts = Parts(messages, repairs, reasoning, with_media=not is_old)
    front, rest = split_front(turns)
    system = [placed for turn in front for placed in parts.system(turn)]
    # A content with calls must follow a user content.
    drafts = merged([draft for turn in rest for draft in _drafts(turn, parts)], ("model",))
    if not is_old:
        for role, content in drafts:
            if role == "model":
                _sign(content, repairs)
    request: Wire = {}
    if system:
        request["systemInstruction"] = {
            "parts": [repairs.scrubbed(part, at) for part, at in system]
        }
    request["contents"] = [
        {"role": role, "parts": [repairs.scrubbed(part, at) for part, at in content]}
        for role, content in drafts
    ]
    said = {"role": "user", "parts": [_text(BEGINNING)]}
    begin(request["contents"], drafts, said, repairs)
    add_tools(request, gemini_tools(tools, repairs), repairs)
    return request


def _drafts(turn: RoleTurn, parts: Parts) -> list[Draft]:
    if turn.role in SYSTEM_ROLES:
        return [("user", parts.late_system(turn))]
    if turn.role == "user":
        return [("user", [block for placed in turn.parts for block in parts.user(placed)])]
    said = parts.model(turn)
    responses, media = parts.responses(turn)
    return [("model", said), ("user", responses), ("user", media)]


def _sign(content: Placed, repairs: Repairs) -> None:
    """Add a signature to the first call of a content if it has none."""
    call = next(((part, at) for part, at in content if "functionCall" in part), None)
    if call is None or "thoughtSignature" in call[0]:
        return
    part, at = call
    part["thoughtSignature"] = SKIPS_THE_CHECK
    detail = f"call {part['functionCall']['id']!r} has no signature; the check is skipped"
    repairs.add(CALL_UNSIGNED, at, detail)


# Trace has its own part types for these; an opaque one would escape the pairing.
NOWHERE = frozenset({"functionCall", "functionResponse", "text", "thoughtSignature"})
MEDIA = frozenset({"fileData", "inlineData"})
MODEL_ONLY = frozenset({"codeExecutionResult", "executableCode", "toolCall", "toolResponse"})


class Parts(TurnWriter):
    """Writes parts as Gemini's; each comes with the position of its message."""

    def __init__(
        self,
        messages: Sequence[Renderable],
        repairs: Repairs,
        reasoning: EarlierReasoning,
        *,
        with_media: bool,
    ) -> None:
        super().__init__(repairs, _text)
        self._messages = messages
        self._reasoning = reasoning
        self._with_media = with_media

    def user(self, placed: PlacedPart) -> Placed:
        """Return the parts of a part of a user message."""
        part, at = placed.part, placed.at
        if isinstance(part, Text):
            return [(_text(part.text), at)]
        if isinstance(part, Image):
            return [(self._image(part, at), at)]
        if isinstance(part, Opaque):
            own = own_part(part)
            if own is not None and MODEL_ONLY.isdisjoint(own):
                return [(own, at)]
            return [(self.note(part, at), at)]
        return []

    def model(self, turn: RoleTurn) -> Placed:
        """Return the parts of an assistant's turn."""
        said: Placed = []
        signature: tuple[str, Place] | None = None
        for placed, place in zip(turn.parts, turn.places, strict=True):
            part, at = placed.part, placed.at
            if signature is not None and signature[1] != (place[0], place[1] - 1):
                said += self._unattached(*signature)
                signature = None
            if signature is not None and isinstance(part, Reasoning):
                # It signs a thought without text: thoughts have their own signatures.
                thought = {"text": "", "thought": True, "thoughtSignature": signature[0]}
                said.append((thought, at))
                signature = None
            if isinstance(part, Reasoning) and not part.text:
                signature = self._signature(part, place)
                continue
            sent = self._said(part, at)
            if signature is not None and not sent:
                self._reasoning.leave_out(at, "a signature of a part that is not sent")
            elif signature is not None:
                sent["thoughtSignature"] = signature[0]
            signature = None
            said += [(sent, at)] if sent else []
        return said if signature is None else said + self._unattached(*signature)

    def responses(self, turn: RoleTurn) -> tuple[Placed, Placed]:
        """Return the responses to a turn's calls, and the media not allowed inside them."""
        calls = [placed.part for placed in turn.parts if isinstance(placed.part, ToolCall)]
        responses: Placed = []
        media: Placed = []
        for call, placed in zip(calls, turn.results, strict=True):
            value, parts = self._output(placed, media)
            name = gemini_tool_name(call.name, placed.at, None)
            responses.append((response_part(placed.part, name, value, parts), placed.at))
        return responses, media

    def _said(self, part: Part, at: int) -> Wire:
        """Return the form of a model's part; empty if it is not sent."""
        if isinstance(part, Text):
            return _text(part.text)
        if isinstance(part, ToolCall):
            name = gemini_tool_name(part.name, at, self._repairs)
            return call_part(part, name, call_input(part, at, self._repairs))
        if isinstance(part, Reasoning):
            return self._thought(part, at)
        if isinstance(part, Image):
            shown = gemini_media(part)
            if shown is None:
                self._repairs.add(IMAGE_LEFT_OUT, at, "an image that no model accepts; left out")
            return shown or {}
        if isinstance(part, Opaque):
            own = own_part(part)
            if own is None:
                self.leave_out(part, at)
            return own or {}
        return {}

    def _thought(self, part: Reasoning, at: int) -> Wire:
        if not self._reasoning.allows(at):
            return {}
        if part.signature and not is_signature(part.signature):
            self._reasoning.leave_out(at, "reasoning whose signature is not Gemini's")
            return {}
        return thought_part(part)

    def _signature(self, part: Reasoning, place: Place) -> tuple[str, Place] | None:
        """Return the signature of the next part, if it may be sent."""
        if not self._reasoning.allows(place[0]):
            return None
        if part.signature and is_signature(part.signature):
            return part.signature, place
        what = "a signature that is not Gemini's" if part.signature else "reasoning without text"
        self._reasoning.leave_out(place[0], what)
        return None

    def _unattached(self, signature: str, place: Place) -> Placed:
        """Return the part for a signature at the end: an empty text, if it signed that."""
        at, index = place
        behind = self._messages[at].parts[index + 1 : index + 2]
        if behind and not (isinstance(behind[0], Text) and not behind[0].text):
            self._reasoning.leave_out(at, "a signature of a part that is not sent")
            return []
        return [({"text": "", "thoughtSignature": signature}, at)]

    def _output(self, placed: PlacedResult, media: Placed) -> tuple[Any, list[Wire]]:
        """Return the output of a tool, and the parts it refers to."""
        pieces: list[Any] = []
        parts: list[Wire] = []
        for part in placed.part.content:
            found = _medium(part)
            if isinstance(part, Text):
                pieces.append(part.text)
            elif found is None and isinstance(part, Image | Opaque):
                pieces.append(self.note_text(part, placed.at))
            elif found is None:
                pieces.append("[content not shown]")
            elif self._with_media:
                pieces.append(refer(found, parts))
            else:
                detail = "a response cannot have media; moved after the responses"
                self._repairs.add(IMAGE_MOVED, placed.at, detail)
                media.append((_text(f"[output of tool call {placed.part.call_id}]"), placed.at))
                media.append((found, placed.at))
                pieces.append("[shown below]")
        if not pieces:
            return "", parts
        return (pieces[0] if len(pieces) == 1 else pieces), parts

    def _image(self, image: Image, at: int) -> Wire:
        fault = invalid_image(image, GEMINI_IMAGES)
        if fault:
            self._repairs.add(INVALID_IMAGE, at, fault)
        shown = gemini_media(image)
        return shown or self.note(image, at)

    def leave_out(self, part: Opaque, at: int) -> None:
        """Record a repair for an opaque part that is not sent."""
        if fault := document_fault(part):
            self._repairs.add(INVALID_IMAGE, at, fault)
            return
        detail = f"a part of provider {part.provider!r} is not allowed here; not sent"
        self._repairs.add(left_out_code(part), at, detail)


def _medium(part: Part) -> Wire | None:
    """Return an image or another medium as a part, or None."""
    if isinstance(part, Image):
        return gemini_media(part)
    own = own_part(part) if isinstance(part, Opaque) else None
    return own if own is not None and len(own) == 1 and not MEDIA.isdisjoint(own) else None


def call_part(call: ToolCall, name: str, arguments: Wire) -> Wire:
    """Return a call with a name and arguments that Gemini accepts."""
    return {"functionCall": {"id": call.id, "name": name, "args": arguments}}


def thought_part(part: Reasoning) -> Wire:
    """Return reasoning, with its signature if it has one."""
    thought: Wire = {"text": part.text, "thought": True}
    return thought | ({"thoughtSignature": part.signature} if part.signature else {})


def response_part(result: ToolResult, name: str, value: Any, parts: list[Wire]) -> Wire:
    """Return the response to a call.

    Args:
        result: the result.
        name: tool name that Gemini accepts.
        value: output of the tool: a text, or a list of texts and references.
        parts: the media that `value` refers to.
    """
    response: Wire = {"id": result.call_id, "name": name}
    response["response"] = {"error" if result.is_error else "output": value}
    return {"functionResponse": response | ({"parts": parts} if parts else {})}


def refer(medium: Wire, parts: list[Wire]) -> Wire:
    """Add a medium to the parts of a response, and return the reference to it."""
    label = f"part-{len(parts) + 1}"
    ((kind, fields),) = medium.items()
    parts.append({kind: {**fields, "displayName": label}})
    return {"$ref": label}


def own_part(part: Opaque) -> Wire | None:
    """Return a Gemini-specific opaque part that may be sent separately, else None."""
    if part.provider != PROVIDER or document_fault(part):
        return None
    form = parse_object(part.data, INNER_DEPTH)
    if form is None or "type" in form or not NOWHERE.isdisjoint(form):
        return None
    return form if any(isinstance(value, dict) for value in form.values()) else None


def _text(text: str) -> Wire:
    return {"text": text}


class GeminiCalls:
    """Unanswered calls of one conversation, and ids for calls without one.

    Use one for all contents of a conversation, whether read one at a time or in lists.
    """

    __slots__ = ("_given", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, bool]] = []
        self._given = 0

    @classmethod
    def load(cls, saved: Any) -> GeminiCalls:
        """Return the saved state.

        Raises:
            TypeError, ValueError: it is not a result of `save`.
        """
        calls = cls()
        if saved:
            calls._given = int(saved[0])
            calls._waiting = [(id_, name, made) for id_, name, made in saved[1:]]
        return calls

    def save(self) -> list[Any]:
        """Return the state as JSON values; an empty list if unchanged."""
        if not self._given and not self._waiting:
            return []
        return [self._given, *map(list, self._waiting)]

    def call(self, name: str, id_: str) -> str:
        """Return the id of a call: its own, or the next of call_1, call_2, and so on."""
        made = not id_
        if made:
            self._given += 1
            id_ = f"call_{self._given}"
        self._waiting.append((id_, name, made))
        return id_

    def response(self, name: str, id_: str) -> str:
        """Return the id of a response's call."""
        found = next((each for each in self._waiting if id_ and each[0] == id_), None)
        if found is None:
            # Some recorders give an id only to one of the two.
            found = next(
                (each for each in self._waiting if each[1] == name and (not id_ or each[2])), None
            )
        if found is not None:
            self._waiting.remove(found)
            return found[0]
        if not id_:
            self._given += 1
            id_ = f"call_{self._given}"
        return id_


def message_from_gemini(
    content: Mapping[str, Any],
    where: str,
    *,
    model: str = "",
    calls: GeminiCalls | None = None,
) -> Message:
    """Return the message of one content.

    Args:
        content: the content.
        where: its name in errors.
        model: the model of a content with role `model`.
        calls: unanswered calls of the contents before it.

    Raises:
        InvalidMessageError: the content is damaged; `.where` names it.
    """
    calls = calls or GeminiCalls()
    form = mapping(content, where, "a content")
    role = optional(form, "role", where) or "user"
    if role not in _ROLES:
        raise wrong(where, f"unknown role {role[:40]!r}: one of {', '.join(sorted(_ROLES))}")

    def read(forms: Any, where: str) -> list[Part]:
        forms = entries(forms, where, "parts")
        place = f"{where}.parts"
        return parts_of_each(lambda part, at: gemini_parts(part, at, calls), forms, place)

    parts = parts_of(read, form.get("parts"), where)
    role = _ROLES[role]
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    fields = {"model": model} if role == "assistant" else {}
    return message(role, parts, where, **fields)


def gemini_parts(value: object, where: str, calls: GeminiCalls) -> Iterator[Part]:
    """Yield one part of a content, after its signature if it has one."""
    if isinstance(value, str):
        yield Text(value)
        return
    form = _camel(mapping(value, where, "a part"))
    signature = optional(form, "thoughtSignature", where)
    form.pop("thoughtSignature", None)
    if signature == SKIPS_THE_CHECK:
        signature = ""
    if form.get("thought") is True and isinstance(form.get("text"), str):
        yield Reasoning(form["text"], signature or None)
        return
    if signature:
        yield Reasoning("", signature)
    yield _part(form, where, calls)


def _part(form: dict[str, Any], where: str, calls: GeminiCalls) -> Part:
    if "text" in form:
        return Text(required(form, "text", where))
    if "functionCall" in form:
        call = mapping(form["functionCall"], where, "a function call")
        name = required(call, "name", where)
        id_ = calls.call(name, optional(call, "id", where))
        return ToolCall(id_, name, dump(call.get("args", {})))
    if "functionResponse" in form:
        return _result(
            mapping(form["functionResponse"], where, "a function response"), where, calls
        )
    return media_part(form, where)


def media_part(form: dict[str, Any], where: str) -> Image | Opaque:
    """Return an image if the part is one, else the part unchanged."""
    inline, file = form.get("inlineData"), form.get("fileData")
    if isinstance(inline, dict) and str(inline.get("mimeType")).startswith("image/"):
        data = decoded(required(inline, "data", where), where)
        return Image(inline["mimeType"], data)
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        # Only the URL of an image is kept, so its extension must show the media type.
        media_type = gemini_media_type(file["fileUri"])
        if (media_type or "").startswith("image/") and file.get("mimeType") in (None, media_type):
            return Image(url=file["fileUri"])
    return opaque(PROVIDER, form)


def _result(form: Mapping[str, Any], where: str, calls: GeminiCalls) -> ToolResult:
    name = required(form, "name", where)
    id_ = calls.response(name, optional(form, "id", where))
    response = form.get("response")
    failed = False
    if isinstance(response, dict) and len(response) == 1:
        failed = "error" in response
        response = response.get("error", response.get("output", response))
    named: dict[str, Part] = {}
    for index, each in enumerate(entries(form.get("parts"), where, "parts")):
        part = _camel(mapping(each, where, "a part"))
        label = next((v["displayName"] for v in part.values() if _has(v, "displayName")), "")
        named[label or f"\0{index}"] = media_part(_unlabelled(part), where)
    content = _output(response, named)
    return ToolResult(id_, [*content, *named.values()], failed)


def _output(value: object, named: dict[str, Part]) -> list[Part]:
    """Return the output of a tool; remove the parts that it refers to from `named`."""
    if value is None:
        return []
    if isinstance(value, str):
        return [Text(value)]
    pieces = value if isinstance(value, list) else [value]
    refers = any(isinstance(piece, dict) for piece in pieces)
    if refers or len(pieces) > 1:
        parts = [_piece(piece, named) for piece in pieces]
        if all(part is not None for part in parts):
            for piece in pieces:
                named.pop(piece["$ref"], None) if isinstance(piece, dict) else None
            return [part for part in parts if part is not None]
    return [Text(dump(value))]


def _piece(piece: object, named: Mapping[str, Part]) -> Part | None:
    if isinstance(piece, str):
        return Text(piece)
    if isinstance(piece, dict) and list(piece) == ["$ref"] and isinstance(piece["$ref"], str):
        return named.get(piece["$ref"])
    return None


def _unlabelled(part: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {k: v for k, v in value.items() if k != "displayName"}
        if isinstance(value, dict)
        else value
        for key, value in part.items()
    }


def _has(value: object, key: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(key), str)


def _camel(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part with camelCase names and without nulls; tool data is not changed."""
    return {
        _camel_name(name): {_camel_name(n): v for n, v in value.items() if v is not None}
        if isinstance(value, dict)
        else value
        for name, value in part.items()
        if value is not None
    }


def _camel_name(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
