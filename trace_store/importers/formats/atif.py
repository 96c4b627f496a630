"""ATIF, Harbor's trajectory format: a JSON document, or one step a line.

A step and its observation are one commit. A trajectory is named by its `trajectory_id`, else its `session_id`, with
a number for continuations. A subagent's, in the file or in its own, becomes a branch `agents/<id>`. Steps copied
from another trajectory get the label `copied-context`; their costs belong to that trajectory and are left out.

Invariant: reading a step is pure and never fails. Real writers break the schema: content may be an object, fields may
have other names, an observation may be its only result.

- An agent's step is an assistant message: reasoning, text, calls. Results that name a call (or a single result of a
  single call) follow as a tool message; other observations as a user message, since that is what the model saw.
- An observation of another step is part of its message, unless it answers a call.
- Media are paths outside the file and become opaque parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.frozen import field, mutable
from trace_store.base.oid import digest
from trace_store.importers.contract import AGENTS_KEY, PlannedMessage, Skip
from trace_store.importers.convert import (
    MAXIMUM_PARTS,
    opaque,
    ref_component,
    storable_name,
    time_of,
    tool_schemas,
    usage_counts,
)
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import (
    NOT_A_RECORD,
    compact,
    read_document,
    records_of,
    within,
)
from trace_store.importers.sniff import OBJECT, file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Switch, Turn, TurnReader
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "atif"
SUFFIXES = (".json", ".jsonl")
COPIED = "copied-context"
CONTINUES, CONTINUED_IN = "continues", "continued-in"
"""Link relations: to the previous trajectory by id, and to the next as the file names it."""
MAXIMUM_OPEN_CALLS = 1000
_LISTS = ("steps", "subagent_trajectories")
PROVIDER = "atif"
_ROLES = {"agent": "assistant", "assistant": "assistant", "user": "user"}


class AtifReader(TurnReader):
    """Reader of one trajectory and its subagents'.

    State: `session` and `agent`, as everywhere; `writer` and `model` of the agent; `open`, the unanswered calls.
    """

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tools: tuple[bytes, ...] | None = None
        self._links: tuple[tuple[str, str], ...] = ()
        self._switch: Switch | None = None
        self._is_away = False
        self._called: dict[str, str] = {}
        self._last: tuple[int, str] | None = None

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        if not line.whole:
            yield from records_of(line)
            return
        document = read_document(line, *_LISTS)
        if document.damage is None and document.lists.keys().isdisjoint(_LISTS):
            yield Skip(line.number, NOT_A_RECORD, "no trajectory")
            return
        self._begin(document.fields)
        steps = document.lists.get("steps", [])
        following = storable_name(document.fields.get("continued_trajectory_ref"))
        records = [each for each in steps if isinstance(each, Record)]
        if following and records:
            self._last = (records[-1].offset, following)
        yield from steps
        yield from self._subagents(line, document.lists.get("subagent_trajectories", []))
        if document.damage is not None:
            yield document.damage

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if data.get("__header__") is True:
            self._begin(data)
            return
        open_calls = self.state.get("open", [])
        own_model = storable_name(data.get("model_name"))
        model = own_model or self.state.get("model", "")
        step = step_of(data, open_calls, model)
        if not step.messages and not step.agents:
            return
        if step.calls or step.answers:
            left = [each for each in (*open_calls, *step.calls) if each not in step.answers]
            self.state["open"] = left[-MAXIMUM_OPEN_CALLS:]
        if self._switch is not None:
            yield self._switch
            self._switch, self._is_away = None, True
        copied = data.get("is_copied_context") is True
        key = digest(record.raw).hex()[:16]
        for agent in step.agents:
            self._called.setdefault(agent, key)
        tools, self._tools = self._tools, None
        links, self._links = self._links, ()
        if self._last is not None and record.offset == self._last[0]:
            links = (*links, (CONTINUED_IN, self._last[1]))
        agents = list(dict.fromkeys(map(ref_component, step.agents)))
        yield Turn(
            tuple(m._replace(labels=(COPIED,) if copied else ()) for m in step.messages),
            key=key,
            time=time_of(data.get("timestamp")),
            author=self._author(step.role, model),
            usage={} if copied else usage_counts(data.get("metrics"), model),
            tools=tools,
            meta={AGENTS_KEY: agents} if agents else {},
            links=links,
        )

    def finish(self) -> Iterable[Event]:
        # The end of the file belongs to the main trajectory.
        return (Switch(""),) if self._is_away else ()

    def label(self, record: Record) -> str:
        source = record.data.get("source")
        if record.data.get("__header__") is True:
            return "header"
        return source[:100] if isinstance(source, str) else "untyped"

    def _author(self, role: str, model: str) -> str:
        if role == "user":
            return "user"
        writer = self.state.get("writer", "") if role == "assistant" else ""
        return "/".join(each for each in (writer, model if writer else "") if each)

    def _begin(self, fields: Mapping[str, Any]) -> None:
        """Read the facts in a document or header."""
        agent = fields.get("agent")
        agent = agent if isinstance(agent, dict) else {}
        extra = agent.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        session = storable_name(fields.get("session_id"))
        name = storable_name(fields.get("trajectory_id")) or session
        parent = storable_name(extra.get("parent_session_id"))
        number = extra.get("continuation_index")
        if isinstance(number, int) and not isinstance(number, bool) and number > 0 and session:
            if name == session:
                name = f"{session}-cont-{number}"
            self._links = ((CONTINUES, session),)
        if parent and name and parent != name:
            self.state["session"], self.state["agent"] = parent, name
        else:
            self.state["session"] = name
        self._introduce(agent)
        self._tools = tool_schemas(agent.get("tool_definitions"))

    def _introduce(self, agent: Mapping[str, Any]) -> None:
        models = (agent.get("model_name"), agent.get("model"))
        self.state["writer"] = storable_name(agent.get("name"))
        self.state["model"] = next((name for each in models if (name := storable_name(each))), "")

    def _subagents(self, line: InputLine, elements: list[Record | Skip]) -> Iterator[Record | Skip]:
        """Yield the steps of embedded trajectories, each on a branch of its own."""
        for number, each in enumerate(elements, 1):
            if isinstance(each, Skip):
                yield each
                continue
            inner = within(line, each)
            document = read_document(inner, *_LISTS)
            agent = document.fields.get("agent")
            self._introduce(agent if isinstance(agent, dict) else {})
            self.state["open"] = []
            ids = [storable_name(document.fields.get(k)) for k in ("trajectory_id", "session_id")]
            name = next((id_ for id_ in ids if id_), f"agent-{number}")
            at = next((self._called[id_] for id_ in ids if id_ in self._called), None)
            self._switch = Switch(f"agents/{ref_component(name)}", at=at)
            tools = agent.get("tool_definitions") if isinstance(agent, dict) else None
            self._tools = tool_schemas(tools)
            yield from document.lists.get("steps", [])
            yield from self._subagents(inner, document.lists.get("subagent_trajectories", []))


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are an ATIF trajectory."""
    values = file_shape(head).values
    if not values:
        return False
    first = values[0]
    version = first.get("schema_version")
    if isinstance(version, str) and version.startswith("ATIF"):
        return True
    steps = first.get("steps")
    step = steps[0] if isinstance(steps, list) and steps else {}
    return isinstance(step, dict) and "step_id" in step and "source" in step and "agent" in first


