"""Messages in JSON or JSONL, in any known form.

Invariant: the form of each message is detected by itself, never by its neighbours, so one file may mix forms.

- A message with "parts" is lossless JSON (`lossless.py`), or a Gemini content.
- An object with a "type" and no "role" is an item of OpenAI's Responses or a LangChain message.
- Any other has a "role" and "content", as OpenAI and Anthropic write them.
- Input is one message, a list of them, a request or a response of one of these providers, or one such value on
  each line. A system text outside the messages ("system", "instructions", "systemInstruction") becomes the first
  message; from a response, the model's message is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from trace_store.errors import InvalidMessageError, UnreadableInputError
from trace_store.objects.message import Message
from trace_store.objects.parts import Text
from trace_store.providers.chat import content_parts, message_from_chat
from trace_store.providers.fields import mapping, wrong
from trace_store.providers.foreign import familiar_message
from trace_store.providers.gemini import GeminiCalls, message_from_gemini
from trace_store.providers.langchain import is_langchain, message_from_langchain
from trace_store.providers.lossless import FORMAT, parse, parse_message
from trace_store.providers.openai_responses import place_items
from trace_store.providers.wire import parse_json

# Keys of responses, and keys of messages and items.
_SAID = frozenset({"candidates", "choices", "output"})
_MARKS = frozenset({"parts", "role", "type"})
_RESPONSES_BLOCKS = frozenset({"input_file", "input_image", "input_text", "output_text"})


class Dumped(Protocol):
    """An object of a provider's package that returns its fields as JSON values."""

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


Given = Message | Mapping[str, Any] | Dumped
"""A message in any form: Trace's, or a provider's message, item, or whole response."""


def parse_messages(given: str | Iterable[Given]) -> list[Message]:
    """Return the messages in a text, at least one, or in values: dictionaries and objects of providers.

    Raises:
        UnreadableInputError: it is not JSON or JSONL, or empty; `.line` and `.column` count from one.
        InvalidMessageError: a message has an unknown form or role.
        InvalidInputError: lossless JSON is damaged; `.where` names the place.
    """
    if not isinstance(given, str):
        return read_messages(given)
    reader = _Reader()
    for value in _values(given.removeprefix("\ufeff")):
        reader.document(value)
    messages = reader.finish()
    if not messages:
        raise UnreadableInputError("the input has no message", line=1, column=1)
    return messages


def read_messages(values: Iterable[Given]) -> list[Message]:
    """Return the messages of values: messages, or values in a provider's form.

    Several items of a Responses output may be one message. From a response, the model's message is taken.

    Raises:
        InvalidMessageError: a value has no known form.
    """
    given = list(values)
    if all(isinstance(value, Message) for value in given):
        return given  # type: ignore[return-value]
    reader = _Reader()
    for number, value in enumerate(given, 1):
        form = value if isinstance(value, Message) else _plain(value)
        if form is None:
            raise wrong(f"message {number}", f"{type(value).__name__} is not a message")
        reader.given(form)
    return reader.finish()


def _plain(value: object) -> dict[str, Any] | None:
    """Return a mapping, or the fields of a package's object as JSON values; else None."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = None if isinstance(value, type) else getattr(value, "model_dump", None)
    found = dump(mode="json") if callable(dump) else None
    return found if isinstance(found, dict) else None


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON value of a whole text, or of each of its lines."""
    try:
        yield _load(text, 1)
        return
    except UnreadableInputError as error:
        whole = error
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) < 2:
        raise whole
    try:
        first = _load(lines[0][1], lines[0][0])
    except UnreadableInputError:
        raise whole from None
    yield first
    for number, line in lines[1:]:
        yield _load(line, number)


def _load(text: str, line: int) -> Any:
    if not text.strip():
        raise UnreadableInputError("the input is empty", line=1, column=1)
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise UnreadableInputError(
            f"line {at}, column {error.colno}: not JSON: {error.msg[:1].lower()}{error.msg[1:]}",
            line=at,
            column=error.colno,
        ) from None
    except ValueError as error:
        raise UnreadableInputError(
            f"line {line}: not JSON that can be kept: {error}", line=line, column=1
        ) from None


