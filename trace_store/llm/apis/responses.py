"""OpenAI's Responses API."""

from __future__ import annotations

from trace_store import errors
from trace_store.llm.apis.form import (
    Form,
    StreamReader,
    counted,
    failure_of,
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

_ENDS = ("response.completed", "response.incomplete", "response.failed")


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


class Responses(Form):
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
