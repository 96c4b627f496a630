"""Request formats for models: OpenAI's two and Anthropic's.

A format converts a prompt to the fields of a request, and an answer to a Completion; it opens no connection.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from trace_store import errors
from trace_store.context.usage import Usage, normalise_usage
from trace_store.llm.contract import DONE, LENGTH, Completion, Prompt

ANTHROPIC_VERSION = "2023-06-01"
ANTHROPIC_MAXIMUM_TOKENS = 8192
"""The limit if a prompt has none, because Anthropic requires one."""
_CUT = ("max_tokens", "model_context_window_exceeded")
_OPENAI_URL = "https://api.openai.com"
_FILTERED = "content_filter"
_ENDS = ("response.completed", "response.incomplete", "response.failed")
MAXIMUM_SAID = 200
RATE, CONTENT, KEY, REQUEST = "rate", "content", "key", "request"
_BUSY = ("overloaded", "rate_limit", "server_error", "timeout", "api_error", "slow_down")
_SPENT = ("insufficient_quota", "billing", "credit balance")


class StreamReader(ABC):
    """Builds a Completion from the events of a stream."""

    __slots__ = ()

    @abstractmethod
    def take(self, event: dict[str, Any]) -> str:
        """Return the text that an event adds.

        Raises:
            ModelError: the event reports an error or a refusal, or is malformed.
        """

    @abstractmethod
    def completion(self) -> Completion | None:
        """Return the completion; None while the answer is incomplete."""


class RequestFormat(ABC):
    """The request format of one API."""

    __slots__ = ()
    stream_reader: type[StreamReader]

    @abstractmethod
    def endpoint(self, url: str) -> str:
        """Return the URL for requests, given the base URL."""

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        return {"authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        """Return the fields of a request."""

    @abstractmethod
    def read(self, answer: dict[str, Any]) -> Completion:
        """Return the completion in a whole answer.

        Raises:
            ModelError: it reports an error or a refusal, or is malformed.
        """


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a JSON object.

    Raises:
        ModelNonsenseError: it is not one.
    """
    try:
        found = json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # includes invalid UTF-8
        found = None
    if not isinstance(found, dict):
        raise errors.ModelNonsenseError("the model's answer is not a JSON object")
    return found


