"""Anthropic's Messages API."""

from __future__ import annotations

from trace_store.llm.apis.form import (
    Form,
    StreamReader,
    counted,
    inner,
    items,
    nonsense,
    refusal,
    text,
)
from trace_store.llm.contract import DONE, LENGTH, Completion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.llm.contract import Prompt

VERSION = "2023-06-01"
MAXIMUM_TOKENS = 8192
"""The limit if a prompt has none, because this API requires one."""
_CUT = ("max_tokens", "model_context_window_exceeded")


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
        told = inner(holder, "usage")
        self._usage |= {name: each for name, each in told.items() if each is not None}


class Anthropic(Form):
    """Uses `v1/messages`."""

    __slots__ = ()
    stream_reader = _AnthropicStreamReader

    def endpoint(self, url: str) -> str:
        return f"{url}/messages" if url.endswith("/v1") else f"{url}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": VERSION}
        return {**version, "x-api-key": key} if key else version

    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": name,
            "max_tokens": prompt.maximum_tokens or MAXIMUM_TOKENS,
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
