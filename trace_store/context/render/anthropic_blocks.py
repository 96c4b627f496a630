"""Parts as Anthropic's content blocks.

Rule: a block is right by itself here; which message it stands in is `anthropic.py`'s business.
"""

from __future__ import annotations

from trace_store.context.render.media import (
    anthropic_images,
    base64_image,
    block_fault,
    image_note,
    invalid_image,
    left_out_code,
    opaque_block,
    opaque_note,
    web_url,
)
from trace_store.context.render.pairing import Answer, Piece, Turn
from trace_store.context.render.signatures import model_family
from trace_store.context.render.tools import ANTHROPIC_NAME_LIMIT, tool_name
from trace_store.context.render.values import (
    ARGUMENTS_WRAPPED,
    BLANK_TEXT,
    ERROR_WITHOUT_TEXT,
    IMAGE_LEFT_OUT,
    IMAGE_MOVED,
    INVALID_IMAGE,
    OPAQUE_LEFT_OUT,
    REASONING_LEFT_OUT,
    SYSTEM_AS_USER,
    Renderable,
    Repairs,
)
from trace_store.context.render.wire import parse_object
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Wire: TypeAlias = dict[str, Any]

    Placed: TypeAlias = list[tuple[Wire, int]]

PROVIDER = "anthropic"
NO_OUTPUT = "[no output]"
# Which blocks may stand where. A block of a type that is not known here goes where it was recorded.
THINKING = frozenset({"redacted_thinking", "thinking"})
RESULT_BLOCKS = frozenset(
    {"browser_state", "document", "image", "search_result", "text", "tool_reference"}
)
USER_ONLY = frozenset({"container_upload", "document", "image", "search_result"})
SERVER_CALLS = frozenset({"mcp_tool_use", "server_tool_use"})
ASSISTANT_ONLY = SERVER_CALLS | THINKING | {"compaction"}
# Calls and results are parts of their own; an opaque one would escape the pairing.
NOWHERE = frozenset({"tool_result", "tool_use"})
IN_RESULTS_ONLY = frozenset({"browser_state", "tool_reference"})


