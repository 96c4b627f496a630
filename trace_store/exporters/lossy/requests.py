"""A session as a request: the output of the provider's renderer, and its losses.

Invariant: messages and tools are exactly those of `trace compile`; only the model and limits are added.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy.loss_count import losses_of, nothing_left
from trace_store.exporters.lossy.read_back import read_back
from trace_store.providers.rendering import MESSAGE_LISTS, render
from trace_store.providers.signatures import last_model
from trace_store.providers.values import NO_MESSAGES
from trace_store.providers.wire import to_bytes

SUFFIX = ".json"
LONG_BYTES = 65_536


def write_request(
    session: ExportSession, renderer: str, provider: str = "", **parameters: Any
) -> Exported:
    """Return a session as a request.

    Args:
        session: the session.
        renderer: name of the provider's renderer.
        provider: its most recent model in the session is the request's `model`; "" if requests name no model.
        parameters: other fields of the request.

    Raises:
        InvalidInputError: no message is left to send.
        ObjectNotFoundError, CorruptObjectError: a content is missing or damaged.
    """
    messages = [turn.message for turn in session.turns]
    rendered = render(renderer, messages, session.tools)
    if any(repair.code == NO_MESSAGES for repair in rendered.repairs):
        raise nothing_left()
    drafts, moved = read_back(messages, rendered.request)
    tools = kept_tools(session, rendered.request.get("tools", ()))
    losses = losses_of(session, drafts, tools=tools, moved=moved)
    model = last_model(messages, provider) if provider else ""
    request = ({"model": model} if model else {}) | parameters | rendered.request
    data = to_bytes(_short_first(request)) + b"\n"
    return Exported(data, losses, file_name(session, SUFFIX))


def _short_first(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request with its long values last: readers detect a file by its start."""
    long = [key for key, value in request.items() if len(to_bytes(value)) > LONG_BYTES]
    order = [key for key in request if key not in long]
    listed = [key for key in long if key in MESSAGE_LISTS]
    order += [*listed, *(key for key in long if key not in listed)]
    return {key: request[key] for key in order}


def kept_tools(session: ExportSession, schemas: Sequence[Any]) -> int:
    """Return the number of the session's tools among schemas, by name or value."""
    there = Counter(name for schema in schemas for name in tool_names(schema))
    kept = 0
    for tool in session.tools:
        names = tool_names(tool)
        if all(there[name] for name in names):
            there.subtract(names)
            kept += 1
    return kept


def tool_names(schema: Any) -> list[str]:
    """Return the names of a schema's tools; for one without a name its JSON."""
    if not isinstance(schema, dict):
        return [json.dumps(schema)]
    declared = schema.get("functionDeclarations")
    if isinstance(declared, list):
        return [name for each in declared for name in tool_names(each)]
    inner = next(
        (schema[key] for key in ("function", "custom") if isinstance(schema.get(key), dict)), schema
    )
    name = inner.get("name")
    return [name] if isinstance(name, str) else [json.dumps(schema, sort_keys=True)]
