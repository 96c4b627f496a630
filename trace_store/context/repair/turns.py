"""Repair of turns: duplicate messages, calls and results, and turns that were cut off.

`render.pairing` decides which result belongs to which call, and where, as for every renderer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trace_store.context.repair.faults import (
    ANTHROPIC,
    CUT_TURN,
    DUPLICATE_MESSAGE,
    IDS_ONCE,
    REUSED_CALL_ID,
)
from trace_store.context.repair.working_copy import Item, WorkingCopy
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic import PROVIDER, THINKING
from trace_store.providers.media import opaque_block
from trace_store.providers.validity import Place, maker, pair, standing
from trace_store.providers.values import EMPTY_MESSAGE, MOVED_RESULT, ORPHAN_CALL, TOOL_WITHOUT_CALL

NOT_RECORDED = "[The result of this call was not recorded.]"
TWICE = "it contains the same text twice"
MAXIMUM_ID_CHARACTERS = 200


def remove_duplicates(copy: WorkingCopy) -> None:
    """Remove messages that were copied when a part of the session was recorded twice.

    An assistant message is a copy if an earlier one has the same provider id and all its content; so are equal messages
    right before and equal results right after it. Within a message, equal parts are copies.
    """
    items = copy.items
    for item in items:
        if item.role == "assistant" and not item.ghost:
            _remove_repeated_parts(copy, item)
    first_of = _find_copies(items)
    gone: list[Item] = []
    for at in sorted(first_of):
        detail = f"it is a copy of {_name(items[first_of[at]])}"
        if copy.find(DUPLICATE_MESSAGE, items[at], detail, "taken out", IDS_ONCE):
            gone.append(items[at])
    copy.remove(gone)


def _remove_repeated_parts(copy: WorkingCopy, item: Item) -> None:
    kept: list[Part] = []
    seen: set[Part] = set()
    for part in item.parts:
        # Call ids are unique. A message of Claude comes in one piece, so it never has the same text twice; those of
        # other models may be joined from several.
        own = item.id and maker(item.model) == "anthropic"
        bound = isinstance(part, ToolCall) or (own and isinstance(part, Text))
        detail = f"it holds call {part.id!r} twice" if isinstance(part, ToolCall) else TWICE
        if not (bound and part in seen) or not copy.find(
            DUPLICATE_MESSAGE, item, detail, "left out once", IDS_ONCE
        ):
            kept.append(part)
            seen.add(part)
    item.reword(kept)


def _find_copies(items: list[Item]) -> dict[int, int]:
    """Return the positions of copies, with those of their originals."""
    seen: dict[str, list[int]] = {}
    copies: dict[int, int] = {}
    for at, item in enumerate(items):
        if item.role != "assistant" or not item.id or item.ghost or not item.parts:
            continue
        original = next(
            (first for first in seen.get(item.id, ()) if _is_within(item, items[first])), None
        )
        if original is None:
            seen.setdefault(item.id, []).append(at)
            continue
        copies[at] = original
        _extend_copy(items, copies, at, -1, lambda _: True)
        _extend_copy(items, copies, at, 1, _is_results)
    return copies


def _extend_copy(
    items: list[Item], copies: dict[int, int], start: int, step: int, may: Callable[[Item], bool]
) -> None:
    """Extend a copy in one direction as long as messages equal those around the original."""
    original, at = copies[start], start
    # The copied run must not overlap the original.
    room = start - original - 1
    while room > 0:
        original, at, room = original + step, at + step, room - 1
        if not (original >= 0 and at < len(items)) or at in copies:
            return
        here, there = items[at], items[original]
        if here.ghost or there.ghost or not may(here) or _content(here) != _content(there):
            return
        copies[at] = original


def _is_within(item: Item, other: Item) -> bool:
    """Return True if another message has all parts of this one, in the same order."""
    rest = iter(other.parts)
    return all(part in rest for part in item.parts)


def _content(item: Item) -> tuple[object, ...]:
    return (item.role, item.id, item.name, item.parts)


def _is_results(item: Item) -> bool:
    return bool(item.parts) and all(isinstance(part, ToolResult) for part in item.parts)


def _name(item: Item) -> str:
    if item.address is None:
        return f"message {(item.at or 0) + 1}"
    return str(item.address)


def complete_pairs(copy: WorkingCopy) -> None:
    """Make sure that every call has one result, and every result a call."""
    items = copy.items
    result_of, faults = pair(items)
    ends = standing(items, result_of).ends
    left_out: dict[int, set[int]] = {}
    unanswered: dict[int, list[str]] = {}
    for fault in faults:
        at, index = fault.place
        wrong = fault.detail.rpartition("; ")[0]
        part = items[at].parts[index]
        if fault.code == ORPHAN_CALL and isinstance(part, ToolCall):
            if copy.find(fault.code, items[at], wrong, "an error result added"):
                unanswered.setdefault(at, []).append(part.id)
        elif copy.find(fault.code, items[at], wrong, "left out"):
            left_out.setdefault(at, set()).add(index)
    behind: dict[int, list[Item]] = {}
    for at, ids in sorted(unanswered.items()):
        results = [ToolResult(id_, NOT_RECORDED, is_error=True) for id_ in ids]
        behind.setdefault(ends[at], []).append(Item.new("tool", results))
    for at, indexes in left_out.items():
        items[at].reword(p for i, p in enumerate(items[at].parts) if i not in indexes)
    copy.insert(behind)


def rename_reused_ids(copy: WorkingCopy) -> None:
    """Give a call with a reused id, and its result, another id."""
    items = copy.items
    result_of, _ = pair(items)
    taken = {part.id for item in items for part in item.parts if isinstance(part, ToolCall)}
    used: set[str] = set()
    for at, item in enumerate(items):
        for index, part in enumerate(item.parts):
            answer = result_of.get((at, index))
            if not isinstance(part, ToolCall) or answer is None:
                continue
            id_ = part.id
            if id_ in used:
                new = _unused_id(id_, taken)
                detail = f"the id {id_!r} was already used by an earlier call"
                done = f"call and result renamed to {new!r}"
                if copy.find(REUSED_CALL_ID, item, detail, done, ANTHROPIC):
                    id_ = new
                    renamed = ToolCall(id_, part.name, part.arguments, part.format)
                    _set_part(item, index, renamed)
                    result = items[answer[0]].parts[answer[1]]
                    if isinstance(result, ToolResult):
                        moved = ToolResult(id_, result.content, result.is_error, call=result.call)
                        _set_part(items[answer[0]], answer[1], moved)
            used.add(id_)


def _unused_id(id_: str, taken: set[str]) -> str:
    number = 2
    while (new := f"{id_[:MAXIMUM_ID_CHARACTERS]}-{number}") in taken:
        number += 1
    taken.add(new)
    return new


def _set_part(item: Item, index: int, part: Part) -> None:
    item.reword([*item.parts[:index], part, *item.parts[index + 1 :]])


Arrivals = dict[Place, list[tuple[Place, Place]]]
"""Results by the part that they move behind, each with its call, whose order they keep."""


def move_results(copy: WorkingCopy) -> None:
    """Move every result directly behind the turn with its call."""
    items = copy.items
    result_of, _ = pair(items)
    call_of = {result: call for call, result in result_of.items()}
    going: dict[int, dict[int, Place]] = {}
    for (at, index), end in standing(items, result_of).apart:
        part = items[at].parts[index]
        id_ = part.call_id if isinstance(part, ToolResult) else ""
        wrong = (
            "comes before its call"
            if (at, index) < call_of[at, index]
            else "is separated from its call"
        )
        detail = f"the result of call {id_!r} {wrong}"
        if copy.find(MOVED_RESULT, items[at], detail, "moved to its call"):
            going.setdefault(at, {})[index] = end
    arriving: Arrivals = {}
    for at, ends in going.items():
        for index, end in ends.items():
            arriving.setdefault(end, []).append((call_of[at, index], (at, index)))
    for results in arriving.values():
        results.sort()
    _apply_moves(copy, going, arriving)


def _apply_moves(
    copy: WorkingCopy, going: Mapping[int, Mapping[int, Place]], arriving: Arrivals
) -> None:
    items = copy.items
    whole = {at for at, ends in going.items() if _moves_whole(items, at, ends)}
    inside = {end for end in arriving if _is_answered_inside(items[end[0]], end[1])}
    behind: dict[int, list[Item]] = {}
    for end in sorted(arriving.keys() - inside):
        for _, (at, index) in arriving[end]:
            if at not in whole:
                moved = Item.new("tool", [items[at].parts[index]])
                behind.setdefault(end[0], []).append(moved)
            elif index == 0:
                behind.setdefault(end[0], []).append(items[at])
    # Looked up before any message changes.
    answers = {end: [items[at].parts[index] for _, (at, index) in arriving[end]] for end in inside}
    for at in (going.keys() - whole) | {at for at, _ in inside}:
        parts: list[Part] = []
        for index, part in enumerate(items[at].parts):
            if index not in going.get(at, ()):
                parts.append(part)
            parts += answers.get((at, index), ())
        items[at].reword(parts)
    for at in whole:
        items[at].moved = True
    copy.insert(behind, {id(items[at]) for at in whole})


def _moves_whole(items: list[Item], at: int, ends: Mapping[int, Place]) -> bool:
    """Return True if a message can move as a whole: all results to one destination."""
    end = next(iter(ends.values()))
    return (
        len(ends) == len(items[at].parts)
        and set(ends.values()) == {end}
        and not _is_answered_inside(items[end[0]], end[1])
    )


def _is_answered_inside(item: Item, index: int) -> bool:
    """Return True if a result follows a part in its message, so others must go inside."""
    return any(isinstance(part, ToolResult) for part in item.parts[index + 1 :])


def convert_tool_messages(copy: WorkingCopy) -> None:
    """Turn tool messages without a result into user messages, as every renderer does."""
    for at, item in enumerate(copy.items):
        if item.role != "tool" or item.ghost or item.says_nothing:
            continue
        if any(isinstance(part, ToolResult) for part in item.parts):
            continue
        detail = "a tool message is not the result of a call"
        if copy.find(TOOL_WITHOUT_CALL, item, detail, "changed to a user message"):
            copy.items[at] = Item.new("user", item.parts, replaces=item)


def trim_cut_turns(copy: WorkingCopy) -> None:
    """Remove Claude's reasoning at the end of a turn; other models may end a turn with it."""
    turn: list[Item] = []
    for item in [*copy.items, None]:
        if item is not None and item.role == "assistant":
            turn.append(item)
        elif item is None or not item.says_nothing:
            _end_turn(copy, turn)
            turn = []


