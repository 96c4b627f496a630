"""Renderer of OpenAI chat completions: `{"messages": [...], "tools": [...]}`.

Invariant: each turn of `validity.arrange` becomes one message, followed by one tool message for each of its calls.

- Text is a string if a message has one text part, else a list of text parts. Empty text is left out.
- `system` and `developer` messages keep their role and position.
- An assistant message with only calls has `content: null`. Reasoning is never sent; a message with nothing else
  disappears.
- Arguments are the model's own text, even if it is not JSON. A call with free-text arguments is a
  `custom` call.
- A tool message has no error flag and no images. The content of a failed call begins with the line
  `[tool error]`. Its images are moved to a user message after the tool messages, and a note marks their place.
- Images are `data:` URLs or the URL itself; images other than GIF, JPEG, PNG and WebP become notes.
- Opaque parts of provider "openai" are sent verbatim where their type is allowed; others become notes in user
  and tool messages and are left out of assistant messages.
- Ids are 1 to 40 printable ASCII characters; names 1 to 64 of `a-z A-Z 0-9 _ -`. Others are changed.
- Lone surrogates become U+FFFD.
"""

from __future__ import annotations

import re

from trace_store.objects.parts import Image, Opaque, Part, Text, ToolCall
from trace_store.providers.media import (
    ERROR_LINE,
    base64_image,
    image_note,
    invalid_image,
    left_out_code,
    opaque_block,
    opaque_note,
    web_url,
)
from trace_store.providers.media_facts import OPENAI_IMAGES
from trace_store.providers.openai_chat import PROVIDER
from trace_store.providers.tools import OPENAI_NAME_LIMIT, openai_tools, tool_name
from trace_store.providers.validity import Answer, Piece, Turn, arrange
from trace_store.providers.values import (
    IMAGE_LEFT_OUT,
    IMAGE_MOVED,
    INVALID_IMAGE,
    NAME_CHANGED,
    NO_MESSAGES,
    OPAQUE_LEFT_OUT,
    SURROGATE_REPLACED,
    Options,
    Renderable,
    Repairs,
)
from trace_store.providers.wire import marked, scrub, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ID_LIMIT = 40
USER_BLOCKS = frozenset({"file", "image_url", "input_audio"})
ASSISTANT_BLOCKS = frozenset({"refusal"})
_ID = re.compile(r"[!-~]{1,40}")


