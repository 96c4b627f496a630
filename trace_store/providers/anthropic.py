"""Anthropic's Messages API: system blocks, and alternating messages.

Reading: blocks of messages.

Invariant: a block without a part type in Trace is kept verbatim, as an opaque part of provider "anthropic". The
message around the blocks is read by `providers.chat`, because many programs mix blocks of Anthropic and OpenAI.

Requests: `system`, `messages`, `tools`.

Invariant: turns of `validity.arrange` become alternating user and assistant messages, each content a list of
blocks; the results of a turn's calls come first in the next user message.

- System and developer messages at the front are the `system` blocks. Later ones are user text inside
  `<system>` and `</system>`, since not every model accepts a system message there.
- Neighbours of the same role are one message. If the assistant speaks first, a user message that says so
  precedes it.
- Empty or blank text is left out, except the only text of a tool result. A
  final assistant message does not end in white space.
- Thinking is sent only to the model that wrote it, and only with its signature: to `model` if given,
  else to the most recent Claude model. A date at the end of a model's name and a provider before it do not
  matter. With `reasoning=False` none is sent. Thinking at the end of a message is dropped.
- Opaque blocks of provider "anthropic" are sent verbatim, without their `cache_control`, where their type is
  allowed. Others become notes in user messages and results and are left out of assistant messages.
- A tool that Anthropic runs is called and answered in one assistant message; a call or an answer alone is left
  out, except for a call in the last message, which Anthropic may still answer.
- The input of a call is an object. Other arguments are sent as `{"input": text}`.
- A failed result has at least one text and nothing else: images follow after the results, and "[no output]"
  replaces missing text.
- Images are base64 or a URL; other images than GIF, JPEG, PNG and WebP become notes.
- Ids consist of `a-z A-Z 0-9 _ -`, names too with at most 128. Others are changed. A speaker's name is not sent.
- Lone surrogates become U+FFFD.
- `cache="stable"` sets at most four cache breakpoints.

Invariant: at most four cache marks: the end of the system blocks (or of the tools, without system text), the
end of the stable messages, and two more before it. A context only grows, so all of it is stable, except for a
last message that was repaired because its calls have no results yet.

A mark finds a cache entry that an earlier request wrote at most 20 blocks before it. The marks are at most 19
blocks apart, so that together they reach back nearly 60 blocks from the end: a context may grow that much
between two requests without losing its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.fields import decoded, dump, image_of_url, optional, required, wrong
from trace_store.providers.media import (
    BEGINNING,
    anthropic_images,
    base64_image,
    block_fault,
    invalid_image,
    left_out_code,
    opaque_block,
    web_url,
)
from trace_store.providers.rendering import (
    BLANK_TEXT,
    ERROR_WITHOUT_TEXT,
    IMAGE_LEFT_OUT,
    IMAGE_MOVED,
    INVALID_IMAGE,
    OPAQUE_LEFT_OUT,
    ORPHAN_CALL,
    REASONING_LEFT_OUT,
    SYSTEM_ROLES,
    TRAILING_SPACE,
    Options,
    Renderable,
    Repairs,
)
from trace_store.providers.tools import (
    ANTHROPIC_NAME_LIMIT,
    add_tools,
    anthropic_tools,
    call_input,
    tool_name,
)
from trace_store.providers.validity import (
    EarlierReasoning,
    PlacedPart,
    PlacedResult,
    RoleTurn,
    arrange,
)
from trace_store.providers.wire import word
from trace_store.providers.writers import TurnWriter, begin, merged, split_front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.providers.writers import Draft, Placed, Wire
PROVIDER = "anthropic"
CANNOT_CARRY = (
    "front",
    "neighbours",
    "results-apart",
    "name",
    "arguments",
)
"""Losses besides `rendering.LOST_EVERYWHERE`; codes of `rendering.LOST_BY_DESIGN`."""
ID_LIMIT = 256
ROLES = ("user", "assistant")
READ_BLOCKS = ("text", "thinking", "tool_result", "tool_use")
KEPT_BLOCKS = frozenset(
    {
        *("browser_state", "compaction", "container_upload", "document", "fallback", "image"),
        *("mcp_tool_result", "mcp_tool_use", "redacted_thinking", "search_result"),
        *("server_tool_use", "tool_reference"),
    }
)
"""Types of blocks that are kept verbatim; `image` only if its bytes are at the provider."""


def render_anthropic(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> Wire:
    """Return the request, without model and token limit, which the caller adds."""
    turns = arrange(messages, repairs, call_id=lambda id_: word(id_, ID_LIMIT, "call"))
    reasoning = EarlierReasoning(messages, repairs, options, PROVIDER, is_open=True)
    blocks = Blocks(messages, repairs, reasoning)
    front, rest = split_front(turns)
    system = [placed for turn in front for placed in blocks.system(turn)]
    drafts = _settle([draft for turn in rest for draft in _drafts(turn, blocks)], repairs)
    request: Wire = {}
    if system:
        request["system"] = [repairs.scrubbed(block, at) for block, at in system]
    request["messages"] = [
        {"role": role, "content": [repairs.scrubbed(block, at) for block, at in content]}
        for role, content in drafts
    ]
    _finish(request["messages"], drafts, repairs)
    add_tools(request, anthropic_tools(tools, repairs), repairs)
    if options.cache == "stable":
        set_breakpoints(request, passing=_passing(drafts, repairs))
    return request


def _drafts(turn: RoleTurn, blocks: Blocks) -> list[Draft]:
    if turn.role in SYSTEM_ROLES:
        return [("user", blocks.late_system(turn))]
    if turn.role == "user":
        return [("user", [block for placed in turn.parts for block in blocks.user(placed)])]
    said = [block for placed in turn.parts for block in blocks.assistant(placed)]
    return [("assistant", said), ("user", blocks.results(turn.results))]


def _settle(drafts: list[Draft], repairs: Repairs) -> list[Draft]:
    """Return alternating, non-empty messages that do not end in thinking."""
    kept: list[Draft] = []
    alternating = merged(drafts, ROLES)
    for role, content in alternating:
        if role == "assistant":
            content = _paired_server_calls(content, content is alternating[-1][1], repairs)
            while content and content[-1][0]["type"] in THINKING:
                detail = "nothing follows the reasoning in its message; left out"
                repairs.add(REASONING_LEFT_OUT, content.pop()[1], detail)
        kept.append((role, content))
    return merged(kept, ROLES)


def _paired_server_calls(
    content: list[tuple[Wire, int]], is_last: bool, repairs: Repairs
) -> list[tuple[Wire, int]]:
    """Return the content without unpaired calls and answers of Anthropic's own tools."""
    waiting: dict[str, int] = {}
    alone: set[int] = set()
    for index, (block, _) in enumerate(content):
        if block["type"] in SERVER_CALLS:
            id_ = str(block.get("id"))
            if id_ in waiting:
                alone.add(waiting[id_])
            waiting[id_] = index
        elif is_server_result(block["type"]):
            call = waiting.pop(str(block.get("tool_use_id")), None)
            alone |= {index} if call is None else set()
    if not is_last:
        alone |= set(waiting.values())
    for index in sorted(alone):
        block, at = content[index]
        repairs.add(OPAQUE_LEFT_OUT, at, f"a {block['type']} block is unpaired; left out")
    return [placed for index, placed in enumerate(content) if index not in alone]


