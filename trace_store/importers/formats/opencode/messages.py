"""Messages of opencode, split into steps at each request to the model.

Invariant: pure, and never fails. A call and its result are one part and are separated. What opencode does not send
to a model is not imported.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from trace_store.base.frozen import field, value
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import image_from_url, opaque, storable_name, usage_counts
from trace_store.importers.json_records import compact
from trace_store.objects.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult

NAME = "opencode"
API_ERROR = "api-error"
"""Label of a failed answer, which is not sent to a model."""

COMPACTED_TEXT = "What did we do so far?"
"""Text sent in place of the request for a summary."""
SUBTASK_TEXT = "The following tool was executed by the user"
"""Text sent in place of a delegation to another agent."""

MAXIMUM_PARTS = 10_000
"""Maximum number of parts in a message; a container in a commit has at most 65,536 elements."""

_ABORTED = "MessageAbortedError"
_SHOWN_AS_TEXT = ("text/plain", "application/x-directory")
_SIGNATURES = ("signature", "reasoningEncryptedContent", "thoughtSignature")

Map = Mapping[str, Any]


@value
class MessageStep:
    """Content between two requests to the model; all of a user message.

    Attributes:
        messages: the messages; empty if no part has content.
        parts: numbers of the parts with content.
        author: author without the format prefix.
        usage: usage report in stored form.
        agents: session ids of subagents started by its calls.
        cleared: (time in milliseconds since the epoch, call id) of cleared results.
    """

    messages: tuple[PlannedMessage, ...] = ()
    parts: tuple[int, ...] = ()
    author: str = ""
    usage: Mapping[str, int | str] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    cleared: tuple[tuple[Any, str], ...] = ()


def steps_of(info: Map, parts: Sequence[Any]) -> list[MessageStep]:
    """Return the steps of a message that have content."""
    if len(parts) > MAXIMUM_PARTS:
        parts = parts[:MAXIMUM_PARTS]
    if info.get("role") == "user":
        steps = [_of_user(parts)]
    elif info.get("role") == "assistant":
        cuts = [n for n, part in enumerate(parts) if _type(part) == "step-start"]
        begins = [0, *(n for n in cuts if n)]
        ends = [*begins[1:], len(parts)]
        spans = list(zip(begins, ends, strict=True))
        steps = [_of_model(info, parts, *span, alone=len(spans) == 1) for span in spans]
    else:
        steps = []
    return [step for step in steps if step.messages]


def _of_user(parts: Sequence[Any]) -> MessageStep:
    has_file_text = any(_type(part) == "text" and part.get("synthetic") is True for part in parts)
    shown: list[Part] = []
    numbers: list[int] = []
    typed = False
    for number, part in enumerate(parts):
        said = tuple(_user_parts(part, has_file_text=has_file_text))
        if said:
            shown += said
            numbers.append(number)
            typed = typed or (part.get("synthetic") is not True and part["type"] != "compaction")
    messages = (PlannedMessage("user", tuple(shown)),) if shown else ()
    return MessageStep(messages, tuple(numbers), "user" if typed else "")


def _user_parts(part: Any, *, has_file_text: bool) -> Iterator[Part]:
    """Yield the parts that the model sees; `has_file_text`: synthetic text has the files' text."""
    kind = _type(part)
    if kind == "text" and not part.get("ignored"):
        yield from _text(part.get("text"))
    elif kind == "compaction":
        yield Text(COMPACTED_TEXT)
    elif kind == "subtask":
        yield Text(SUBTASK_TEXT)
    elif kind == "file" and part.get("mime") not in _SHOWN_AS_TEXT:
        yield _file(part)
    elif kind == "file" and not has_file_text:
        yield from _text(_text_of_url(part.get("url")))


def _of_model(info: Map, parts: Sequence[Any], begin: int, end: int, *, alone: bool) -> MessageStep:
    model = storable_name(info.get("modelID"))
    said: list[Part] = []
    results: list[Part] = []
    numbers: list[int] = []
    agents: list[str] = []
    cleared: list[tuple[Any, str]] = []
    tokens = info.get("tokens") if alone else None
    for number in range(begin, end):
        part = parts[number]
        kind = _type(part)
        if kind == "step-finish":
            tokens = part.get("tokens") or tokens
            continue
        own_parts = tuple(_model_parts(part))
        if not own_parts:
            continue
        numbers.append(number)
        said += own_parts
        call = own_parts[-1]
        if kind == "tool" and isinstance(call, ToolCall):
            results += _result(part["state"], call.id)
            agents += _agents(part)
            when = _inner(part["state"], "time").get("compacted")
            if when and part["state"].get("status") == "completed":
                cleared.append((when, call.id))
    messages = [PlannedMessage("assistant", tuple(said), model=model)] if said else []
    if results:
        messages.append(PlannedMessage("tool", tuple(results)))
    if _has_failed(info, parts):
        messages = [
            PlannedMessage(m.role, m.parts, model=m.model, labels=(API_ERROR,), skipped=True)
            for m in messages
        ]
    usage = usage_counts(tokens, model)
    reported = any(isinstance(count, int) and count for count in usage.values())
    return MessageStep(
        tuple(messages),
        tuple(numbers),
        model,
        usage if reported else {},
        tuple(dict.fromkeys(agents)),
        tuple(cleared),
    )


