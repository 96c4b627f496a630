"""OpenAI's chat completions, and compatible APIs.

Reading: calls and image links.

Invariant: a block without a part type in Trace is kept verbatim, as an opaque part of provider "openai". The message
around it is read by `providers.chat`, because many programs mix blocks of OpenAI and Anthropic.

Requests: `{"messages": [...], "tools": [...]}`.

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

from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.objects.parts import Image, Opaque, Part, Text, ToolCall
from trace_store.providers.fields import dump, parts_of_each, required, wrong
from trace_store.providers.media import (
    ERROR_LINE,
    document_fault,
    image_url,
    left_out_code,
    opaque_block,
)
from trace_store.providers.rendering import (
    IMAGE_LEFT_OUT,
    IMAGE_MOVED,
    INVALID_IMAGE,
    NAME_CHANGED,
    NO_MESSAGES,
    Options,
    Renderable,
    Repairs,
)
from trace_store.providers.tools import (
    OPENAI_NAME_LIMIT,
    add_tools,
    call_id,
    openai_tools,
    tool_name,
)
from trace_store.providers.validity import PlacedResult, RoleTurn, arrange
from trace_store.providers.wire import word
from trace_store.providers.writers import InputWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
PROVIDER = "openai"
CANNOT_CARRY = (
    "reasoning",
    "error-flag",
    "split-calls",
    "calls-last",
    "results-apart",
)
"""Losses besides `rendering.LOST_EVERYWHERE`; codes of `rendering.LOST_BY_DESIGN`."""
ID_LIMIT = 40
USER_BLOCKS = frozenset({"file", "image_url", "input_audio"})
ASSISTANT_BLOCKS = frozenset({"refusal"})
KEPT_BLOCKS = frozenset(
    {"file", "image_url", "input_audio", "input_file", "input_image", "refusal"}
)
"""Block types of chat completions and Responses kept verbatim; images only without a link."""


def render_openai_chat(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> dict[str, Any]:
    """Return the request; reasoning is never sent, whatever `options` say."""
    writer = _Writer(messages, repairs)
    for turn in arrange(messages, repairs, call_id=lambda id_: call_id(id_, ID_LIMIT)):
        writer.write(turn)
    if not writer.messages:
        repairs.add(NO_MESSAGES, None, "nothing to send: the context has no content")
    request: dict[str, Any] = {"messages": writer.messages}
    add_tools(request, openai_tools(tools, repairs), repairs)
    return request


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return a plain string if the content is one text."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        text: str = parts[0]["text"]
        return text
    return parts


class _Writer(InputWriter):
    """Writes turns as messages."""

    def __init__(self, messages: Sequence[Renderable], repairs: Repairs) -> None:
        super().__init__(repairs, _text_part)
        self._sources = messages
        self.messages: list[dict[str, Any]] = []

    def write(self, turn: RoleTurn) -> None:
        if turn.role == "assistant":
            self._write_assistant(turn)
            return
        blocks = turn.role == "user"
        parts = [
            part
            for placed in turn.parts
            for part in self.shown(placed.part, placed.at, blocks=blocks)
        ]
        if parts:
            self._add(
                {"role": turn.role, "content": _content(parts), **self._name_field(turn)}, turn.at
            )

    def _write_assistant(self, turn: RoleTurn) -> None:
        parts: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for placed in turn.parts:
            part = placed.part
            if isinstance(part, Text):
                parts.append(_text_part(part.text))
            elif isinstance(part, ToolCall):
                calls.append(self._call(part, placed.at))
            elif isinstance(part, Image):
                detail = "an assistant message cannot have an image; left out"
                self._repairs.add(IMAGE_LEFT_OUT, placed.at, detail)
            elif isinstance(part, Opaque):
                block = _own_block(part, ASSISTANT_BLOCKS)
                if block is not None:
                    parts.append(block)
                else:
                    self.leave_out(part, placed.at)
        if not parts and not calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": _content(parts) or None}
        message |= self._name_field(turn)
        if calls:
            message["tool_calls"] = calls
        self._add(message, turn.at)
        self._write_results(turn.results)

    def _write_results(self, results: list[PlacedResult]) -> None:
        moved_images: list[tuple[PlacedResult, Image]] = []
        for placed in results:
            result = placed.part
            texts: list[dict[str, Any]] = []
            for part in result.content:
                if isinstance(part, Image) and self.image(part) is not None:
                    moved_images.append((placed, part))
                    texts.append(_text_part("[image shown below]"))
                    detail = "a tool message cannot have an image; moved after the tool messages"
                    self._repairs.add(IMAGE_MOVED, placed.at, detail)
                else:
                    texts += self.shown(part, placed.at, blocks=False)
            if result.is_error:
                texts = _marked_as_error(texts)
            content = _content(texts) or ""
            message = {"role": "tool", "tool_call_id": result.call_id, "content": content}
            self._add(message, placed.at)
        if moved_images:
            parts: list[dict[str, Any]] = []
            for placed, image in moved_images:
                parts.append(_text_part(f"[image of tool call {placed.part.call_id}]"))
                parts += self.shown(image, placed.at, blocks=True)
            self._add({"role": "user", "content": parts}, moved_images[0][0].at)

    def image(self, image: Image) -> dict[str, Any] | None:
        url = image_url(image)
        return None if url is None else {"type": "image_url", "image_url": {"url": url}}

    def block(self, part: Opaque) -> dict[str, Any] | None:
        return _own_block(part, USER_BLOCKS)

    def leave_out(self, part: Opaque, at: int) -> None:
        if fault := document_fault(part):
            self._repairs.add(INVALID_IMAGE, at, fault)
            return
        detail = f"data in the format of {part.provider}, which chat completions do not accept"
        self._repairs.add(left_out_code(part), at, f"{detail}; left out")

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

    def _name_field(self, turn: RoleTurn) -> dict[str, str]:
        name = self._sources[turn.at].name
        if not name or self._sources[turn.at].role == "tool":
            return {}
        sent = word(name, OPENAI_NAME_LIMIT, "name")
        if sent != name:
            self._repairs.add(NAME_CHANGED, turn.at, f"speaker {name!r} is renamed to {sent!r}")
        return {"name": sent}

    def _add(self, message: dict[str, Any], at: int) -> None:
        self.messages.append(self._repairs.scrubbed(message, at))


def _own_block(part: Opaque, types: frozenset[str]) -> dict[str, Any] | None:
    block = opaque_block(part) if part.provider == PROVIDER else None
    if block is None or block["type"] not in types or document_fault(part):
        return None
    return block


def _marked_as_error(texts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not texts:
        return [_text_part(ERROR_LINE)]
    return [_text_part(f"{ERROR_LINE}\n{texts[0]['text']}"), *texts[1:]]


def tool_calls(calls: object, where: str) -> list[Part]:
    """Return the calls in "tool_calls", also with the function's fields in the call."""
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise wrong(where, "tool_calls must be a list")
    return parts_of_each(_tool_call, calls, f"{where}: tool_calls")