def inner(fields: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object in a field; empty if it is absent or null.

    Raises:
        ModelNonsenseError: it is something else.
    """
    found = fields.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        nonsense(key)
    return found


def items(fields: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the list of objects in a field; raises as `inner`."""
    found = fields.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        nonsense(key)
    return found


def text(fields: dict[str, Any], key: str) -> str:
    """Return the text in a field, "" if it is absent or null; raises as `inner`."""
    found = fields.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        nonsense(key)
    return found


def nonsense(key: str) -> NoReturn:
    """Raise the error for a malformed field."""
    raise errors.ModelNonsenseError(f"the model's answer has no usable {key}", field=key)


def refusal(said: str) -> errors.ModelRefusedError:
    """Return the error for a model that refuses to answer."""
    more = f": {shortened(said)}" if said else ""
    return errors.ModelRefusedError(f"the model refuses to answer{more}", reason=CONTENT)


def counted(report: dict[str, Any]) -> Usage | None:
    """Return a usage report in normal form; None if there is none, or its form is unknown."""
    try:
        return normalise_usage(report) if report else None
    except errors.InvalidInputError:
        return None


def failure_of(report: object, status: int = 0) -> errors.ModelError:
    """Return the error that a server reported.

    Args:
        report: its `error`: fields, or a text.
        status: the status code; 0 if the error came within a stream.
    """
    fields = report if isinstance(report, dict) else {"message": report}
    kind = " ".join(str(fields.get(each) or "") for each in ("type", "code", "status"))
    said = shortened(str(fields.get("message") or kind or ""))
    more = f": {said}" if said else ""
    lowered = f"{kind} {said}".lower()
    spent = any(each in lowered for each in _SPENT)
    if status in (401, 403):
        return _refused(f"the model's server rejected the key ({status}){more}", KEY, status)
    if status == 429 or (not status and "rate_limit" in lowered):
        what = "the account is out of credit" if spent else "the model's server limits the rate"
        refused = _refused(f"{what} ({status or 'in its stream'}){more}", RATE, status)
        refused.data["retryable"] = not spent
        return refused
    if status in (408, 425) or status >= 500 or (not status and any(b in lowered for b in _BUSY)):
        return errors.ModelUnreachableError(
            f"the model's server failed ({status or 'in its stream'}){more}",
            status=status,
            retryable=True,
        )
    what = f" ({status})" if status else ""
    return _refused(f"the model's server rejected the request{what}{more}", REQUEST, status)


def shortened(said: str) -> str:
    """Return the start of a text on one line."""
    line = " ".join(said.split())
    return line if len(line) <= MAXIMUM_SAID else f"{line[:MAXIMUM_SAID]}…"


def _refused(message: str, reason: str, status: int) -> errors.ModelRefusedError:
    return errors.ModelRefusedError(message, reason=reason, status=status, retryable=False)


class _AnthropicStreamReader(StreamReader):
    __slots__ = ("_ended", "_model", "_stop", "_texts", "_usage")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._model = ""
        self._stop = ""
        self._ended = False
        self._usage: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> str:
        kind = text(event, "type")
        added = ""
        if kind == "message_start":
            message = inner(event, "message")
            self._model = text(message, "model")
            self._count(message)
        elif kind == "content_block_start":
            added = text(inner(event, "content_block"), "text")
        elif kind == "content_block_delta":
            delta = inner(event, "delta")
            added = text(delta, "text") if delta.get("type") == "text_delta" else ""
        elif kind == "message_delta":
            self._stop = text(inner(event, "delta"), "stop_reason") or self._stop
            self._count(event)
        elif kind == "message_stop":
            self._ended = True
        self._texts.append(added)
        return added

    def completion(self) -> Completion | None:
        if not self._ended and not self._stop:
            return None
        if self._stop == "refusal":
            raise refusal("")
        stop = LENGTH if self._stop in _CUT else DONE
        return Completion("".join(self._texts), self._model, counted(self._usage), stop)

    def _count(self, holder: dict[str, Any]) -> None:
        usage = inner(holder, "usage")
        self._usage |= {name: each for name, each in usage.items() if each is not None}


class Anthropic(RequestFormat):
    """Uses `v1/messages`."""

    __slots__ = ()
    stream_reader = _AnthropicStreamReader

    def endpoint(self, url: str) -> str:
        return f"{url}/messages" if url.endswith("/v1") else f"{url}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": ANTHROPIC_VERSION}
        return {**version, "x-api-key": key} if key else version

    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": name,
            "max_tokens": prompt.maximum_tokens or ANTHROPIC_MAXIMUM_TOKENS,
            "messages": [{"role": role, "content": said} for role, said in prompt.messages],
        }
        if prompt.system:
            fields["system"] = prompt.system
        return {**fields, "stream": True} if stream else fields

    def read(self, answer: dict[str, Any]) -> Completion:
        if answer.get("type") != "message" or answer.get("content") is None:
            nonsense("content")
        stop = text(answer, "stop_reason")
        said = "".join(
            text(part, "text") for part in items(answer, "content") if part.get("type") == "text"
        )
        if stop == "refusal":
            raise refusal(said)
        usage = counted(inner(answer, "usage"))
        return Completion(said, text(answer, "model"), usage, LENGTH if stop in _CUT else DONE)


class _ChatStreamReader(StreamReader):
    __slots__ = ("_model", "_refused", "_stop", "_texts", "_usage")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._model = ""
        self._stop = ""
        self._refused = ""
        self._usage: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> str:
        self._model = text(event, "model") or self._model
        self._usage = inner(event, "usage") or self._usage
        added = ""
        for choice in items(event, "choices"):
            if choice.get("index"):
                continue  # only one answer was requested
            delta = inner(choice, "delta")
            added += text(delta, "content")
            self._refused += text(delta, "refusal")
            self._stop = text(choice, "finish_reason") or self._stop
        self._texts.append(added)
        return added

    def completion(self) -> Completion | None:
        if not self._stop:
            return None
        if self._refused or self._stop == _FILTERED:
            raise refusal(self._refused)
        return Completion(
            "".join(self._texts), self._model, counted(self._usage), _stop_reason(self._stop)
        )


