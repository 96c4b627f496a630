"""mini-swe-agent: `.traj.json` files, one JSON document per run.

Its messages have OpenAI's Chat or Responses format, each with `extra`: the program's data and the original response,
which has usage and model. Old files are just the list of messages. The outcome of the run is the metadata `run` of
the last commit, as for SWE-agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.errors import InvalidInputError
from trace_store.importers.contract import Skip
from trace_store.importers.convert import (
    is_storable,
    planned_message,
    speaker,
    storable_name,
    time_of,
    usage_counts,
)
from trace_store.importers.formats.chats.reader import NO_FIELDS, message_of, response_fields
from trace_store.importers.formats.swe_agent import RUN_KEY, model_of, run_facts
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import ROOT
from trace_store.importers.sniff import file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import DocumentReader, Event, Turn
from trace_store.objects.message import Message
from trace_store.providers.gemini import GeminiCalls
from trace_store.providers.openai_responses import messages_from_responses
from trace_store.transcripts.sources import Record

NAME = "mini-swe-agent"
SUFFIXES = (".traj.json",)

_MARKS = ("mswea_bash_command", "<returncode>", "MINI_SWE_AGENT_FINAL_OUTPUT")
_EXTRAS = frozenset({"actions", "returncode", "raw_output", "interrupt_type"})


class MiniReader(DocumentReader):
    """Reader of one `.traj.json`."""

    AGENT = NAME
    LISTS = ("messages", ROOT)

    def __init__(self, name: str) -> None:
        super().__init__(name.removesuffix(".traj"))
        self._model = ""
        self._run: dict[str, Any] = {}
        self._last: Record | None = None

    def begin(self, fields: Mapping[str, Any]) -> None:
        info = fields.get("info")
        self._run = run_facts(info)
        self._model = model_of(info, "config", "model", "model_name")
        self.state = {"session": storable_name(fields.get("instance_id"))}

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        elements = list(super().records(line))
        self._last = next(
            (
                each
                for each in reversed(elements)
                if isinstance(each, Record) and _has_message(each.data)
            ),
            None,
        )
        yield from elements

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        messages = list(_messages_of(data))
        extra = _dict(data.get("extra"))
        response = data if data.get("object") == "response" else _dict(extra.get("response"))
        response_info = response_fields(response)
        for number, message in enumerate(messages):
            is_output = message.role == "user" and self.state.get("before") == "assistant"
            self.state["before"] = message.role
            by_model = message.role == "assistant"
            planned = planned_message(
                message, model=(response_info.model or self._model) if by_model else ""
            )
            last = record is self._last and number == len(messages) - 1
            yield Turn(
                (planned._replace(kind="tool_io" if is_output else planned.kind),),
                time=time_of(extra.get("timestamp")),
                author=planned.model if by_model else "" if is_output else speaker(message),
                usage=usage_counts(response_info.usage, planned.model)
                if by_model and not number
                else {},
                meta={RUN_KEY: self._run} if last and self._run else {},
            )

    def label(self, record: Record) -> str:
        data = record.data
        names = (data.get("role"), data.get("type"), data.get("object"))
        return next((name[:100] for name in names if isinstance(name, str)), "untyped")


def _has_message(data: Mapping[str, Any]) -> bool:
    return any(True for _ in _messages_of(data))


def _messages_of(data: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the messages of an element: one message, or those of a response."""
    output = data.get("output")
    if data.get("object") == "response" and isinstance(output, list):
        yield from _response_messages(output)
        return
    form = {key: value for key, value in data.items() if key not in ("extra", "id")}
    message = message_of(form, GeminiCalls(), NO_FIELDS)
    if message is not None:
        yield message


def _response_messages(output: Sequence[Any]) -> list[Message]:
    """Return the messages of a response, skipping damaged ones."""
    try:
        messages = messages_from_responses(output)
    except (InvalidInputError, RecursionError):
        messages = [
            each for item in output if len(output) > 1 for each in _response_messages([item])
        ]
    return [message for message in messages if is_storable(message)]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a mini-swe-agent run."""
    values = file_shape(head).values
    first = values[0] if values else {}
    format_ = first.get("trajectory_format")
    if isinstance(format_, str) and format_.startswith(NAME):
        return True
    if "mini_version" in _dict(first.get("info")):
        return True
    messages = first.get("messages", values)
    listed = messages if isinstance(messages, Sequence) else ()
    forms = [form for form in listed if isinstance(form, dict)]
    if any(not _EXTRAS.isdisjoint(_dict(form.get("extra"))) for form in forms):
        return True
    texts = [form.get("content") for form in forms if form.get("role") in ("system", "user")]
    return any(isinstance(text, str) and mark in text for text in texts for mark in _MARKS)


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, MiniReader, reads_document=lambda head: True)