@mutable
class AtifStep:
    """Messages and calls of a step.

    Attributes:
        role: role of its own message.
        messages: its own message, and results of its calls.
        calls: ids of its calls.
        answers: ids of the calls that it answers.
        agents: ids of the trajectories that it started.
    """

    role: str
    messages: list[PlannedMessage] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)


def step_of(data: Mapping[str, Any], open_calls: Collection[str], model: str) -> AtifStep:
    """Return the messages and calls of a step.

    Args:
        data: the step.
        open_calls: ids of earlier unanswered calls.
        model: the agent's model, for steps that name none.
    """
    step = AtifStep(_ROLES.get(str(data.get("source")), "system"))
    own: list[Part] = []
    reasoning = data.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning and step.role == "assistant":
        own.append(Reasoning(reasoning))
    own += content_parts(data.get("message"))
    for call in _dicts(data.get("tool_calls")):
        part = _call(call)
        own.append(part)
        if isinstance(part, ToolCall):
            step.calls.append(part.id)
    results, seen = _observed(data.get("observation"), step, open_calls)
    if step.role != "assistant":
        own, seen = [*own, *seen], []
    if own:
        step.messages.append(
            PlannedMessage(step.role, tuple(own), model=model if step.role == "assistant" else "")
        )
    if results:
        step.messages.append(PlannedMessage("tool", tuple(results)))
    if seen:
        step.messages.append(PlannedMessage("user", tuple(seen), kind="tool_io"))
    return step


