"""OpenAI's Responses API: items instead of messages.

Reading: items, input and output.

Invariant: consecutive items of the model are one message, as they were one response; only a `message` item
directly after another one starts a new message. Every other item is a separate message.

- A `reasoning` item becomes one reasoning part for each of its texts (summaries, else the reasoning itself);
  the last has `encrypted_content` as its signature, byte for byte.
- Calls and outputs are paired on `call_id`, never on `id`. A `custom_tool_call` has arguments of format "text".
- Fields that must be sent again but have no place in a part (`phase` of a message; `namespace` and `caller` of a
  call) precede it as a frame: an opaque part with the item's type and only these fields.
- Any other item is kept verbatim as an opaque part of provider "openai": of the model, unless it is an output
  or an answer of the program.
- `id` of an item (except a message), `status` and `annotations` are ignored.

Requests: `{"instructions": "…", "input": […], "tools": […]}`.

Invariant: each turn of `validity.arrange` becomes items: its messages and calls in the order of its parts, then one
output for each of its calls.

- A first system message with a single text is `instructions`. All others keep their position, as messages of
  role `system` and `developer`. Speakers' names are not sent.
- The assistant's text is `output_text`, all other text `input_text`. Empty text is left out.
- Reasoning is sent only to the model that wrote it, and only with its signature, which is the item's
  `encrypted_content`. Parts without a signature before a signed one are summaries of the same item. A reasoning
  item without a later item of the model is left out.
- Messages, calls and reasoning have no `id`: the API would look up the stored item, and reject it without the
  reasoning that it was generated with.
- Arguments are the model's own text, even if it is not JSON. A call with free-text arguments is a
  `custom_tool_call`.
- An output has no error flag. The output of a failed call begins with the line `[tool error]`. Images stay in it.
- Images are `data:` URLs or the URL itself; images other than GIF, JPEG, PNG and WebP become notes.
- Opaque parts of provider "openai" are sent verbatim: as items, or in a message where their type is allowed. A
  frame (see above) adds its fields to the next item. Others become notes in user messages and outputs and
  are left out of assistant messages. A call without an answer, or an answer without a call, is left out.
- Call ids are 1 to 64 printable ASCII characters; names 1 to 64 of `a-z A-Z 0-9 _ -`. Others are changed.
- Lone surrogates become U+FFFD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.errors import InvalidInputError
from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import content_parts
from trace_store.providers.fields import (
    Placed,
    closest,
    details,
    dump,
    entries,
    keeps_damage,
    mapping,
    message,
    opaque,
    optional,
    parts_of,
    required,
    unread,
    wrong,
)
from trace_store.providers.media import (
    ERROR_LINE,
    document_fault,
    image_url,
    left_out_code,
    opaque_block,
)
from trace_store.providers.rendering import (
    IMAGE_LEFT_OUT,
    INVALID_IMAGE,
    NO_MESSAGES,
    OPAQUE_LEFT_OUT,
    REASONING_LEFT_OUT,
    Options,
    Renderable,
    Repairs,
)
from trace_store.providers.tools import (
    OPENAI_NAME_LIMIT,
    add_tools,
    call_id,
    responses_tools,
    tool_name,
)
from trace_store.providers.validity import EarlierReasoning, PlacedResult, RoleTurn, arrange
from trace_store.providers.writers import InputWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.writers import Wire
PROVIDER = "openai"
CANNOT_CARRY = (
    "error-flag",
    "answers",
    "results-apart",
    "name",
)
"""Losses besides `rendering.LOST_EVERYWHERE`; codes of `rendering.LOST_BY_DESIGN`."""
ID_LIMIT = 64
_CALLS = {"function_call": "json", "custom_tool_call": "text"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def render_openai_responses(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> Wire:
    """Return the request, without model and limits, which the caller adds."""
    turns = arrange(messages, repairs, call_id=lambda id_: call_id(id_, ID_LIMIT))
    writer = _Writer(repairs, EarlierReasoning(messages, repairs, options, PROVIDER))
    request: Wire = {}
    if turns and (instructions := _instructions(turns[0])) is not None:
        request["instructions"] = repairs.scrubbed(instructions, turns[0].at)
        turns = turns[1:]
    for turn in turns:
        writer.write(turn)
    items = settle(writer.items, repairs)
    request["input"] = [repairs.scrubbed(item.wire, item.at) for item in items]
    if not request["input"]:
        repairs.add(NO_MESSAGES, None, "nothing to send: no message has content")
    add_tools(request, responses_tools(tools, repairs), repairs)
    return request


def _instructions(turn: RoleTurn) -> str | None:
    """Return the text of a first system message with a single text, else None."""
    if turn.role != "system" or len(turn.parts) != 1:
        return None
    part = turn.parts[0].part
    return part.text if isinstance(part, Text) else None


class _Writer(InputWriter):
    """Writes turns as items."""

    def __init__(self, repairs: Repairs, reasoning: EarlierReasoning) -> None:
        super().__init__(repairs, input_text)
        self._reasoning = reasoning
        self._content: list[Wire] = []
        self._summary: list[Wire] = []
        self._frame: tuple[Wire, int] | None = None
        self.items: list[PlacedItem] = []

    def write(self, turn: RoleTurn) -> None:
        if turn.role == "assistant":
            self._assistant(turn)
        else:
            self._other(turn)

    def _other(self, turn: RoleTurn) -> None:
        at = turn.at
        for placed in turn.parts:
            part, at = placed.part, placed.at
            item: Wire | None = None
            if isinstance(part, Opaque) and turn.role == "user":
                item = item_of(part, by_program=True)
            if item is None:
                self._content += self.shown(part, at, blocks=turn.role == "user")
                continue
            self._end_message(turn.role, at)
            self.items.append(PlacedItem(item, at, False))
        self._end_message(turn.role, at)

    def _assistant(self, turn: RoleTurn) -> None:
        calls: list[ToolCall] = []
        before = turn.at
        for placed in turn.parts:
            part, at = placed.part, placed.at
            if self._summary and (at != before or not isinstance(part, Reasoning)):
                self._end_summary(before)
            if not isinstance(part, Text | Opaque) or at != before:
                self._end_message("assistant", before)
            before = at
            if isinstance(part, ToolCall):
                calls.append(part)
                self._call(part, at)
            elif isinstance(part, Reasoning):
                self._thought(part, at)
            elif isinstance(part, Text):
                self._content.append({"type": "output_text", "text": part.text, "annotations": []})
            elif isinstance(part, Opaque):
                self._own(part, at)
            elif isinstance(part, Image):
                detail = "an assistant message cannot have an image; left out"
                self._repairs.add(IMAGE_LEFT_OUT, at, detail)
        self._end_summary(before)
        self._end_message("assistant", before)
        self._drop_frame()
        for call, result in zip(calls, turn.results, strict=True):
            self._output(call, result)

    def _end_message(self, role: str, at: int) -> None:
        if not self._content:
            return
        message: Wire = {"type": "message", "role": role, "content": self._content}
        message |= self._framed("message")
        self.items.append(PlacedItem(message, at, role == "assistant"))
        self._content = []

    def _thought(self, part: Reasoning, at: int) -> None:
        if not self._reasoning.allows(at):
            return
        # A signature without text signs an empty one if others precede it in its item.
        if part.text or not part.signature or self._summary:
            self._summary.append(summary_text(part.text))
        if part.signature:
            self.items.append(PlacedItem(reasoning_item(self._summary, part.signature), at, True))
            self._summary = []

    def _end_summary(self, at: int) -> None:
        """Record a repair for reasoning without a signature."""
        for _ in self._summary:
            self._reasoning.leave_out(at, "reasoning without a signature")
        self._summary = []

    def _call(self, call: ToolCall, at: int) -> None:
        item = call_item(call, tool_name(call.name, OPENAI_NAME_LIMIT, at, self._repairs))
        self.items.append(PlacedItem(item | self._framed(item["type"], call.id), at, True))

    def _output(self, call: ToolCall, placed: PlacedResult) -> None:
        result = placed.part
        content = [
            block for part in result.content for block in self.shown(part, placed.at, blocks=True)
        ]
        if result.is_error:
            if content and content[0]["type"] == "input_text":
                content[0] = input_text(f"{ERROR_LINE}\n{content[0]['text']}")
            else:
                content.insert(0, input_text(ERROR_LINE))
        plain = len(content) == 1 and content[0]["type"] == "input_text"
        output = content[0]["text"] if plain else content or ""
        item = output_item(result.call_id, output, custom=call.format == "text")
        self.items.append(PlacedItem(item, placed.at, False))

    def _own(self, part: Opaque, at: int) -> None:
        """Write an opaque part of the assistant."""
        refusal, item, frame = refusal_of(part), item_of(part, by_program=False), frame_of(part)
        if refusal is not None:
            self._content.append(refusal)
            return
        self._end_message("assistant", at)
        if item is not None:
            self.items.append(PlacedItem(item, at, True))
        elif frame is not None:
            self._drop_frame()
            self._frame = frame, at
        else:
            self.leave_out(part, at)

    def _framed(self, type_: str, call_id: str | None = None) -> Wire:
        """Return the fields of a frame for this item."""
        if self._frame is None:
            return {}
        frame, _ = self._frame
        if frame["type"] != type_ or frame.get("call_id") != call_id:
            self._drop_frame()
            return {}
        self._frame = None
        return {key: frame[key] for key in FRAMES[type_] if key in frame}

    def _drop_frame(self) -> None:
        if self._frame is not None:
            frame, at = self._frame
            detail = f"fields of a {frame['type']} have no item after them; left out"
            self._repairs.add(OPAQUE_LEFT_OUT, at, detail)
            self._frame = None

    def image(self, image: Image) -> Wire | None:
        url = image_url(image)
        return None if url is None else {"type": "input_image", "image_url": url, "detail": "auto"}

    def block(self, part: Opaque) -> Wire | None:
        block = _own_block(part)
        if block is None or document_fault(part):
            return None
        if block["type"] == "file" and isinstance(block.get("file"), dict):
            # The same file, as chat completions write it.
            return {"type": "input_file", **block["file"]}
        return block if block["type"] in _INPUT_BLOCKS else None

    def leave_out(self, part: Opaque, at: int) -> None:
        if fault := document_fault(part):
            self._repairs.add(INVALID_IMAGE, at, fault)
            return
        detail = f"not an item of OpenAI's: {part.provider or 'unknown provider'}; not sent"
        self._repairs.add(left_out_code(part), at, detail)


# Fields without a place in a part that must be sent again: kept before it, in a frame.
FRAMES = {
    "message": ("phase",),
    "function_call": ("caller", "namespace"),
    "custom_tool_call": ("caller", "namespace"),
}
_INPUT_BLOCKS = frozenset({"input_file", "input_image"})
# Blocks of a message, and items with their own part type: none is an opaque item.
_NO_ITEMS = frozenset(
    {
        *("custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output"),
        *("encrypted_content", "message", "reasoning", "reasoning_text", "summary_text"),
        *("file", "image_url", "input_audio", "input_file", "input_image", "input_text"),
        *("output_text", "refusal", "text"),
    }
)
_BY_PROGRAM = frozenset(
    {"additional_tools", "compaction_trigger", "configuration_update", "mcp_approval_response"}
)
# Calls that the program answers, and their answers.
_ANSWERED_BY = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
_ANSWERS = {answer: call for call, answer in _ANSWERED_BY.items()}


class PlacedItem(NamedTuple):
    """An item, the position of its message, and whether the model wrote it."""

    wire: Wire
    at: int
    by_model: bool


def input_text(text: str) -> Wire:
    """Return an input text."""
    return {"type": "input_text", "text": text}


def summary_text(text: str) -> Wire:
    """Return a text of a reasoning item."""
    return {"type": "summary_text", "text": text}


def reasoning_item(summary: list[Wire], signature: str) -> Wire:
    """Return reasoning with its signature."""
    return {"type": "reasoning", "summary": summary, "encrypted_content": signature}


def call_item(call: ToolCall, name: str) -> Wire:
    """Return a call with a name that the API accepts."""
    is_custom = call.format == "text"
    type_ = "custom_tool_call" if is_custom else "function_call"
    arguments = "input" if is_custom else "arguments"
    return {"type": type_, "call_id": call.id, "name": name, arguments: call.arguments}


def output_item(call_id: str, output: str | list[Wire], *, custom: bool) -> Wire:
    """Return the output of a call; `custom` if the call had free-text arguments."""
    kind = "custom_tool_call" if custom else "function_call"
    return {"type": f"{kind}_output", "call_id": call_id, "output": output}


def _own_block(part: Opaque) -> Wire | None:
    return opaque_block(part) if part.provider == PROVIDER else None


def refusal_of(part: Opaque) -> Wire | None:
    """Return a refusal, which belongs in a message of the model, else None."""
    block = _own_block(part)
    return block if block is not None and block["type"] == "refusal" else None


def frame_of(part: Opaque) -> Wire | None:
    """Return a frame, else None."""
    block = _own_block(part)
    if block is None or block["type"] not in FRAMES:
        return None
    return block if set(block) - {"type", "call_id"} <= set(FRAMES[block["type"]]) else None


def is_by_program(type_: str) -> bool:
    """Return True if items of this type come from the program, not the model."""
    return type_.endswith("_output") or type_ in _BY_PROGRAM


def item_of(part: Opaque, *, by_program: bool) -> Wire | None:
    """Return an opaque part that is a separate item of program or model, else None.

    That includes items of unknown types.
    """
    block = _own_block(part)
    if block is None or block["type"] in _NO_ITEMS:
        return None
    return block if is_by_program(block["type"]) == by_program else None


def settle(items: Sequence[PlacedItem], repairs: Repairs) -> list[PlacedItem]:
    """Drop unpaired calls and answers, and reasoning without a following item."""
    alone = _alone(items)
    paired: list[PlacedItem] = []
    for index, item in enumerate(items):
        if index in alone:
            detail = f"a {item.wire['type']} item is unpaired; left out"
            repairs.add(OPAQUE_LEFT_OUT, item.at, detail)
        else:
            paired.append(item)
    kept: list[PlacedItem] = []
    followed = False
    for item in reversed(paired):
        if item.wire["type"] == "reasoning" and not followed:
            repairs.add(REASONING_LEFT_OUT, item.at, "nothing follows the reasoning; left out")
            continue
        followed = item.by_model
        kept.append(item)
    return kept[::-1]


def _alone(items: Sequence[PlacedItem]) -> set[int]:
    """Return the positions of unpaired opaque calls and answers."""
    waiting: dict[tuple[str, str], int] = {}
    alone: set[int] = set()
    for index, (wire, _, _) in enumerate(items):
        type_ = wire["type"]
        # An answer of a local shell names its call in `id`; all others have a `call_id`.
        name = wire.get("call_id") or wire.get("id")
        if type_ in _ANSWERED_BY and (wire.get("call_id") or type_ != "tool_search_call"):
            alone.add(index)
            waiting[type_, str(name)] = index
        elif type_ in _ANSWERS and (wire.get("call_id") or type_ != "tool_search_output"):
            call = waiting.pop((_ANSWERS[type_], str(name)), None)
            if call is None:
                alone.add(index)
            else:
                alone.discard(call)
    return alone


class _Item(NamedTuple):
    """Content of one item."""

    role: str
    type: str
    parts: list[Part]
    id: str = ""
    name: str = ""


def messages_from_responses(
    items: Iterable[Any], where: str = "input", *, model: str = ""
) -> list[Message]:
    """Return the messages of a list of items: an `input`, or a response's `output`.

    Args:
        items: the items, oldest first.
        where: name of the list in errors.
        model: the model of the assistant's items.

    Raises:
        InvalidMessageError: an item is damaged; `.where` names it.
    """
    return [placed.message for placed in place_responses(items, where, model=model)]


def place_responses(
    items: Iterable[Any], where: str = "input", *, model: str = ""
) -> Iterator[Placed]:
    """Yield the messages of a list of items, each with its range of items.

    Every item is in one range, and the ranges are consecutive. Arguments and errors as in
    `messages_from_responses`.
    """
    return place_items(items, lambda index: f"{where}[{index}]", model=model)


def place_items(
    items: Iterable[Any], place: Callable[[int], str], *, model: str = ""
) -> Iterator[Placed]:
    """Yield as `place_responses`; `place` returns the name of an item in errors."""
    group: list[_Item] = []
    start = 0
    for index, form in enumerate(items):
        item = _read(form, place(index))
        apart = item.role != "assistant"
        if group and (apart or (item.type == "message" and group[-1].type == "message")):
            yield Placed(start, index, _message(group, place(start), model))
            group = []
        if apart:
            yield Placed(index, index + 1, _message([item], place(index), ""))
            continue
        start = start if group else index
        group.append(item)
    if group:
        yield Placed(start, start + len(group), _message(group, place(start), model))


def message_of_item(form: Any, where: str, *, model: str = "") -> Message:
    """Return the message of one item; otherwise as `messages_from_responses`."""
    item = _read(form, where)
    return _message([item], where, model if item.role == "assistant" else "")


def reasoning_parts(form: Mapping[str, Any], where: str) -> list[Part]:
    """Return the parts of a reasoning item."""
    texts = [
        required(mapping(entry, where, "a summary"), "text", where)
        for name in ("summary", "content")
        for entry in entries(form.get(name), where, name)
    ] or [""]
    signature = optional(form, "encrypted_content", where) or None
    return [*map(Reasoning, texts[:-1]), Reasoning(texts[-1], signature)]


def _message(group: list[_Item], where: str, model: str) -> Message:
    first = group[0]
    if len(group) == 1:
        return message(first.role, first.parts, where, id=first.id, model=model, name=first.name)
    spoken = [item for item in group if item.type == "message"]
    parts = [part for item in group for part in item.parts]
    id_ = (spoken or group)[0].id
    return message(first.role, parts, where, id=id_, model=model, name=first.name)


def _read(value: Any, where: str) -> _Item:
    try:
        return _item(value, where)
    except (InvalidInputError, RecursionError):
        if not keeps_damage():
            raise
    type_ = value.get("type") if isinstance(value, dict) else None
    type_ = type_ if isinstance(type_, str) else ""
    role = "tool" if type_ in _OUTPUTS else "assistant"
    return _Item(role, type_, [unread(value)])


def _item(value: Any, where: str) -> _Item:
    form = mapping(value, where, "an item")
    type_ = form.get("type", "message" if "role" in form else None)
    if not isinstance(type_, str):
        raise wrong(where, "an item needs a type")
    id_ = details(form, where, "id")["id"]
    if type_ == "message":
        role = required(form, "role", where)
        if "content" not in form:
            raise wrong(where, "a message needs content")
        if role not in ROLES:
            raise wrong(where, f"unknown role {role[:40]!r}{closest(role, ROLES)}")
        parts = parts_of(_blocks, form["content"], f"{where}: content")
        return _Item(role, type_, [*_frame(form, type_), *parts], id_)
    if type_ == "reasoning":
        return _Item("assistant", type_, reasoning_parts(form, where), id_)
    if type_ in _CALLS:
        call = call_part(form, type_, where)
        return _Item("assistant", type_, [*_frame(form, type_, call.id), call], id_)
    if type_ in _OUTPUTS:
        return _Item("tool", type_, [_result(form, where)], id_)
    if type_ == "agent_message":
        # Not OpenAI's: a program's agents use it for messages to each other; read as input.
        parts = parts_of(_blocks, form.get("content"), f"{where}: content")
        return _Item("user", type_, parts, id_, details(form, where, "author")["author"])
    return _Item(
        "user" if is_by_program(type_) else "assistant", type_, [opaque(PROVIDER, form)], id_
    )


def call_part(form: Mapping[str, Any], type_: str, where: str) -> ToolCall:
    """Return the call of a `function_call` or `custom_tool_call` item."""
    arguments = form.get("input" if type_ == "custom_tool_call" else "arguments", "")
    return ToolCall(
        required(form, "call_id", where),
        required(form, "name", where),
        arguments if isinstance(arguments, str) else dump(arguments),
        _CALLS[type_],
    )


def _result(form: Mapping[str, Any], where: str) -> ToolResult:
    output = form.get("output")
    failed = False
    if isinstance(output, dict):
        # Some recorders write the text, and whether the tool succeeded.
        failed = output.get("success") is False
        output = output.get("content_items") or output.get("content")
    content = parts_of(_blocks, output, f"{where}: output")
    return ToolResult(required(form, "call_id", where), content, failed)


def _blocks(content: Any, where: str) -> list[Part]:
    return content_parts(content, where, PROVIDER)


def _frame(form: Mapping[str, Any], type_: str, call_id: str | None = None) -> Sequence[Part]:
    kept = {key: form[key] for key in FRAMES[type_] if form.get(key) is not None}
    if not kept or (type_ == "message" and form.get("role") != "assistant"):
        return ()
    held = {"type": type_, **({"call_id": call_id} if call_id else {}), **kept}
    return (opaque(PROVIDER, held),)
