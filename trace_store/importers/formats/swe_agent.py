"""SWE-agent: `.traj` files, one JSON document a run.

`history` is the conversation. `trajectory` tells the same by steps, with all that the model was shown before each, and
is kept as source; where there is no history, the steps make the conversation. What the run came to and cost, which the
file tells of the whole and of no message, is the metadata `run` of the last commit.

- A tool's answer names its calls in a list, `tool_call_ids`. Runs without tool calls have their answers as messages of
  the user.
- Messages of a demonstration have the label `demonstration`.
- What another agent than the first one says is a branch `agents/<name>`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.importers.contract import PlannedMessage, Skip
from trace_store.importers.decode import Line
from trace_store.importers.files import files_in
from trace_store.importers.names import ref_component
from trace_store.importers.parts import chat_message, planned, speaker, storable_name, text_parts
from trace_store.importers.sniff import look
from trace_store.importers.turn_format import TurnFormat
from trace_store.importers.turns import DocumentReader, Event, Switch, Turn
from trace_store.objects.message import Message
from trace_store.objects.parts import Part, Text, ToolResult
from trace_store.transcripts.records import Record

NAME = "swe-agent"
SUFFIXES = (".traj",)
FOLDER = "trajectories"
DEMONSTRATION = "demonstration"
RUN_KEY = "run"
"""In a commit's metadata: how the run ended, and what it cost in all."""

_LARGEST = (1 << 63) - 1
_NO_MODELS = ("human", "human_thought", "instant_empty_submit", "replay")
"""What runs name as their model in which none was asked."""


class SweAgentReader(DocumentReader):
    """Reads one `.traj`."""

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

    def records(self, line: Line) -> Iterator[Record | Skip]:
        found = list(super().records(line))
        spoken = [each for each in found if isinstance(each, Record) and "role" in each.data]
        steps = [each for each in found if isinstance(each, Record) and "role" not in each.data]
        telling = spoken or steps
        self._last = telling[-1] if telling else None
        yield from found

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
        made = planned(message, model=self._model if message.role == "assistant" else "")
        made = made._replace(kind="tool_io" if answers else made.kind, labels=labels)
        return Turn((made,), author="" if answers else speaker(message) or made.model)

    def _step(self, data: Mapping[str, Any]) -> Iterator[Turn]:
        """Yield what a step of a file without a history says."""
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
    """Return the message of an element of a history; None when it has no role that a message can have."""
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
        # The answer to several calls is told once; the others are answered too.
        parts += [ToolResult(each, ()) for each in dict.fromkeys(ids[1:]) if each != ids[0]]
    return Message(message.role, parts)


def run_facts(info: Any) -> dict[str, Any]:
    """Return how a run ended and what it cost, as far as a commit can hold it."""
    if not isinstance(info, dict):
        return {}
    stats = info.get("model_stats")
    found: dict[str, Any] = {}
    for key, value in {"exit_status": info.get("exit_status"), **_dict(stats)}.items():
        if not storable_name(key) or isinstance(value, bool):
            continue
        if isinstance(value, int) and abs(value) <= _LARGEST:
            found[key] = value
        elif isinstance(value, float):
            found[key] = repr(value)
        elif storable_name(value):
            found[key] = value
    return found


def model_of(config: Any, *path: str) -> str:
    """Return the model that a run's settings name; they may be JSON in a text."""
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            return ""
    for key in path:
        config = _dict(config).get(key)
    return storable_name(config)


def _prompts(data: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Message]]:
    """Yield what the model was shown before the first step."""
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
    """Tell from the first bytes of a file whether it is a run of SWE-agent."""
    for form in look(head).values[:1]:
        steps, history = _list(form.get("trajectory")), _list(form.get("history"))
        if steps and isinstance(steps[0], dict):
            return "action" in steps[0] and ("observation" in steps[0] or "response" in steps[0])
        if history and isinstance(history[0], dict) and "role" in history[0]:
            known = ("agent", "message_type", "thought")
            return "trajectory" in form or any(key in history[0] for key in known)
    # A first step that is longer than what is looked at.
    start = head.lstrip()[:1] == b"{"
    return start and b'"trajectory"' in head and b'"action"' in head and b'"thought"' in head


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the runs in the folder where SWE-agent puts them, below the one it was started in."""
    return files_in(os.path.join(project_dir, FOLDER), disk, SUFFIXES)


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, SweAgentReader, lambda head: True, finds)
