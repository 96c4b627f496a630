"""State of the work of a session, across compactions.

Files, tasks and decisions are read from visible messages, and a compaction hides messages. So each compaction records
the state as a fact. The state of the visible messages is then merged into it; if both have an item, the newer wins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from trace_store.base.frozen import replace
from trace_store.checkpoints.work_state import WorkState, current_statements
from trace_store.context.activity import DROPPED, ToDo

MOST = 40
"""Maximum items in each list; the newest are kept."""

Item = TypeVar("Item")


def pack(state: WorkState) -> str:
    """Return a state as a fact."""
    return json.dumps(state.as_map(), ensure_ascii=False)


def unpack(text: str) -> WorkState | None:
    """Return the state in a fact; None if another version wrote it."""
    try:
        return WorkState.from_map(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def joined(before: WorkState, now: WorkState) -> WorkState:
    """Merge an earlier state into a newer one."""
    asked = [before.request, *before.requests, before.latest_request]
    latest = now.latest_request or now.request
    constraints, former = current_statements(_newest((*before.constraints, *now.constraints)), str)
    decisions, revised = current_statements(
        _newest((*before.decisions, *now.decisions), lambda each: each.text),
        lambda each: each.text,
    )
    middle = [*asked[1:], *([now.request] if now.latest_request else []), *now.requests]
    return replace(
        now,
        request=before.request or now.request,
        latest_request=latest if latest != before.request else now.latest_request,
        requests=_newest(each for each in middle if each and each not in (latest, before.request)),
        constraints=tuple(constraints),
        outcome=now.outcome or ("" if now.last_said else before.outcome),
        files=_newest((*before.files, *now.files), lambda each: each.path),
        tasks=_newest((*_tasks_left(before, now), *now.tasks), lambda each: each.text),
        decisions=tuple(decisions),
        checks=_newest((*before.checks, *now.checks), lambda each: each.program),
        links=_newest((*before.links, *now.links)),
        code_commit=now.code_commit or before.code_commit,
        open_ends=now.open_ends or (() if now.outcome else before.open_ends),
        command_count=before.command_count + now.command_count,
        error_count=before.error_count + now.error_count,
        tasks_replaced=before.tasks_replaced or now.tasks_replaced,
        earlier=_newest((*before.earlier, *now.earlier, *former, *revised)),
    )


def _tasks_left(before: WorkState, now: WorkState) -> list[ToDo]:
    """Return the earlier tasks; open ones are dropped if a newer list replaced theirs."""
    if not now.tasks_replaced:
        return list(before.tasks)
    return [each if each.is_done else ToDo(each.text, DROPPED) for each in before.tasks]


def _newest(
    items: Iterable[Item], key: Callable[[Item], Hashable] | None = None
) -> tuple[Item, ...]:
    """Return the last item of each key in order of position, at most MOST."""
    found: dict[Hashable, Item] = {}
    for each in items:
        name: Hashable = key(each) if key else each
        found.pop(name, None)
        found[name] = each
    return tuple(found.values())[-MOST:]