class _Reader:
    """Reads values one by one; holds items of Responses until a message is complete."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._items: list[Any] = []
        self._model = ""
        self._calls = GeminiCalls()
        self._seen = 0
        self._first = 1

    def finish(self) -> list[Message]:
        """Return all messages."""
        self._flush()
        return self._messages

    def document(self, value: Any) -> None:
        """Read a message, a list of them, a request or a response."""
        if isinstance(value, list):
            for each in value:
                self.element(each)
        elif isinstance(value, dict) and value.get("format") == FORMAT and "messages" in value:
            self._add(*parse(value))
        elif isinstance(value, dict):
            self._object(value)
        else:
            self.element(value)

    def _object(self, value: dict[str, Any]) -> None:
        if "messages" in value:
            self._system(value.get("system"), "system")
            for each in _list(value, "messages"):
                self.element(each)
        elif isinstance(value.get("conversations"), list):
            for each in value["conversations"]:
                self.element(each)
        elif isinstance(value.get("contents"), list | dict):
            config = value.get("config")
            beside = config if isinstance(config, dict) else {}
            names = ("systemInstruction", "system_instruction")
            self._instruction(
                next((v for o in (value, beside) for k in names if (v := o.get(k))), None)
            )
            contents = value["contents"]
            for each in contents if isinstance(contents, list) else [contents]:
                self._content(each, "")
        elif "candidates" in value:
            model = value.get("modelVersion") or value.get("model_version") or ""
            for candidate in _list(value, "candidates")[:1]:
                where = "candidates[0]"
                self._content(mapping(candidate, where, "a candidate").get("content"), str(model))
        elif "choices" in value:
            for choice in _list(value, "choices")[:1]:
                said = mapping(choice, "choices[0]", "a choice").get("message")
                said = mapping(said, "choices[0]", "a message")
                beside = {key: value[key] for key in ("id", "model") if value.get(key)}
                self._add(message_from_chat({**beside, **said}, "choices[0]"))
        elif "role" in value or "type" in value or is_langchain(value):
            self.element(value)
        elif "input" in value:
            self._system(value.get("instructions"), "instructions")
            self._input(value["input"], "")
        elif "output" in value:
            model = value.get("model")
            self._input(_list(value, "output"), model if isinstance(model, str) else "")
        else:
            self.element(value)

    def given(self, value: Any) -> None:
        """Read a message or a response; an Anthropic response is a message itself."""
        if isinstance(value, dict) and not _SAID.isdisjoint(value) and _MARKS.isdisjoint(value):
            self._object(value)
        else:
            self.element(value)

    def element(self, value: Any) -> None:
        """Read one message in any form."""
        self._seen += 1
        where = f"message {self._seen}"
        if isinstance(value, Message):
            self._add(value)
            return
        if not isinstance(value, dict):
            raise wrong(where, "a message must be an object")
        value = familiar_message(value) or value
        if _is_item(value):
            self._item(value, "")
        elif is_langchain(value):
            self._add(message_from_langchain(value, where))
        elif "parts" not in value:
            self._add(message_from_chat(value, where))
        elif _is_content(value):
            self._seen -= 1
            self._content(value, "")
        else:
            self._add(parse_message(value, where))

    def _system(self, value: Any, where: str) -> None:
        if value:
            self._seen += 1
            self._add(Message("system", content_parts(value, where)))

    def _instruction(self, value: Any) -> None:
        if isinstance(value, str):
            self._system(value, "systemInstruction")
        elif value:
            form = value if isinstance(value, dict) else {"parts": value}
            self._content({**form, "role": "system"}, "")

    def _input(self, value: Any, model: str) -> None:
        if isinstance(value, str):
            self._add(Message("user", [Text(value)]))
            return
        if not isinstance(value, list):
            raise InvalidMessageError("input must be text or a list")
        for each in value:
            self._seen += 1
            self._item(each, model)

    def _item(self, value: Any, model: str) -> None:
        if model != self._model:
            self._flush()
        if not self._items:
            self._first = self._seen
        self._model = model
        self._items.append(value)

    def _content(self, value: Any, model: str) -> None:
        self._seen += 1
        where = f"message {self._seen}"
        found = message_from_gemini(
            mapping(value, where, "a content"), where, model=model, calls=self._calls
        )
        self._add(found)

    def _add(self, *messages: Message) -> None:
        self._flush()
        self._messages += messages

    def _flush(self) -> None:
        items, self._items = self._items, []
        if items:
            first = self._first
            placed = place_items(items, lambda n: f"message {first + n}", model=self._model)
            self._messages += [each.message for each in placed]


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value[name]
    if not isinstance(found, list):
        raise InvalidMessageError(f"{name} must be a list")
    return found


def _is_item(value: Mapping[str, Any]) -> bool:
    """Return True if an object is unambiguously an item of Responses."""
    type_ = value.get("type")
    if type_ == "message":
        content = value.get("content")
        blocks = content if isinstance(content, list) else []
        types = {block.get("type") for block in blocks if isinstance(block, dict)}
        return "phase" in value or not types.isdisjoint(_RESPONSES_BLOCKS)
    return isinstance(type_, str) and "role" not in value and not is_langchain(value)


def _is_content(value: Mapping[str, Any]) -> bool:
    """Return True for a Gemini content; in lossless JSON all parts have a type."""
    parts = value["parts"]
    if value.get("role") == "model":
        return True
    return (
        isinstance(parts, list)
        and bool(parts)
        and not any(isinstance(part, dict) and "type" in part for part in parts)
    )