def _tool_call(call: Any, where: str) -> Iterator[ToolCall]:
    if not isinstance(call, dict):
        raise wrong(where, "a call must be an object")
    custom = call.get("custom")
    function = custom if isinstance(custom, dict) else call.get("function")
    if function is None and "name" in call:
        function = call
    if not isinstance(function, dict):
        raise wrong(where, "a call needs a function")
    names = ("input",) if function is custom else ("arguments", "args", "input")
    arguments = next((function[name] for name in names if name in function), "")
    yield ToolCall(
        required(call, "id", where),
        required(function, "name", where),
        arguments if isinstance(arguments, str) else dump(arguments),
        "text" if function is custom else "json",
    )


def function_call(call: object, where: str) -> Iterator[ToolCall]:
    """Yield the call of OpenAI's older "function_call", with its name as the id."""
    if isinstance(call, dict):
        name = required(call, "name", f"{where}: function_call")
        arguments = call.get("arguments", "")
        yield ToolCall(name, name, arguments if isinstance(arguments, str) else dump(arguments))


def image_link(block: Mapping[str, Any]) -> str | None:
    """Return the URL of a block's image, which may be a `data:` URL; None without one."""
    link = block.get("image_url")
    if isinstance(link, dict):
        link = link.get("url")
    return link if isinstance(link, str) else None
