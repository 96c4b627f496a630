"""The state of the work of a session: what a compaction knew, and what came since.

A compaction hides the messages from which files, tasks and decisions were read. So it records the state as a fact, and
what the messages that are shown say is added to that. Of what contradicts itself the newest counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from trace_store.base.frozen import replace
from trace_store.checkpoints.work_state import Check, FileNote, WorkState
from trace_store.context.activity import ToDo
from trace_store.context.wording import Decision

MOST = 40
"""Of each list so many of the newest are kept."""

Item = TypeVar("Item")


def pack(state: WorkState) -> str:
    """Return a state as a fact."""
    return json.dumps(state.as_map(), ensure_ascii=False)


def unpack(text: str) -> WorkState | None:
    """Return the state in a fact; None if it is of another version."""
    try:
        data = json.loads(text)
        return _state(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def joined(before: WorkState, now: WorkState) -> WorkState:
    """Return a state with what an earlier one knew."""
    asked = [before.request, *before.requests, before.latest_request]
    latest = now.latest_request or now.request
    middle = [*asked[1:], *([now.request] if now.latest_request else []), *now.requests]
    return replace(
        now,
        request=before.request or now.request,
        latest_request=latest if latest != before.request else now.latest_request,
        requests=_newest(each for each in middle if each and each not in (latest, before.request)),
        constraints=_newest((*before.constraints, *now.constraints)),
        outcome=now.outcome or ("" if now.last_said else before.outcome),
        files=_newest((*before.files, *now.files), lambda each: each.path),
        tasks=_newest((*before.tasks, *now.tasks), lambda each: each.text),
        decisions=_newest((*before.decisions, *now.decisions), lambda each: each.text),
        checks=_newest((*before.checks, *now.checks), lambda each: each.program),
        links=_newest((*before.links, *now.links)),
        code_commit=now.code_commit or before.code_commit,
        open_ends=now.open_ends or (() if now.outcome else before.open_ends),
        command_count=before.command_count + now.command_count,
        error_count=before.error_count + now.error_count,
    )


def _newest(
    items: Iterable[Item], key: Callable[[Item], Hashable] | None = None
) -> tuple[Item, ...]:
    """Return the last item of each key, in the order of these, and at most MOST of them."""
    found: dict[Hashable, Item] = {}
    for each in items:
        name: Hashable = key(each) if key else each
        found.pop(name, None)
        found[name] = each
    return tuple(found.values())[-MOST:]


def _state(data: Mapping[str, Any]) -> WorkState:
    return WorkState(
        request=data["request"],
        latest_request=data["latest_request"],
        requests=tuple(data["requests"]),
        constraints=tuple(data["constraints"]),
        outcome=data["outcome"],
        last_said=data["last_said"],
        summary=data["summary"],
        files=tuple(
            FileNote(e["path"], e["reads"], e["writes"], e["finding"], e["deleted"])
            for e in data["files"]
        ),
        tasks=tuple(ToDo(e["text"], e["status"]) for e in data["tasks"]),
        decisions=tuple(Decision(e["text"], e["reason"], None) for e in data["decisions"]),
        checks=tuple(
            Check(e["program"], e["passed"], e["said"], e["writes_since"]) for e in data["checks"]
        ),
        running=tuple(data["running"]),
        links=tuple(data["links"]),
        code_commit=data["code_commit"],
        open_ends=tuple(data["open_ends"]),
        command_count=data["command_count"],
        error_count=data["error_count"],
        message_count=data["message_count"],
        token_count=data["token_count"],
    )