def _finish(messages: list[Wire], drafts: list[Draft], repairs: Repairs) -> None:
    """Fix the first and the last message."""
    begin(messages, drafts, {"role": "user", "content": [text_block(BEGINNING)]}, repairs)
    if not messages:
        return
    last = messages[-1]
    block = last["content"][-1]
    if last["role"] == "assistant" and block["type"] == "text":
        text = block["text"].rstrip()
        if text != block["text"]:
            detail = "the last message ended in white space; removed"
            repairs.add(TRAILING_SPACE, drafts[-1][1][-1][1], detail)
            block["text"] = text


def _passing(drafts: list[Draft], repairs: Repairs) -> int:
    """Return the number of last messages that will change when the context grows.

    A message will show its unanswered calls once they have results, and regain removed trailing white space.
    Messages before the last assistant message do not change.
    """
    spoken = [content[0][1] for role, content in drafts if role == "assistant"]
    passing = [
        repair.at
        for repair in repairs.found
        if repair.code in (ORPHAN_CALL, TRAILING_SPACE)
        and repair.at is not None
        and repair.at >= (spoken[-1] if spoken else 0)
    ]
    if not passing:
        return 0
    settled = 0
    while settled < len(drafts) and all(at < min(passing) for _, at in drafts[settled][1]):
        settled += 1
    return len(drafts) - settled


NO_OUTPUT = "[no output]"
# Allowed positions of blocks. A block of an unknown type stays where it was recorded.
THINKING = frozenset({"redacted_thinking", "thinking"})
RESULT_BLOCKS = frozenset(
    {"browser_state", "document", "image", "search_result", "text", "tool_reference"}
)
USER_ONLY = frozenset({"container_upload", "document", "image", "search_result"})
SERVER_CALLS = frozenset({"mcp_tool_use", "server_tool_use"})
ASSISTANT_ONLY = SERVER_CALLS | THINKING | {"compaction"}
# Calls and results have their own part types; an opaque one would escape the pairing.
NOWHERE = frozenset({"tool_result", "tool_use"})
IN_RESULTS_ONLY = frozenset({"browser_state", "tool_reference"})


