"""OpenAI's chat completions API, which nearly every model server offers."""

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

_OPENAI_URL = "https://api.openai.com"
_FILTERED = "content_filter"


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
            "".join(self._texts), self._model, counted(self._usage), _stop(self._stop)
        )


class Chat(Form):
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
        return Completion(content, text(answer, "model"), usage, _stop(stop))


def _stop(reason: str) -> str:
    return LENGTH if reason == "length" else DONE
