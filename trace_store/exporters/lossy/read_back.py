"""Requests read back as messages, with the origin of each part in the session.

Invariant: requests are read with the parsers of `providers`, which importers use, too. So a loss is exactly what an
import does not get back, and renderers need not count losses.

- Calls keep their order, and results are matched by the ids of their calls.
- Other parts are matched by content, in order, among the parts of the same speaker.
- A part without an origin is a renderer's note and belongs to no message.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from trace_store.context.compiled import CompiledMessage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    FRONT_ROLES,
    TOOL,
    USER,
    DraftMessage,
    DraftPart,
)
from trace_store.exporters.lossy.loss_count import losses_of, nothing_left
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import block_part
from trace_store.providers.documents import parse_messages
from trace_store.providers.fields import damage_kept
from trace_store.providers.gemini import GeminiCalls, gemini_parts
from trace_store.providers.media import ERROR_LINE, split_image, system_text
from trace_store.providers.rendering import MESSAGE_LISTS, NO_MESSAGES, render
from trace_store.providers.validity import Place, last_model, pair
from trace_store.providers.wire import parse_object, replace_surrogates, scrub, to_bytes

_CACHE_MARKS = ("cache_control", "prompt_cache_breakpoint")


def read_back(messages: Sequence[CompiledMessage], request: Any) -> tuple[list[DraftMessage], int]:
    """Return a request's messages with origins, and the number of parts moved out of their result.

    Args:
        messages: the messages of the session, from which the request was rendered.
        request: the provider's request.
    """
    origins = _Origins(messages)
    drafts = []
    for message in read_request(request):
        pieces = [piece for part in message.parts if (piece := origins.find(part, message.role))]
        if pieces:
            drafts.append(_draft(message, pieces))
    return drafts, origins.moved


def read_request(request: Any) -> list[Message]:
    """Return the messages of a request as an import reads them."""
    with damage_kept():
        found = parse_messages(to_bytes(request).decode())
    return [_as_tool_message(message) for message in found]


def _as_tool_message(message: Message) -> Message:
    """Turn a user message with only results into a tool message, for Anthropic."""
    results = all(isinstance(part, ToolResult) for part in message.parts)
    return Message(TOOL, message.parts) if message.role == USER and results else message


def _draft(message: Message, pieces: list[DraftPart]) -> DraftMessage:
    return DraftMessage(
        turn=pieces[0].turn,
        pieces=pieces,
        role=message.role,
        time=0,
        kind=message.kind,
        name=message.name,
        model=message.model,
        id=message.id,
    )


class _Origins:
    """Finds the origin of a request's part in the session; each origin is used once."""

    def __init__(self, messages: Sequence[CompiledMessage]) -> None:
        self._messages = messages
        self._result_of, _ = pair(messages)
        self._calls = deque(
            (at, index)
            for at, message in enumerate(messages)
            for index, part in enumerate(message.parts)
            if message.role == ASSISTANT and isinstance(part, ToolCall)
        )
        self._called: dict[str, Place] = {}
        self._places: dict[Hashable, deque[Place]] = defaultdict(deque)
        self._found: set[Place] = set()
        self._outside: dict[Hashable, deque[tuple[DraftPart, int]]] = defaultdict(deque)
        self.moved = 0
        for at, message in enumerate(messages):
            for index, part in enumerate(message.parts):
                for key in _keys(part, message.role):
                    self._places[key].append((at, index))

    def find(self, part: Part, role: str) -> DraftPart | None:
        """Return a request's part with its origin; None for a note, and for a part that was moved out of a result.

        A moved part is added to the result that it came from.
        """
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, ToolResult):
            return self._result(part)
        key = (_content(part), _speaker(role))
        places = self._places[key]
        while places and places[0] in self._found:
            places.popleft()
        if places:
            place = places.popleft()
            self._found.add(place)
            original = self._part(place)
            return DraftPart(*place, original, _unwrapped_text(original, part))
        if self._outside[key]:
            piece, index = self._outside[key].popleft()
            inner = list(piece.inner or ())
            inner[index] = (inner[index][0], part)
            piece.inner = tuple(inner)
            self.moved += 1
        return None

    def _call(self, call: ToolCall) -> DraftPart | None:
        if not self._calls:
            return None
        place = self._calls.popleft()
        self._called[call.id] = place
        return DraftPart(*place, self._part(place), call)

    def _result(self, result: ToolResult) -> DraftPart | None:
        call = self._called.get(result.call_id)
        if call is None:
            return None
        place = self._result_of.get(call)
        if place is None:
            return None  # the note that no result was recorded
        original = self._part(place)
        inner = (
            tuple(_read_back_content(original, result)) if isinstance(original, ToolResult) else ()
        )
        piece = DraftPart(*place, original, result, inner)
        for index, (part, kept) in enumerate(inner):
            if kept is None and isinstance(part, Image | Opaque):
                for key in _keys(part, USER):
                    self._outside[key].append((piece, index))
        return piece

    def _part(self, place: Place) -> Part:
        return self._messages[place[0]].parts[place[1]]


def _read_back_content(
    original: ToolResult, result: ToolResult
) -> Iterator[tuple[Part, Part | None]]:
    """Yield each part of the original result with the part that was read back, or None."""
    contents = [_content(part) for part in result.content]
    start = 0
    for part in original.content:
        forms = set(_contents(part))
        if isinstance(part, Text):
            forms.add(_content(Text(f"{ERROR_LINE}\n{part.text}")))
        at = next((at for at in range(start, len(contents)) if contents[at] in forms), None)
        yield part, None if at is None else _unwrapped_text(part, result.content[at])
        start = start if at is None else at + 1