def render_openai_chat(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> dict[str, Any]:
    """Return the request; reasoning is never sent, whatever `options` say."""
    writer = _Writer(messages, repairs)
    for turn in arrange(messages, repairs, call_id=_call_id):
        writer.write(turn)
    if not writer.messages:
        repairs.add(NO_MESSAGES, None, "nothing to send: the context has no content")
    request: dict[str, Any] = {"messages": writer.messages}
    schemas, changed = scrub(openai_tools(tools, repairs))
    if changed:
        repairs.add(SURROGATE_REPLACED, None, "lone surrogates in tool schemas became U+FFFD")
    if schemas:
        request["tools"] = schemas
    return request


def _call_id(id_: str) -> str:
    return id_ if _ID.fullmatch(id_) else marked(id_, ID_LIMIT, "call")


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return a plain string if the content is one text."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        text: str = parts[0]["text"]
        return text
    return parts


class _Writer:
    """Writes turns as messages."""

    def __init__(self, messages: Sequence[Renderable], repairs: Repairs) -> None:
        self._sources = messages
        self._repairs = repairs
        self.messages: list[dict[str, Any]] = []

    def write(self, turn: Turn) -> None:
        if turn.role == "assistant":
            self._write_assistant(turn)
            return
        images = turn.role == "user"
        parts = [
            part for piece in turn.pieces for part in self._content_parts(piece, images=images)
        ]
        if parts:
            self._add(
                {"role": turn.role, "content": _content(parts), **self._name_field(turn)}, turn.at
            )

    def _write_assistant(self, turn: Turn) -> None:
        parts: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for piece in turn.pieces:
            part = piece.part
            if isinstance(part, Text):
                parts.append(_text_part(part.text))
            elif isinstance(part, ToolCall):
                calls.append(self._call(part, piece.at))
            elif isinstance(part, Image):
                detail = "an assistant message cannot have an image; left out"
                self._repairs.add(IMAGE_LEFT_OUT, piece.at, detail)
            elif isinstance(part, Opaque):
                block = self._allowed_block(part, ASSISTANT_BLOCKS)
                if block is not None:
                    parts.append(block)
                else:
                    self._report_left_out(part, piece.at)
        if not parts and not calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": _content(parts) or None}
        message |= self._name_field(turn)
        if calls:
            message["tool_calls"] = calls
        self._add(message, turn.at)
        self._write_results(turn.answers)

    def _write_results(self, answers: list[Answer]) -> None:
        moved_images: list[tuple[str, Piece]] = []
        for answer in answers:
            result = answer.part
            texts: list[dict[str, Any]] = []
            for part in result.content:
                if isinstance(part, Image) and _image_part(part) is not None:
                    moved_images.append((result.call_id, Piece(part, answer.at)))
                    texts.append(_text_part("[image shown below]"))
                    detail = "a tool message cannot have an image; moved after the tool messages"
                    self._repairs.add(IMAGE_MOVED, answer.at, detail)
                else:
                    texts += self._content_parts(Piece(part, answer.at), images=False)
            if result.is_error:
                texts = _marked_as_error(texts)
            content = _content(texts) or ""
            message = {"role": "tool", "tool_call_id": result.call_id, "content": content}
            self._add(message, answer.at)
        if moved_images:
            parts: list[dict[str, Any]] = []
            for id_, piece in moved_images:
                parts.append(_text_part(f"[image of tool call {id_}]"))
                parts += self._content_parts(piece, images=True)
            self._add({"role": "user", "content": parts}, moved_images[0][1].at)

    def _content_parts(self, piece: Piece, *, images: bool) -> list[dict[str, Any]]:
        """Return the content parts of a piece; notes for parts not allowed here."""
        part = piece.part
        if isinstance(part, Text):
            return [_text_part(part.text)] if part.text else []
        if isinstance(part, Image):
            fault = invalid_image(part, OPENAI_IMAGES)
            if fault:
                self._repairs.add(INVALID_IMAGE, piece.at, fault)
            shown = _image_part(part) if images else None
            if shown is None:
                self._repairs.add(IMAGE_LEFT_OUT, piece.at, "an image became a note")
            return [shown or _text_part(image_note(part))]
        if isinstance(part, Opaque):
            block = self._allowed_block(part, USER_BLOCKS if images else frozenset())
            if block is None:
                self._report_left_out(part, piece.at)
            return [block or _text_part(opaque_note(part))]
        return []

    def _allowed_block(self, part: Opaque, types: frozenset[str]) -> dict[str, Any] | None:
        """Return a part's block if it is OpenAI's and of one of the types, else None."""
        block = opaque_block(part) if part.provider == PROVIDER else None
        return block if block is not None and block["type"] in types else None

    def _report_left_out(self, part: Part, at: int) -> None:
        code = left_out_code(part) if isinstance(part, Opaque) else OPAQUE_LEFT_OUT
        self._repairs.add(
            code,
            at,
            f"data in the format of {_provider(part)}, which chat completions do not accept; left out",
        )

    def _call(self, call: ToolCall, at: int) -> dict[str, Any]:
        name = tool_name(call.name, OPENAI_NAME_LIMIT, at, self._repairs)
        if call.format == "text":
            return {
                "id": call.id,
                "type": "custom",
                "custom": {"name": name, "input": call.arguments},
            }
        return {
            "id": call.id,
            "type": "function",
            "function": {"name": name, "arguments": call.arguments},
        }

    def _name_field(self, turn: Turn) -> dict[str, str]:
        name = self._sources[turn.at].name
        if not name or self._sources[turn.at].role == "tool":
            return {}
        sent = word(name, OPENAI_NAME_LIMIT, "name")
        if sent != name:
            self._repairs.add(NAME_CHANGED, turn.at, f"speaker {name!r} is renamed to {sent!r}")
        return {"name": sent}

    def _add(self, message: dict[str, Any], at: int) -> None:
        clean, changed = scrub(message)
        if changed:
            self._repairs.add(SURROGATE_REPLACED, at, "lone surrogates became U+FFFD")
        self.messages.append(clean)


def _image_part(image: Image) -> dict[str, Any] | None:
    encoded = base64_image(image, OPENAI_IMAGES)
    url = f"data:{encoded[0]};base64,{encoded[1]}" if encoded else web_url(image)
    return None if url is None else {"type": "image_url", "image_url": {"url": url}}


def _marked_as_error(texts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not texts:
        return [_text_part(ERROR_LINE)]
    return [_text_part(f"{ERROR_LINE}\n{texts[0]['text']}"), *texts[1:]]


def _provider(part: Part) -> str:
    return part.provider if isinstance(part, Opaque) else part.type