def _model_parts(part: Any) -> Iterator[Part]:
    kind = _type(part)
    if kind == "text":
        yield from _text(part.get("text"))
    elif kind == "reasoning" and isinstance(part.get("text"), str):
        yield from _reasoning(part["text"], part.get("metadata"))
    elif kind == "tool":
        yield from _call(part)


def _reasoning(text: str, metadata: Any) -> Iterator[Part]:
    """Yield reasoning with its signature, which is stored under the provider's name."""
    for of_provider in metadata.values() if isinstance(metadata, dict) else ():
        if not isinstance(of_provider, dict):
            continue
        if isinstance(of_provider.get("redactedData"), str):
            block = {"type": "redacted_thinking", "data": of_provider["redactedData"]}
            yield opaque("anthropic", block)
            return
        for name in _SIGNATURES:
            signature = of_provider.get(name)
            if isinstance(signature, str) and signature:
                yield Reasoning(text, signature)
                return
    if text:
        yield Reasoning(text)


def _call(part: Map) -> Iterator[Part]:
    id_, name = storable_name(part.get("callID")), storable_name(part.get("tool"))
    state = part.get("state")
    if not id_ or not name or not isinstance(state, dict):
        yield opaque(NAME, part)
        return
    signature = _inner(_inner(part, "metadata"), "google").get("thoughtSignature")
    if isinstance(signature, str) and signature:
        yield Reasoning("", signature)
    raw, given = state.get("raw"), state.get("input")
    # Unfinished arguments exist as text only.
    if isinstance(raw, str) and raw and not given:
        yield ToolCall(id_, name, raw)
    else:
        yield ToolCall(id_, name, compact({} if given is None else given))


def _result(state: Map, call_id: str) -> Iterator[ToolResult]:
    """Yield the result of a call, if there is one."""
    status = state.get("status")
    metadata = _inner(state, "metadata")
    if status == "completed":
        attached = state.get("attachments")
        files = attached[:MAXIMUM_PARTS] if isinstance(attached, list) else []
        content = [*_output(state.get("output")), *(_file(file) for file in files)]
        yield ToolResult(call_id, content)
    elif status == "error" and metadata.get("interrupted") is True and "output" in metadata:
        yield ToolResult(call_id, _output(metadata["output"]))
    elif status == "error":
        yield ToolResult(call_id, _output(state.get("error")), is_error=True)


def _output(value: Any) -> list[Part]:
    if value is None or value == "":
        return []
    return [Text(value if isinstance(value, str) else compact(value))]


def _file(file: Any) -> Part:
    """Return an image; other files become opaque."""
    if not isinstance(file, dict):
        return opaque(NAME, file)
    media, url = storable_name(file.get("mime")), file.get("url")
    if media.startswith("image/") and isinstance(url, str):
        image = image_from_url(url)
        if image.data is not None:
            return Image(image.media_type, image.data)
        if url.startswith(("https://", "http://")):
            return image
    return opaque(NAME, file)


def _text_of_url(url: Any) -> str:
    """Return the text of a data URL; "" for others."""
    if not isinstance(url, str) or not url.startswith("data:") or "," not in url:
        return ""
    head, _, body = url.partition(",")
    try:
        if head.endswith(";base64"):
            return base64.b64decode(body, validate=True).decode()
        return unquote_to_bytes(body).decode()
    except (binascii.Error, ValueError):
        return ""


def _agents(part: Map) -> list[str]:
    metadata = _inner(_inner(part, "state"), "metadata")
    session = storable_name(metadata.get("sessionId")) or storable_name(metadata.get("sessionID"))
    return [session] if session and part.get("tool") == "task" else []


def _has_failed(info: Map, parts: Sequence[Any]) -> bool:
    """Return True if an answer failed, so that models do not see it.

    An aborted answer with content counts.
    """
    error = info.get("error")
    if not error:
        return False
    aborted = isinstance(error, dict) and error.get("name") == _ABORTED
    spoke = any(_type(part) not in ("step-start", "reasoning") for part in parts)
    return not (aborted and spoke)


def _text(value: Any) -> Iterator[Text]:
    if isinstance(value, str) and value:
        yield Text(value)


def _inner(value: Map, key: str) -> Map:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _type(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else ""
