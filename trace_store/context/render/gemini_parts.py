"""Parts as Gemini's parts.

Rule: a part is right by itself here; which content it stands in is `gemini.py`'s business.
"""

from __future__ import annotations

from trace_store.context.media_facts import GEMINI_IMAGES
from trace_store.context.render.media import (
    gemini_media,
    image_note,
    invalid_image,
    left_out_code,
    opaque_note,
)
from trace_store.context.render.pairing import Answer, Piece, Place, Turn
from trace_store.context.render.signatures import EarlierReasoning, is_signature
from trace_store.context.render.tools import gemini_tool_name
from trace_store.context.render.values import (
    ARGUMENTS_WRAPPED,
    IMAGE_LEFT_OUT,
    IMAGE_MOVED,
    INVALID_IMAGE,
    SYSTEM_AS_USER,
    Renderable,
    Repairs,
)
from trace_store.context.render.wire import parse_object
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Wire: TypeAlias = dict[str, Any]

    Placed: TypeAlias = list[tuple[Wire, int]]

PROVIDER = "gemini"
# Parts of their own in Trace; an opaque one would escape the pairing.
NOWHERE = frozenset({"functionCall", "functionResponse", "text", "thoughtSignature"})
MEDIA = frozenset({"fileData", "inlineData"})
MODEL_ONLY = frozenset({"codeExecutionResult", "executableCode", "toolCall", "toolResponse"})