def _end_turn(copy: WorkingCopy, turn: list[Item]) -> None:
    for item in reversed(turn):
        if item.ghost:
            return
        kept = list(item.parts)
        while kept and _is_reasoning(kept[-1]):
            kept.pop()
        if len(kept) < len(item.parts):
            detail = "nothing follows the reasoning in its turn"
            done = "reasoning left out"
            if maker(item.model) != "anthropic" or not copy.find(
                CUT_TURN, item, detail, done, ANTHROPIC
            ):
                return
            item.reword(kept)
        if not item.says_nothing:
            return


def _is_reasoning(part: Part) -> bool:
    if isinstance(part, Reasoning):
        return True
    if not isinstance(part, Opaque) or part.provider != PROVIDER:
        return False
    block = opaque_block(part)
    return block is not None and block["type"] in THINKING


def remove_empty(copy: WorkingCopy) -> None:
    """Remove empty messages; those that a repair emptied are no additional fault."""
    gone: list[Item] = []
    for item in copy.items:
        if item.ghost or not item.says_nothing:
            continue
        emptied = item.is_new or item.reworded
        detail = f"a message of role {item.role} is empty"
        if emptied or copy.find(EMPTY_MESSAGE, item, detail, "taken out"):
            gone.append(item)
    copy.remove(gone)
