"""Parser of Gemini contents, with camelCase (REST) or snake_case (Python) names.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from trace_store.providers.gemini import PROVIDER
from trace_store.providers.media import gemini_media_type
from trace_store.providers.validity import SKIPS_THE_CHECK

_ROLES = {"model": "assistant", "user": "user", "function": "tool", "system": "system"}


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
        told = gemini_media_type(file["fileUri"])
        if (told or "").startswith("image/") and file.get("mimeType") in (None, told):
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