def content_parts(content: Any) -> list[Part]:
    """Return the parts of a content: text, a list of parts, or anything else as JSON."""
    if content is None or content == "" or content == []:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if isinstance(content, list) and len(content) <= MAXIMUM_PARTS:
        return [_part(part) for part in content]
    return [Text(compact(content))]


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return Text(part)
    if isinstance(part, dict) and part.get("type") in ("text", None):
        text = part.get("text")
        if isinstance(text, str):
            return Text(text)
    return opaque(PROVIDER, part)


def _call(call: Mapping[str, Any]) -> Part:
    function = call.get("function")
    inner = function if isinstance(function, dict) else {}
    ids = (call.get("tool_call_id"), call.get("id"), call.get("call_id"))
    names = (call.get("function_name"), call.get("name"), inner.get("name"))
    id_ = next((id_ for each in ids if (id_ := storable_name(each))), "")
    name = next((name for each in names if (name := storable_name(each))), "")
    if not name:
        return opaque(PROVIDER, call)
    arguments = call.get("arguments", inner.get("arguments", {}))
    return ToolCall(id_, name, arguments if isinstance(arguments, str) else compact(arguments))


def _observed(
    observation: Any, step: AtifStep, open_calls: Collection[str]
) -> tuple[list[ToolResult], list[Part]]:
    """Return results that answer calls, and other observations."""
    results: list[ToolResult] = []
    seen: list[Part] = []
    observed = list(_results(observation))
    known = {*step.calls, *open_calls} - {""}
    named = {storable_name(result.get("source_call_id")) for result in observed}
    alone = [id_ for id_ in step.calls if id_ and id_ not in named]
    unnamed = [result for result in observed if not storable_name(result.get("source_call_id"))]
    for result in observed:
        step.agents += _agents(result)
        parts = content_parts(result.get("content"))
        id_ = storable_name(result.get("source_call_id"))
        if not id_ and len(alone) == len(step.calls) == len(unnamed) == 1:
            id_ = alone[0]
        if id_ in known:
            results.append(ToolResult(id_, parts, _failed(result)))
            step.answers.append(id_)
        else:
            seen += parts
    return results, seen


def _results(observation: Any) -> Iterator[dict[str, Any]]:
    if isinstance(observation, dict):
        listed = observation.get("results")
        if isinstance(listed, list):
            for each in listed:
                yield each if isinstance(each, dict) else {"content": each}
        elif "content" in observation:
            yield observation
        elif observation:
            yield {"content": observation}
    elif isinstance(observation, list):
        for each in observation:
            yield each if isinstance(each, dict) and "content" in each else {"content": each}
    elif observation is not None:
        yield {"content": observation}


def _failed(result: Mapping[str, Any]) -> bool:
    extra = result.get("extra")
    return isinstance(extra, dict) and extra.get("is_error") is True


def _agents(result: Mapping[str, Any]) -> Iterator[str]:
    for ref in _dicts(result.get("subagent_trajectory_ref")):
        for key in ("trajectory_id", "session_id"):
            if storable_name(ref.get(key)):
                yield ref[key]


def _dicts(value: Any) -> list[dict[str, Any]]:
    held = value if isinstance(value, list) else [value]
    return [each for each in held[:MAXIMUM_PARTS] if isinstance(each, dict)]


FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, AtifReader, lambda head: file_shape(head).kind == OBJECT
)