def _unwrapped_text(original: Part, part: Part) -> Part:
    """Return a part without a renderer's wrapping of its text."""
    if not isinstance(original, Text) or not isinstance(part, Text):
        return part
    text = replace_surrogates(original.text)
    return Text(text) if len(part.text) > len(text) else part


def _keys(part: Part, role: str) -> Iterator[Hashable]:
    """Yield keys to match a part in a message of this role; none for calls and results."""
    for content in _contents(part):
        yield content, _speaker(role)
    # Late system messages become the user's, and the end of an assistant's text may be cut.
    if isinstance(part, Text) and role in FRONT_ROLES:
        yield _content(Text(system_text(part.text))), USER
    elif isinstance(part, Text) and role == ASSISTANT and part.text != part.text.rstrip():
        yield _content(Text(part.text.rstrip())), ASSISTANT


def _speaker(role: str) -> str:
    """Return the speaker in the request: tool messages are the user's."""
    if role in FRONT_ROLES:
        return FRONT_ROLES[0]
    return ASSISTANT if role == ASSISTANT else USER


def _contents(part: Part) -> Iterator[Hashable]:
    """Yield the content of a part in every form in which it may be read back."""
    if isinstance(part, ToolCall | ToolResult):
        return
    content = _content(part)
    yield content
    if isinstance(part, Opaque):
        for read in _read_block(part):
            if _content(read) != content:
                yield _content(read)


def _content(part: Part) -> Hashable:
    """Return the content of a part in a form that can be compared."""
    if isinstance(part, Text):
        return "text", replace_surrogates(part.text)
    if isinstance(part, Reasoning):
        return "reasoning", replace_surrogates(part.text), part.signature or ""
    if isinstance(part, Image):
        found = split_image(part)
        return "medium", part.url if found is None else found[1]
    return _block_content(part) if isinstance(part, Opaque) else ""


def _block_content(part: Opaque) -> Hashable:
    block = parse_object(part.data)
    if block is None:
        return "block", part.data
    file = block.get("fileData")
    if len(block) == 1 and isinstance(file, dict) and set(file) == {"fileUri"}:
        # A URL whose extension does not tell the type is read back in Gemini's form.
        return "medium", file["fileUri"]
    if block.get("type") == "file" and isinstance(block.get("file"), dict):
        block = {"type": "input_file", **block["file"]}
    kept = {key: value for key, value in scrub(block)[0].items() if key not in _CACHE_MARKS}
    return "block", json.dumps(kept, sort_keys=True)


def _read_block(part: Opaque) -> Iterator[Part]:
    """Yield how a reader sees a provider's block that was sent verbatim."""
    block = parse_object(part.data)
    if block is None:
        return
    try:
        if part.provider == "gemini":
            yield from gemini_parts(block, "", GeminiCalls())
        else:
            yield block_part(block, "", part.provider)
    except InvalidInputError:
        return


SUFFIX = ".json"
LONG_BYTES = 65_536


def write_request(
    session: ExportSession, renderer: str, provider: str = "", **parameters: Any
) -> Exported:
    """Return a session as a request.

    Args:
        session: the session.
        renderer: name of the provider's renderer.
        provider: the request's `model` is the session's last model of this provider; "" if requests name no model.
        parameters: other fields of the request.

    Raises:
        InvalidInputError: no message is left to send.
        ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
    """
    messages = [turn.message for turn in session.turns]
    rendered = render(renderer, messages, session.tools)
    if any(repair.code == NO_MESSAGES for repair in rendered.repairs):
        raise nothing_left()
    drafts, moved = read_back(messages, rendered.request)
    tools = kept_tools(session, rendered.request.get("tools", ()))
    losses = losses_of(session, drafts, tools=tools, moved=moved)
    model = last_model(messages, provider) if provider else ""
    request = ({"model": model} if model else {}) | parameters | rendered.request
    data = to_bytes(_short_first(request)) + b"\n"
    return Exported(data, losses, file_name(session, SUFFIX))


def _short_first(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request with its long values last: readers detect a file by its start."""
    long = [key for key, value in request.items() if len(to_bytes(value)) > LONG_BYTES]
    order = [key for key in request if key not in long]
    listed = [key for key in long if key in MESSAGE_LISTS]
    order += [*listed, *(key for key in long if key not in listed)]
    return {key: request[key] for key in order}


def kept_tools(session: ExportSession, schemas: Sequence[Any]) -> int:
    """Return how many of the session's tools the schemas include; tools without a name are compared as JSON."""
    there = Counter(name for schema in schemas for name in tool_names(schema))
    kept = 0
    for tool in session.tools:
        names = tool_names(tool)
        if all(there[name] for name in names):
            there.subtract(names)
            kept += 1
    return kept


def tool_names(schema: Any) -> list[str]:
    """Return the names of a schema's tools; for one without a name its JSON."""
    if not isinstance(schema, dict):
        return [json.dumps(schema)]
    declared = schema.get("functionDeclarations")
    if isinstance(declared, list):
        return [name for each in declared for name in tool_names(each)]
    inner = next(
        (schema[key] for key in ("function", "custom") if isinstance(schema.get(key), dict)), schema
    )
    name = inner.get("name")
    return [name] if isinstance(name, str) else [json.dumps(schema, sort_keys=True)]
