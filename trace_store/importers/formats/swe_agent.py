"""SWE-agent: `.traj` files, one JSON document per run.

`history` is the conversation. `trajectory` repeats it by steps, with everything the model saw, and is stored as
source; without a history, the steps make the conversation. Outcome and cost of the whole run are the metadata `run`
of the last commit.

- A tool result names its calls in a list, `tool_call_ids`. Runs without tool calls have results as user messages.
- Messages of a demonstration get the label `demonstration`.
- Messages of another agent than the first are on a branch `agents/<name>`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.contract import PlannedMessage, Skip
from trace_store.importers.convert import (
    chat_message,
    planned_message,
    ref_component,
    speaker,
    storable_name,
    text_parts,
)
from trace_store.importers.input_files import InputLine, files_in
from trace_store.importers.sniff import file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import DocumentReader, Event, Switch, Turn
from trace_store.objects.message import Message
from trace_store.objects.parts import Part, Text, ToolResult
from trace_store.transcripts.sources import Record

NAME = "swe-agent"
SUFFIXES = (".traj",)
FOLDER = "trajectories"
DEMONSTRATION = "demonstration"
RUN_KEY = "run"
"""Metadata key: outcome and total cost of the run."""

_LARGEST = (1 << 63) - 1
_NO_MODELS = ("human", "human_thought", "instant_empty_submit", "replay")
"""Names of runs without a model."""


class SweAgentReader(DocumentReader):
    """Reader of one `.traj`."""

    AGENT = NAME
    LISTS = ("history", "trajectory")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._model = ""
        self._run: dict[str, Any] = {}
        self._last: Record | None = None

    def begin(self, fields: Mapping[str, Any]) -> None:
        self._run = run_facts(fields.get("info"))
        model = model_of(fields.get("replay_config"), "agent", "model", "name")
        self._model = "" if model in _NO_MODELS else model

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        elements = list(super().records(line))
        spoken = [each for each in elements if isinstance(each, Record) and "role" in each.data]
        steps = [each for each in elements if isinstance(each, Record) and "role" not in each.data]
        turns = spoken or steps
        self._last = turns[-1] if turns else None
        yield from elements

    def read(self, record: Record) -> Iterable[Event]:
        turns = list(self._turns(record))
        if turns and record is self._last and self._run:
            turns[-1] = turns[-1]._replace(meta={RUN_KEY: self._run})
        switch = self._switch(record.data) if turns else None
        return turns if switch is None else [switch, *turns]

    def label(self, record: Record) -> str:
        role = record.data.get("role", "step")
        return role[:100] if isinstance(role, str) else "untyped"

    def _turns(self, record: Record) -> Iterator[Turn]:
        data = record.data
        if "role" in data:
            message = history_message(data)
            if message is not None:
                yield self._turn(data, message)
            self.state["history"] = True
        elif not self.state.get("history"):
            yield from self._step(data)

    def _turn(self, data: Mapping[str, Any], message: Message) -> Turn:
        answers = message.role == "user" and self.state.get("before") == "assistant"
        self.state["before"] = message.role
        labels = (DEMONSTRATION,) if data.get("is_demo") is True else ()
        planned = planned_message(message, model=self._model if message.role == "assistant" else "")
        planned = planned._replace(kind="tool_io" if answers else planned.kind, labels=labels)
        return Turn((planned,), author="" if answers else speaker(message) or planned.model)

    def _step(self, data: Mapping[str, Any]) -> Iterator[Turn]:
        """Yield the turns of a step, for files without a history."""
        if not self.state.get("before"):
            for prompt in _prompts(data):
                yield self._turn(prompt[0], prompt[1])
        messages = []
        said = text_parts(data.get("response")) or _thought_and_action(data)
        if said:
            messages.append(PlannedMessage("assistant", said, model=self._model))
        seen = text_parts(data.get("observation"))
        if seen:
            messages.append(PlannedMessage("user", seen, kind="tool_io"))
        if messages:
            self.state["before"] = messages[-1].role
            yield Turn(tuple(messages), author=self._model)

    def _switch(self, data: Mapping[str, Any]) -> Switch | None:
        agent = storable_name(data.get("agent"))
        if not agent:
            return None
        first = self.state.setdefault("agent_name", agent)
        name = "" if agent == first else f"agents/{ref_component(agent)}"
        if name == self.state.get("line", ""):
            return None
        self.state["line"] = name
        return Switch(name)


def history_message(data: Mapping[str, Any]) -> Message | None:
    """Return the message of a history element; None if its role is unknown."""
    form = {key: value for key, value in data.items() if key not in ("name", "id", "kind", "model")}
    ids = [each for each in _list(data.get("tool_call_ids")) if isinstance(each, str)]
    if data.get("role") == "tool":
        if ids:
            form["tool_call_id"] = ids[0]
        elif not isinstance(form.get("tool_call_id"), str):
            form["role"] = "user"
    message = chat_message(form)
    if message is None:
        return None
    parts = list(message.parts)
    if message.role == "assistant" and all(part == Text("") for part in parts):
        parts = [*_thought_and_action(data)] or parts
    if message.role == "tool":
        # One result answers several calls; the others get an empty result.
        parts += [ToolResult(each, ()) for each in dict.fromkeys(ids[1:]) if each != ids[0]]
    return Message(message.role, parts)


def run_facts(info: Any) -> dict[str, Any]:
    """Return outcome and cost of a run, as far as a commit can hold them."""
    if not isinstance(info, dict):
        return {}
    stats = info.get("model_stats")
    facts: dict[str, Any] = {}
    for key, value in {"exit_status": info.get("exit_status"), **_dict(stats)}.items():
        if not storable_name(key) or isinstance(value, bool):
            continue
        if isinstance(value, int) and abs(value) <= _LARGEST:
            facts[key] = value
        elif isinstance(value, float):
            facts[key] = repr(value)
        elif storable_name(value):
            facts[key] = value
    return facts


def model_of(config: Any, *path: str) -> str:
    """Return the model in a run's settings, which may be JSON text."""
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            return ""
    for key in path:
        config = _dict(config).get(key)
    return storable_name(config)


def _prompts(data: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Message]]:
    """Yield the messages before the first step."""
    shown = data.get("query")
    for form in _list(shown if isinstance(shown, list) else data.get("messages")):
        message = history_message(form) if isinstance(form, dict) else None
        if message is not None:
            yield form, message


def _thought_and_action(data: Mapping[str, Any]) -> tuple[Part, ...]:
    return text_parts(data.get("thought"), data.get("action"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a SWE-agent run."""
    for form in file_shape(head).values[:1]:
        steps, history = _list(form.get("trajectory")), _list(form.get("history"))
        if steps and isinstance(steps[0], dict):
            return "action" in steps[0] and ("observation" in steps[0] or "response" in steps[0])
        if history and isinstance(history[0], dict) and "role" in history[0]:
            known = ("agent", "message_type", "thought")
            return "trajectory" in form or any(key in history[0] for key in known)
    # The first step is longer than the head.
    start = head.lstrip()[:1] == b"{"
    return start and b'"trajectory"' in head and b'"action"' in head and b'"thought"' in head


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the runs in SWE-agent's folder below the project."""
    return files_in(os.path.join(project_dir, FOLDER), disk, SUFFIXES)


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, SweAgentReader, lambda head: True, finds)