class Blocks:
    """Writes pieces as blocks; each comes with the position of its message."""

    def __init__(
        self, messages: Sequence[Renderable], repairs: Repairs, model: str, reasoning: bool
    ) -> None:
        self._messages = messages
        self._repairs = repairs
        self._model = model
        self._reasoning = reasoning
        self._images = anthropic_images(messages)

    def system(self, turn: Turn) -> Placed:
        """Return the blocks of a system message at the front."""
        return [
            (_text(text), piece.at) for piece in turn.pieces for text in self._system_text(piece)
        ]

    def late_system(self, turn: Turn) -> Placed:
        """Return the blocks of a system message that follows other messages."""
        texts = [text for piece in turn.pieces for text in self._system_text(piece)]
        if texts:
            detail = f"a {turn.role} message follows other messages; sent as user text"
            self._repairs.add(SYSTEM_AS_USER, turn.at, detail)
        return [(_text(f"<system>\n{text}\n</system>"), turn.at) for text in texts]

    def user(self, piece: Piece) -> Placed:
        """Return the blocks of a part of a user message."""
        part = piece.part
        if isinstance(part, Opaque):
            block = self._own_block(part)
            unfit = block is None or is_server_result(block["type"])
            if block is None or unfit or block["type"] in ASSISTANT_ONLY | IN_RESULTS_ONLY:
                self._leave_out(part, piece.at)
                return [(_text(opaque_note(part)), piece.at)]
            return [(block, piece.at)] if self._sound(block, piece.at) else []
        return self._plain(part, piece.at)

    def assistant(self, piece: Piece) -> Placed:
        """Return the blocks of a part of an assistant message."""
        part, at = piece.part, piece.at
        if isinstance(part, ToolCall):
            return [(self._call(part, at), at)]
        if isinstance(part, Reasoning):
            return self._thinking(part, at)
        if isinstance(part, Image):
            detail = "an assistant message cannot hold an image; left out"
            self._repairs.add(IMAGE_LEFT_OUT, at, detail)
            return []
        if isinstance(part, Opaque):
            block = self._own_block(part)
            if block is None or block["type"] in USER_ONLY | IN_RESULTS_ONLY:
                self._leave_out(part, at)
                return []
            if block["type"] in THINKING and not self._may_think(at):
                return []
            return [(block, at)] if self._sound(block, at) else []
        return self._plain(part, at)

    def answers(self, answers: Sequence[Answer]) -> Placed:
        """Return the results of a turn's calls, then what could not stand inside them."""
        results: Placed = []
        after: Placed = []
        for answer in answers:
            content = self._result_content(answer.part, answer.at)
            result: Wire = {"type": "tool_result", "tool_use_id": answer.part.call_id}
            if answer.part.is_error:
                after += self._moved_out(content, answer.at)
                content = [block for block in content if block["type"] == "text"]
                if not any(block["text"].strip() for block in content):
                    self._repairs.add(ERROR_WITHOUT_TEXT, answer.at, "a failed result has no text")
                    content = [_text(NO_OUTPUT)]
                result["is_error"] = True
            if len(content) == 1 and set(content[0]) == {"type", "text"}:
                result["content"] = content[0]["text"]
            elif content:
                result["content"] = content
            results.append((result, answer.at))
        return results + after

    def _moved_out(self, content: Sequence[Wire], at: int) -> Placed:
        """Return the blocks of a failed result that follow the results: it holds text only."""
        moved: Placed = []
        for block in content:
            if block["type"] in USER_ONLY:
                detail = f"a failed result holds text only; its {block['type']} follows the results"
                self._repairs.add(IMAGE_MOVED, at, detail)
                moved.append((block, at))
            elif block["type"] != "text":
                detail = f"a failed result holds text only; its {block['type']} block is not sent"
                self._repairs.add(OPAQUE_LEFT_OUT, at, detail)
        return moved

    def _result_content(self, result: ToolResult, at: int) -> list[Wire]:
        if len(result.content) == 1 and isinstance(result.content[0], Text):
            text = result.content[0].text
            return [_text(text)] if text else []
        blocks: list[Wire] = []
        for part in result.content:
            if isinstance(part, Opaque):
                block = self._own_block(part)
                if block is not None and block["type"] in RESULT_BLOCKS:
                    blocks += [block] if self._sound(block, at) else []
                else:
                    self._leave_out(part, at)
                    blocks.append(_text(opaque_note(part)))
            else:
                blocks += [block for block, _ in self._plain(part, at)]
        return blocks

    def _plain(self, part: Part, at: int) -> Placed:
        if isinstance(part, Text):
            block = _text(part.text)
            return [(block, at)] if self._sound(block, at) else []
        if isinstance(part, Image):
            return [(self._image(part, at), at)]
        return []

    def _sound(self, block: Wire, at: int) -> bool:
        """Tell whether the block may be sent: text must not be blank."""
        text = block.get("text")
        if block["type"] != "text" or (isinstance(text, str) and text.strip()):
            return True
        if text:
            self._repairs.add(BLANK_TEXT, at, "a text is only white space; left out")
        return False

    def _image(self, image: Image, at: int) -> Wire:
        fault = invalid_image(image, self._images)
        if fault:
            self._repairs.add(INVALID_IMAGE, at, fault)
        encoded = base64_image(image, self._images)
        if encoded is not None:
            source = {"type": "base64", "media_type": encoded[0], "data": encoded[1]}
            return {"type": "image", "source": source}
        url = web_url(image)
        if url is not None:
            return {"type": "image", "source": {"type": "url", "url": url}}
        self._repairs.add(IMAGE_LEFT_OUT, at, "an image became a note")
        return _text(image_note(image))

    def _system_text(self, piece: Piece) -> list[str]:
        part = piece.part
        if isinstance(part, Image):
            self._repairs.add(IMAGE_LEFT_OUT, piece.at, "an image became a note")
            return [image_note(part)]
        if isinstance(part, Opaque):
            self._leave_out(part, piece.at)
            return [opaque_note(part)]
        if isinstance(part, Text) and self._sound(_text(part.text), piece.at):
            return [part.text]
        return []

    def _thinking(self, part: Reasoning, at: int) -> Placed:
        if not self._may_think(at):
            return []
        if not part.signature:
            self._repairs.add(REASONING_LEFT_OUT, at, "reasoning without a signature; left out")
            return []
        block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
        return [(block, at)]

    def _may_think(self, at: int) -> bool:
        """Tell whether this message's reasoning goes back to the model."""
        if not self._reasoning:
            return False
        made_by = model_family(self._messages[at].model)
        if made_by == self._model:
            return True
        detail = f"reasoning of {made_by or 'an unknown model'}; left out"
        self._repairs.add(REASONING_LEFT_OUT, at, detail)
        return False

    def _call(self, call: ToolCall, at: int) -> Wire:
        if call.format == "text":
            arguments: Wire | None = {"input": call.arguments}
        else:
            arguments = parse_object(call.arguments) if call.arguments.strip() else {}
        if arguments is None:
            detail = f"the arguments of call {call.id!r} are no JSON object; sent as text"
            self._repairs.add(ARGUMENTS_WRAPPED, at, detail)
            arguments = {"input": call.arguments}
        name = tool_name(call.name, ANTHROPIC_NAME_LIMIT, at, self._repairs)
        return {"type": "tool_use", "id": call.id, "name": name, "input": arguments}

    def _own_block(self, part: Opaque) -> Wire | None:
        block = opaque_block(part) if part.provider == PROVIDER else None
        if block is None or block["type"] in NOWHERE or block_fault(block, self._images):
            return None
        block.pop("cache_control", None)
        return block

    def _leave_out(self, part: Opaque, at: int) -> None:
        own = part.provider == PROVIDER
        fault = block_fault(opaque_block(part) or {}, self._images) if own else ""
        if fault:
            self._repairs.add(INVALID_IMAGE, at, fault)
            return
        detail = f"a block of provider {part.provider!r} cannot stand here; not sent"
        self._repairs.add(left_out_code(part), at, detail)


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def is_server_result(type_: str) -> bool:
    """Tell whether a block of this type answers a call of a tool that Anthropic runs."""
    return type_.endswith("_tool_result")