class Blocks(TurnWriter):
    """Writes parts as blocks; each comes with the position of its message."""

    def __init__(
        self, messages: Sequence[Renderable], repairs: Repairs, reasoning: EarlierReasoning
    ) -> None:
        super().__init__(repairs, text_block)
        self._reasoning = reasoning
        self._images = anthropic_images(messages)

    def user(self, placed: PlacedPart) -> Placed:
        """Return the blocks of a part of a user message."""
        part = placed.part
        if isinstance(part, Opaque):
            block = self._own_block(part)
            unfit = block is None or is_server_result(block["type"])
            if block is None or unfit or block["type"] in ASSISTANT_ONLY | IN_RESULTS_ONLY:
                return [(self.note(part, placed.at), placed.at)]
            return [(block, placed.at)] if self._sound(block, placed.at) else []
        return self._plain(part, placed.at)

    def assistant(self, placed: PlacedPart) -> Placed:
        """Return the blocks of a part of an assistant message."""
        part, at = placed.part, placed.at
        if isinstance(part, ToolCall):
            return [(self._call(part, at), at)]
        if isinstance(part, Reasoning):
            return self._thinking(part, at)
        if isinstance(part, Image):
            detail = "an assistant message cannot have an image; left out"
            self._repairs.add(IMAGE_LEFT_OUT, at, detail)
            return []
        if isinstance(part, Opaque):
            block = self._own_block(part)
            if block is None or block["type"] in USER_ONLY | IN_RESULTS_ONLY:
                self.leave_out(part, at)
                return []
            if block["type"] in THINKING and not self._reasoning.allows(at):
                return []
            return [(block, at)] if self._sound(block, at) else []
        return self._plain(part, at)

    def results(self, placed: Sequence[PlacedResult]) -> Placed:
        """Return the results of a turn's calls, then content not allowed inside them."""
        results: Placed = []
        after: Placed = []
        for each in placed:
            content = self._result_content(each.part, each.at)
            result: Wire = {"type": "tool_result", "tool_use_id": each.part.call_id}
            if each.part.is_error:
                after += self._moved_out(content, each.at)
                content = [block for block in content if block["type"] == "text"]
                if not any(block["text"].strip() for block in content):
                    self._repairs.add(ERROR_WITHOUT_TEXT, each.at, "a failed result has no text")
                    content = [text_block(NO_OUTPUT)]
                result["is_error"] = True
            if len(content) == 1 and set(content[0]) == {"type", "text"}:
                result["content"] = content[0]["text"]
            elif content:
                result["content"] = content
            results.append((result, each.at))
        return results + after

    def _moved_out(self, content: Sequence[Wire], at: int) -> Placed:
        """Return the non-text blocks of a failed result, which follow the results."""
        moved: Placed = []
        for block in content:
            if block["type"] in USER_ONLY:
                detail = (
                    f"a failed result may only have text; its {block['type']} follows the results"
                )
                self._repairs.add(IMAGE_MOVED, at, detail)
                moved.append((block, at))
            elif block["type"] != "text":
                detail = (
                    f"a failed result may only have text; its {block['type']} block is not sent"
                )
                self._repairs.add(OPAQUE_LEFT_OUT, at, detail)
        return moved

    def _result_content(self, result: ToolResult, at: int) -> list[Wire]:
        if len(result.content) == 1 and isinstance(result.content[0], Text):
            text = result.content[0].text
            return [text_block(text)] if text else []
        blocks: list[Wire] = []
        for part in result.content:
            if isinstance(part, Opaque):
                block = self._own_block(part)
                if block is not None and block["type"] in RESULT_BLOCKS:
                    blocks += [block] if self._sound(block, at) else []
                else:
                    blocks.append(self.note(part, at))
            else:
                blocks += [block for block, _ in self._plain(part, at)]
        return blocks

    def _plain(self, part: Part, at: int) -> Placed:
        if isinstance(part, Text):
            block = text_block(part.text)
            return [(block, at)] if self._sound(block, at) else []
        if isinstance(part, Image):
            return [(self._image(part, at), at)]
        return []

    def _sound(self, block: Wire, at: int) -> bool:
        """Return True if the block may be sent: text must not be blank."""
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
            return image_block(*encoded)
        url = web_url(image)
        return self.note(image, at) if url is None else linked_image_block(url)

    def is_sent(self, text: str, at: int) -> bool:
        """Return True unless a text is blank; else record a repair."""
        return self._sound(text_block(text), at)

    def _thinking(self, part: Reasoning, at: int) -> Placed:
        if not self._reasoning.allows(at):
            return []
        if not part.signature:
            self._reasoning.leave_out(at, "reasoning without a signature")
            return []
        return [(thinking_block(part), at)]

    def _call(self, call: ToolCall, at: int) -> Wire:
        arguments = call_input(call, at, self._repairs)
        name = tool_name(call.name, ANTHROPIC_NAME_LIMIT, at, self._repairs)
        return call_block(call, name, arguments)

    def _own_block(self, part: Opaque) -> Wire | None:
        block = opaque_block(part) if part.provider == PROVIDER else None
        if block is None or block["type"] in NOWHERE or block_fault(block, self._images):
            return None
        block.pop("cache_control", None)
        return block

    def leave_out(self, part: Opaque, at: int) -> None:
        """Record a repair for an opaque part that is not sent."""
        own = part.provider == PROVIDER
        fault = block_fault(opaque_block(part) or {}, self._images) if own else ""
        if fault:
            self._repairs.add(INVALID_IMAGE, at, fault)
            return
        detail = f"a block of provider {part.provider!r} is not allowed here; not sent"
        self._repairs.add(left_out_code(part), at, detail)