class Parts:
    """Writes pieces as parts; each comes with the position of its message."""

    def __init__(
        self,
        messages: Sequence[Renderable],
        repairs: Repairs,
        reasoning: EarlierReasoning,
        *,
        with_media: bool,
    ) -> None:
        self._messages = messages
        self._repairs = repairs
        self._reasoning = reasoning
        self._with_media = with_media

    def system(self, turn: Turn) -> Placed:
        """Return the parts of a system message at the front."""
        return [
            (_text(text), piece.at)
            for piece in turn.pieces
            for text in self._system_text(piece.part, piece.at)
        ]

    def late_system(self, turn: Turn) -> Placed:
        """Return the parts of a system message that follows other messages."""
        texts = [text for piece in turn.pieces for text in self._system_text(piece.part, piece.at)]
        if texts:
            detail = f"a {turn.role} message follows other messages; sent as user text"
            self._repairs.add(SYSTEM_AS_USER, turn.at, detail)
        return [(_text(f"<system>\n{text}\n</system>"), turn.at) for text in texts]

    def user(self, piece: Piece) -> Placed:
        """Return the parts of a part of a user message."""
        part, at = piece.part, piece.at
        if isinstance(part, Text):
            return [(_text(part.text), at)]
        if isinstance(part, Image):
            return [(self._image(part, at), at)]
        if isinstance(part, Opaque):
            own = _own_part(part)
            if own is not None and MODEL_ONLY.isdisjoint(own):
                return [(own, at)]
            self._leave_out(part, at)
            return [(_text(opaque_note(part)), at)]
        return []

    def model(self, turn: Turn) -> Placed:
        """Return the parts of an assistant's turn."""
        said: Placed = []
        signature: tuple[str, Place] | None = None
        for piece, place in zip(turn.pieces, turn.places, strict=True):
            part, at = piece.part, piece.at
            if signature is not None and signature[1] != (place[0], place[1] - 1):
                said += self._unattached(*signature)
                signature = None
            if signature is not None and isinstance(part, Reasoning):
                # It signs a thought that has no text, for thoughts carry their own.
                thought = {"text": "", "thought": True, "thoughtSignature": signature[0]}
                said.append((thought, at))
                signature = None
            if isinstance(part, Reasoning) and not part.text:
                signature = self._signature(part, place)
                continue
            sent = self._said(part, at)
            if signature is not None and not sent:
                self._reasoning.leave_out(at, "a signature of what is not sent")
            elif signature is not None:
                sent["thoughtSignature"] = signature[0]
            signature = None
            said += [(sent, at)] if sent else []
        return said if signature is None else said + self._unattached(*signature)

    def responses(self, turn: Turn) -> tuple[Placed, Placed]:
        """Return the responses to a turn's calls, and the media that cannot stand inside them."""
        calls = [piece.part for piece in turn.pieces if isinstance(piece.part, ToolCall)]
        responses: Placed = []
        media: Placed = []
        for call, answer in zip(calls, turn.answers, strict=True):
            value, parts = self._output(answer, media)
            response: Wire = {
                "id": call.id,
                "name": gemini_tool_name(call.name, answer.at, None),
                "response": {"error" if answer.part.is_error else "output": value},
            }
            if parts:
                response["parts"] = parts
            responses.append(({"functionResponse": response}, answer.at))
        return responses, media

    def _said(self, part: Part, at: int) -> Wire:
        """Return the part that the model said, or nothing when it is not sent."""
        if isinstance(part, Text):
            return _text(part.text)
        if isinstance(part, ToolCall):
            return {"functionCall": self._call(part, at)}
        if isinstance(part, Reasoning):
            return self._thought(part, at)
        if isinstance(part, Image):
            shown = gemini_media(part)
            if shown is None:
                self._repairs.add(IMAGE_LEFT_OUT, at, "an image that no model takes; left out")
            return shown or {}
        if isinstance(part, Opaque):
            own = _own_part(part)
            if own is None:
                self._leave_out(part, at)
            return own or {}
        return {}

    def _thought(self, part: Reasoning, at: int) -> Wire:
        if not self._reasoning.allows(at):
            return {}
        if part.signature and not is_signature(part.signature):
            self._reasoning.leave_out(at, "reasoning whose signature is not Gemini's")
            return {}
        thought: Wire = {"text": part.text, "thought": True}
        return thought | ({"thoughtSignature": part.signature} if part.signature else {})

    def _signature(self, part: Reasoning, place: Place) -> tuple[str, Place] | None:
        """Return the signature of the part behind this one, when it may be sent."""
        if not self._reasoning.allows(place[0]):
            return None
        if part.signature and is_signature(part.signature):
            return part.signature, place
        what = "a signature that is not Gemini's" if part.signature else "reasoning without text"
        self._reasoning.leave_out(place[0], what)
        return None

    def _unattached(self, signature: str, place: Place) -> Placed:
        """Return the part of a signature that no part follows: an empty text, if that is what it signed."""
        at, index = place
        behind = self._messages[at].parts[index + 1 : index + 2]
        if behind and not (isinstance(behind[0], Text) and not behind[0].text):
            self._reasoning.leave_out(at, "a signature of what is not sent")
            return []
        return [({"text": "", "thoughtSignature": signature}, at)]

    def _call(self, call: ToolCall, at: int) -> Wire:
        if call.format == "text":
            arguments: Wire | None = {"input": call.arguments}
        else:
            arguments = parse_object(call.arguments) if call.arguments.strip() else {}
        if arguments is None:
            detail = f"the arguments of call {call.id!r} are no JSON object; sent as text"
            self._repairs.add(ARGUMENTS_WRAPPED, at, detail)
            arguments = {"input": call.arguments}
        return {
            "id": call.id,
            "name": gemini_tool_name(call.name, at, self._repairs),
            "args": arguments,
        }

    def _output(self, answer: Answer, media: Placed) -> tuple[Any, list[Wire]]:
        """Return what a tool gave out, and the parts it refers to."""
        pieces: list[Any] = []
        parts: list[Wire] = []
        for part in answer.part.content:
            found = self._medium(part, answer.at)
            if isinstance(part, Text):
                pieces.append(part.text)
            elif found is None:
                note = image_note(part) if isinstance(part, Image) else "[content not shown]"
                pieces.append(opaque_note(part) if isinstance(part, Opaque) else note)
            elif self._with_media:
                label = f"part-{len(parts) + 1}"
                ((kind, fields),) = found.items()
                parts.append({kind: {**fields, "displayName": label}})
                pieces.append({"$ref": label})
            else:
                detail = "a response cannot hold media; moved behind the responses"
                self._repairs.add(IMAGE_MOVED, answer.at, detail)
                media.append((_text(f"[output of tool call {answer.part.call_id}]"), answer.at))
                media.append((found, answer.at))
                pieces.append("[shown below]")
        if not pieces:
            return "", parts
        return (pieces[0] if len(pieces) == 1 else pieces), parts

    def _medium(self, part: Part, at: int) -> Wire | None:
        """Return an image or another medium as a part; None, listed, when it cannot be one."""
        if isinstance(part, Image):
            shown = gemini_media(part)
            if shown is None:
                self._repairs.add(IMAGE_LEFT_OUT, at, "an image became a note")
            return shown
        if isinstance(part, Opaque):
            own = _own_part(part)
            if own is not None and len(own) == 1 and not MEDIA.isdisjoint(own):
                return own
            self._leave_out(part, at)
        return None

    def _image(self, image: Image, at: int) -> Wire:
        fault = invalid_image(image, GEMINI_IMAGES)
        if fault:
            self._repairs.add(INVALID_IMAGE, at, fault)
        shown = gemini_media(image)
        if shown is None:
            self._repairs.add(IMAGE_LEFT_OUT, at, "an image became a note")
        return shown or _text(image_note(image))

    def _system_text(self, part: Part, at: int) -> list[str]:
        if isinstance(part, Text):
            return [part.text]
        if isinstance(part, Image):
            self._repairs.add(IMAGE_LEFT_OUT, at, "an image became a note")
            return [image_note(part)]
        if isinstance(part, Opaque):
            self._leave_out(part, at)
            return [opaque_note(part)]
        return []

    def _leave_out(self, part: Opaque, at: int) -> None:
        detail = f"a part of provider {part.provider!r} cannot stand here; not sent"
        self._repairs.add(left_out_code(part), at, detail)


def _own_part(part: Opaque) -> Wire | None:
    """Return an opaque part of Gemini's that may be sent by itself, else None."""
    if part.provider != PROVIDER:
        return None
    form = parse_object(part.data)
    if form is None or "type" in form or not NOWHERE.isdisjoint(form):
        return None
    return form if any(isinstance(value, dict) for value in form.values()) else None


def _text(text: str) -> Wire:
    return {"text": text}
