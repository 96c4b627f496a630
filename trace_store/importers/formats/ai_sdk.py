"""Vercel AI SDK: messages of its user interface, and those that it sends to models.

A message of the user interface has the parts of all steps of an answer; a call is one part with its result. Each step
becomes an assistant message and a message with its results. Messages to models have blocks of types `tool-call` and
`tool-result`. Parts that no model is sent, such as sources and data, become opaque parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import (
    image_from_url,
    opaque,
    planned_message,
    storable_name,
    text_parts,
    time_of,
    unreadable_message,
)
from trace_store.importers.json_records import ROOT, compact
from trace_store.importers.sniff import file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import DocumentReader, Event, Turn
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "ai-sdk"
SUFFIXES = (".json", ".jsonl")
LISTS = (ROOT, "messages")
MAXIMUM_PARTS = 10_000
_ROLES = ("assistant", "data", "system", "tool", "user")  # not a set: a damaged value may be a list
_BLOCKS = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response")
_SESSIONS = ("chatId", "id", "sessionId", "session_id")
_SIGNATURES = {"anthropic": "signature", "google": "thoughtSignature", "vertex": "thoughtSignature"}
_NO_OUTPUT = object()


class AiSdkReader(DocumentReader):
    """Reader of one chat.

    State: `count`, the number of messages.
    """

    AGENT = NAME
    LABELS = ("role", "type")
    LISTS = LISTS

    def begin(self, fields: Mapping[str, Any]) -> None:
        self._name_session(fields)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if "chatId" in data and not self.state.get("session") and "count" not in self.state:
            self._name_session({"chatId": data["chatId"]})
        self.state["count"] = number = self.state.get("count", 0) + 1
        role = data.get("role")
        if role not in _ROLES:
            if "role" in data:
                yield Turn((planned_message(unreadable_message("user", data)),))
            return
        metadata = data.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        time = time_of(data.get("createdAt", metadata.get("createdAt")))
        model = storable_name(metadata.get("model"))
        for at, message in enumerate(_messages(data, str(role))):
            if message.role == "assistant" and model:
                message = message._replace(model=model)
            author = {"assistant": message.model, "user": "user"}.get(message.role, "")
            # A step is a round of its own: its results follow its calls.
            group = f"results-{number}-{at}" if message.role == "tool" else ""
            yield Turn((message,), time=time, author=author, group=group)

    def _name_session(self, fields: Mapping[str, Any]) -> None:
        names = (storable_name(fields.get(key)) for key in _SESSIONS)
        self.state["session"] = next((name for name in names if name), "")


def _messages(data: Mapping[str, Any], role: str) -> Iterator[PlannedMessage]:
    """Yield the messages of a record: one, or two for each step of an answer."""
    parts, content = data.get("parts"), data.get("content")
    if isinstance(parts, list) and parts:
        forms: Sequence[Any] = _flat(parts[:MAXIMUM_PARTS])
    else:
        blocks = content if isinstance(content, list) else []
        forms = blocks[:MAXIMUM_PARTS] or [{"type": "text", "text": content}]
        calls = data.get("toolInvocations")
        forms = [*(calls if isinstance(calls, list) else []), *forms]
    if role == "tool":
        results = tuple(part for form in forms for part in _results(form) or _parts(form))
        if results:
            yield PlannedMessage("tool", results)
        return
    attached = data.get("experimental_attachments", data.get("attachments"))
    more = tuple(map(_attachment, attached)) if isinstance(attached, list) else ()
    if role != "assistant":
        said = (*(part for form in forms for part in _parts(form)), *more)
        if said:
            kind = "instruction" if role in ("system", "data") else ""
            yield PlannedMessage("user" if role == "data" else role, said, kind=kind)
        return
    yield from _steps(forms)


def _flat(parts: Sequence[Any]) -> list[Any]:
    """Return parts with the calls of older builds unwrapped."""
    return [
        part["toolInvocation"]
        if isinstance(part, dict) and isinstance(part.get("toolInvocation"), dict)
        else part
        for part in parts
    ]


def _steps(forms: Sequence[Any]) -> Iterator[PlannedMessage]:
    """Yield the steps of an answer: what the model said, then the results of its calls."""
    said: list[Part] = []
    results: list[Part] = []
    shown: list[Part] = []  # before anything that a model is sent
    for form in forms:
        is_call = _call(form) is not None or bool(_results(form))
        # Text after results was written by another step.
        if _is_mark(form) or (results and not is_call and not _is_only_shown(form)):
            yield from _step(said, results)
            said, results = [], []
        if not _is_only_shown(form):
            said += [*shown, *_parts(form)]
            shown = []
        elif said:
            said += _parts(form)
        else:
            shown += _parts(form)
        results += _results(form)
    yield from _step(said, results)


def _step(said: Sequence[Part], results: Sequence[Part]) -> Iterator[PlannedMessage]:
    if said:
        yield PlannedMessage("assistant", tuple(said))
    if results:
        yield PlannedMessage("tool", tuple(results))


def _is_only_shown(form: Any) -> bool:
    """Return True for what a user is shown beside an answer: alone, it is no message."""
    type_ = form.get("type") if isinstance(form, dict) else None
    return isinstance(type_, str) and type_.startswith(("source-", "data-"))


def _is_mark(form: Any) -> bool:
    return isinstance(form, dict) and form.get("type") == "step-start"


def _call(form: Any) -> ToolCall | None:
    """Return the call of a part, in the form of any version."""
    if not isinstance(form, dict) or form.get("type") == "tool-result":
        return None
    call, name = storable_name(form.get("toolCallId")), form.get("toolName")
    type_ = form.get("type", "tool-invocation")
    if name is None and isinstance(type_, str) and type_.startswith("tool-"):
        name = type_.removeprefix("tool-")
    name = storable_name(name)
    if not call or not name or type_ in ("tool-approval-request", "tool-approval-response"):
        return None
    arguments = form.get("input", form.get("args", form.get("rawInput", {})))
    whole = arguments if isinstance(arguments, str) else compact(arguments)
    return ToolCall(call, name, whole)


def _results(form: Any) -> list[Part]:
    """Return the result that a part has."""
    call = storable_name(form.get("toolCallId")) if isinstance(form, dict) else ""
    if not call or form.get("providerExecuted") is True:
        return []
    failed = form.get("isError") is True
    output = form.get("output", form.get("result", _NO_OUTPUT))
    error = form.get("errorText")
    if isinstance(error, str):
        return [ToolResult(call, text_parts(error), True)]
    if output is _NO_OUTPUT or form.get("preliminary") is True:
        return []
    if isinstance(output, dict) and isinstance(output.get("type"), str) and "value" in output:
        failed = failed or output["type"].startswith("error")
        output = output["value"]
    return [ToolResult(call, _output(output), failed)]


def _output(output: Any) -> tuple[Part, ...]:
    if output is None or isinstance(output, str):
        return text_parts(output)
    blocks = output if isinstance(output, list) else []
    if blocks and all(isinstance(block, dict) and "type" in block for block in blocks):
        return tuple(part for block in blocks[:MAXIMUM_PARTS] for part in _parts(block))
    return (Text(compact(output)),)


def _parts(form: Any) -> list[Part]:
    """Return what a part says; a call without its result."""
    if isinstance(form, str):
        return [*text_parts(form)]
    if not isinstance(form, dict):
        return [] if form is None else [opaque(NAME, form)]
    type_, text = form.get("type"), form.get("text")
    if type_ == "step-start" or (type_ == "text" and text in (None, "")):
        return []
    if type_ == "text" and isinstance(text, str):
        return [Text(text)]
    if type_ == "reasoning":
        return _thought(form)
    call = _call(form)
    if call is not None:
        own = form.get("providerExecuted") is True
        return [opaque(NAME, form)] if own else [call]
    if type_ in ("file", "image", "media"):
        return [_file(form)]
    return [opaque(NAME, form)]


def _thought(form: Mapping[str, Any]) -> list[Part]:
    text = form.get("text", form.get("reasoning"))
    if not isinstance(text, str):
        return [opaque(NAME, form)]
    signature = form.get("signature")
    for key in ("providerOptions", "providerMetadata"):
        options = form.get(key)
        for provider, name in _SIGNATURES.items():
            given = options.get(provider) if isinstance(options, dict) else None
            if isinstance(given, dict) and isinstance(given.get(name), str):
                signature = given[name]
    signature = signature if isinstance(signature, str) and signature else None
    return [Reasoning(text, signature)] if text or signature else []


def _file(form: Mapping[str, Any]) -> Part:
    """Return an image; other files become opaque parts."""
    media = form.get("mediaType", form.get("mimeType", form.get("contentType")))
    given = next(
        (form[key] for key in ("url", "image", "data") if isinstance(form.get(key), str)), ""
    )
    is_image = str(media).startswith("image/") or form.get("type") == "image"
    if given and is_image:
        if given.startswith(("data:", "http://", "https://")):
            return image_from_url(given)
        image = image_from_url(f"data:{media or 'image/png'};base64,{given}")
        if image.url is None:
            return image
    return opaque(NAME, form)


def _attachment(form: Any) -> Part:
    return _file(form) if isinstance(form, dict) else opaque(NAME, form)


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are messages of the SDK."""
    shape = file_shape(head)
    held = shape.single("messages").get("messages", shape.values)
    forms = [form for form in held if isinstance(form, dict)]
    messages = [form for form in forms if form.get("role") in _ROLES]
    return len(messages) * 2 > len(forms) and any(map(_has_mark, messages))


def _is_document(head: bytes) -> bool:
    shape = file_shape(head)
    return shape.is_document or bool(shape.single("messages"))


def _has_mark(form: Mapping[str, Any]) -> bool:
    if isinstance(form.get("toolInvocations"), list):
        return True
    parts, content = form.get("parts"), form.get("content")
    if isinstance(parts, list) and isinstance(form.get("id"), str):
        return any(map(_is_ui_part, parts))
    blocks = content if isinstance(content, list) else []
    return any(
        isinstance(block, dict) and block.get("type") in _BLOCKS and "toolCallId" in block
        for block in blocks
    )


def _is_ui_part(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return False
    type_: str = part["type"]
    if type_.startswith(("source-", "data-")) or type_ in ("step-start", "tool-invocation"):
        return True
    if type_ == "file":
        return "mediaType" in part and "url" in part
    if "toolCallId" in part:
        return type_ == "dynamic-tool" or type_.startswith("tool-")
    return type_ in ("reasoning", "text") and part.get("state") in ("done", "streaming")


FORMAT = TurnFormat(
    NAME,
    SUFFIXES,
    recognises,
    AiSdkReader,
    reads_document=_is_document,
)