def text_block(text: str) -> Wire:
    """Return a text."""
    return {"type": "text", "text": text}


def thinking_block(part: Reasoning) -> Wire:
    """Return signed reasoning."""
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def call_block(call: ToolCall, name: str, arguments: Wire) -> Wire:
    """Return a call with a name and arguments that Anthropic accepts."""
    return {"type": "tool_use", "id": call.id, "name": name, "input": arguments}


def image_block(media_type: str, data: str) -> Wire:
    """Return an image of this media type, given as base64."""
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


def linked_image_block(url: str) -> Wire:
    """Return an image that Anthropic fetches from a URL."""
    return {"type": "image", "source": {"type": "url", "url": url}}


def is_server_result(type_: str) -> bool:
    """Return True if a block of this type answers a tool that Anthropic runs."""
    return type_.endswith("_tool_result")


MAXIMUM_BREAKPOINTS = 4
STRIDE_BLOCKS = 19
_UNMARKABLE = frozenset({"redacted_thinking", "thinking"})


def set_breakpoints(request: dict[str, Any], *, passing: int) -> None:
    """Mark the request in place.

    Args:
        request: an Anthropic request without marks.
        passing: number of messages at its end that will change when the context grows.
    """
    left = MAXIMUM_BREAKPOINTS
    head = request.get("system") or request.get("tools")
    if head:
        _mark(head[-1])
        left -= 1
    messages = request["messages"]
    blocks = [
        block for message in messages[: len(messages) - passing] for block in message["content"]
    ]
    markable = [n for n, block in enumerate(blocks) if block["type"] not in _UNMARKABLE]
    while left and markable:
        at = markable.pop()
        _mark(blocks[at])
        left -= 1
        # Continue at the farthest block within reach, else at the nearest.
        while len(markable) > 1 and at - markable[-2] <= STRIDE_BLOCKS:
            markable.pop()


def _mark(block: dict[str, Any]) -> None:
    block["cache_control"] = {"type": "ephemeral"}


def is_response(form: Mapping[str, Any]) -> bool:
    """Return True for a whole response; it may have blocks that Trace does not know."""
    return form.get("type") == "message" and "stop_reason" in form


def is_kept_block(type_: str) -> bool:
    """Return True if blocks of this type are specific to Anthropic."""
    return type_ in KEPT_BLOCKS or type_.endswith("_tool_result")


def anthropic_part(
    block: Mapping[str, Any], where: str, content: Callable[[Any, str], list[Part]]
) -> Part | None:
    """Return the part of a thinking block, a call or a result; None for others.

    Args:
        block: the block.
        where: its place, for errors.
        content: reads the content of a result.

    Raises:
        InvalidMessageError: the block is damaged; `.where` names it.
    """
    type_ = block.get("type")
    if type_ == "thinking":
        signature = optional(block, "signature", where)
        return Reasoning(required(block, "thinking", where), signature or None)
    if type_ == "tool_use":
        arguments = dump(block.get("input", {}))
        return ToolCall(required(block, "id", where), required(block, "name", where), arguments)
    if type_ == "tool_result":
        return ToolResult(
            required(block, "tool_use_id", where),
            content(block.get("content"), f"{where}.content"),
            block.get("is_error") is True,
        )
    return None


def source_image(block: Mapping[str, Any], where: str) -> Image | None:
    """Return the image of a block, or None for a file id at the provider."""
    source = block.get("source")
    if not isinstance(source, dict):
        raise wrong(where, "an image needs a source")
    if source.get("type") == "base64":
        media_type, data = required(source, "media_type", where), required(source, "data", where)
        if data.startswith("data:"):
            return image_of_url(data, where)
        return Image(media_type, decoded(data, where))
    return Image(url=required(source, "url", where)) if source.get("type") == "url" else None