class Chat(RequestFormat):
    """Uses `chat/completions`."""

    __slots__ = ()
    stream_reader = _ChatStreamReader

    def endpoint(self, url: str) -> str:
        return f"{url}/chat/completions"

    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        system = [("system", prompt.system)] if prompt.system else []
        messages = [
            {"role": role, "content": content} for role, content in (*system, *prompt.messages)
        ]
        fields: dict[str, Any] = {"model": name, "messages": messages}
        if prompt.maximum_tokens:
            # OpenAI's newer models reject `max_tokens`; most other servers know nothing else.
            is_openai = url.startswith(_OPENAI_URL)
            fields["max_completion_tokens" if is_openai else "max_tokens"] = prompt.maximum_tokens
        if stream:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        return fields

    def read(self, answer: dict[str, Any]) -> Completion:
        choices = items(answer, "choices")
        if not choices:
            nonsense("choices")
        message, stop = inner(choices[0], "message"), text(choices[0], "finish_reason")
        refused = text(message, "refusal")
        if refused or stop == _FILTERED:
            raise refusal(refused)
        if message.get("content") is None:
            nonsense("content")
        content = message["content"]
        if isinstance(content, list):
            content = "".join(text(part, "text") for part in items(message, "content"))
        elif not isinstance(content, str):
            nonsense("content")
        usage = counted(inner(answer, "usage"))
        return Completion(content, text(answer, "model"), usage, _stop_reason(stop))


def _stop_reason(reason: str) -> str:
    return LENGTH if reason == "length" else DONE


class _ResponsesStreamReader(StreamReader):
    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> str:
        kind = text(event, "type")
        if kind == "error":
            raise failure_of(event)
        if kind in _ENDS:
            self._end = inner(event, "response")
        return text(event, "delta") if kind == "response.output_text.delta" else ""

    def completion(self) -> Completion | None:
        return None if self._end is None else Responses().read(self._end)


class Responses(RequestFormat):
    """Uses `responses`, and asks the vendor not to store anything."""

    __slots__ = ()
    stream_reader = _ResponsesStreamReader

    def endpoint(self, url: str) -> str:
        return f"{url}/responses"

    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        messages = [{"role": role, "content": said} for role, said in prompt.messages]
        fields: dict[str, Any] = {"model": name, "input": messages, "store": False}
        if prompt.system:
            fields["instructions"] = prompt.system
        if prompt.maximum_tokens:
            fields["max_output_tokens"] = prompt.maximum_tokens
        return {**fields, "stream": True} if stream else fields

    def read(self, answer: dict[str, Any]) -> Completion:
        status = text(answer, "status")
        why = text(inner(answer, "incomplete_details"), "reason")
        if status == "failed":
            raise failure_of(inner(answer, "error"))
        if why == "content_filter":
            raise refusal("")
        if status not in ("completed", "incomplete"):
            nonsense("status")
        parts = [
            part
            for item in items(answer, "output")
            if item.get("type") == "message"
            for part in items(item, "content")
        ]
        refused = "".join(text(part, "refusal") for part in parts if part.get("type") == "refusal")
        if refused:
            raise refusal(refused)
        said = [text(part, "text") for part in parts if part.get("type") == "output_text"]
        stop = LENGTH if status == "incomplete" else DONE
        if not said and stop == DONE:
            raise errors.ModelNonsenseError(
                "the model's answer has no usable output", field="output"
            )
        return Completion(
            "".join(said), text(answer, "model"), counted(inner(answer, "usage")), stop
        )


REQUEST_FORMATS: dict[str, type[RequestFormat]] = {
    "chat": Chat,
    "responses": Responses,
    "anthropic": Anthropic,
}
"""The formats by their name in settings."""
