"""Steps of ATIF trajectories as messages.

Invariant: pure, and never fails. Real writers break the schema: content may be an object, fields may have other
names, an observation may be its only result.

- An agent's step is an assistant message: reasoning, text, calls. Results that name a call (or a single result of a
  single call) follow as a tool message; other observations as a user message, since that is what the model saw.
- An observation of another step is part of its message, unless it answers a call.
- Media are paths outside the file and become opaque parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trace_store.frozen import field, mutable
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.json_records import compact
from trace_store.importers.parts import MAXIMUM_PARTS, opaque, storable_name
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult

PROVIDER = "atif"

_ROLES = {"agent": "assistant", "assistant": "assistant", "user": "user"}


@mutable
class Step:
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


def step_of(data: Mapping[str, Any], open_calls: Collection[str], model: str) -> Step:
    """Return the messages and calls of a step.

    Args:
        data: the step.
        open_calls: ids of earlier unanswered calls.
        model: the agent's model, for steps that name none.
    """
    step = Step(_ROLES.get(str(data.get("source")), "system"))
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
    observation: Any, step: Step, open_calls: Collection[str]
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
