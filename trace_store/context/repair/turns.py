"""Pairs of calls and results, and turns that were cut off.

Rule: which result is whose is asked of `render.pairing`, as every renderer does.

Rule: where a result belongs is asked of `render.pairing`, as every renderer does.
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
from trace_store.context.repair.working_copy import Bench, Item
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic import PROVIDER
from trace_store.providers.anthropic.render import THINKING
from trace_store.providers.media import opaque_block
from trace_store.providers.signatures import maker
from trace_store.providers.validity import Place, pair, standing
from trace_store.providers.values import EMPTY_MESSAGE, MOVED_RESULT, ORPHAN_CALL, TOOL_WITHOUT_CALL

NOT_RECORDED = "[The result of this call was not recorded.]"
TWICE = "it says the same twice"
MAXIMUM_ID_CHARACTERS = 200


def take_out_copies(bench: Bench) -> None:
    """Take out messages that stand twice because a part of the session was copied into it.

    An assistant message is a copy when an earlier one has the same id of the provider and says all that it says; the
    messages right before it and the results right behind it are, when they are the same as there. Within a message a
    part is one that says again what an earlier one says.
    """
    items = bench.items
    for item in items:
        if item.role == "assistant" and not item.ghost:
            _say_once(bench, item)
    first_of = _copies(items)
    gone: list[Item] = []
    for at in sorted(first_of):
        detail = f"it says again what {_name(items[first_of[at]])} says"
        if bench.find(DUPLICATE_MESSAGE, items[at], detail, "taken out", IDS_ONCE):
            gone.append(items[at])
    bench.remove(gone)


def _say_once(bench: Bench, item: Item) -> None:
    kept: list[Part] = []
    seen: set[Part] = set()
    for part in item.parts:
        # Nobody makes two calls under one id. Messages of Claude come as they are in one piece, without the same text
        # twice; those of other models may have been put together from several.
        own = item.id and maker(item.model) == "anthropic"
        bound = isinstance(part, ToolCall) or (own and isinstance(part, Text))
        detail = f"it holds call {part.id!r} twice" if isinstance(part, ToolCall) else TWICE
        if not (bound and part in seen) or not bench.find(
            DUPLICATE_MESSAGE, item, detail, "left out once", IDS_ONCE
        ):
            kept.append(part)
            seen.add(part)
    item.reword(kept)


def _copies(items: list[Item]) -> dict[int, int]:
    """Return the positions of copies, with those of what they are copies of."""
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
        _spread(items, copies, at, -1, lambda _: True)
        _spread(items, copies, at, 1, _is_results)
    return copies


def _spread(
    items: list[Item], copies: dict[int, int], start: int, step: int, may: Callable[[Item], bool]
) -> None:
    """Go on from a copy in one direction, as long as it is the same there as at the original."""
    original, at = copies[start], start
    # Going back a copy ends behind its original, going on an original ends before its copy.
    room = start - original - 1
    while room > 0:
        original, at, room = original + step, at + step, room - 1
        if not (original >= 0 and at < len(items)) or at in copies:
            return
        here, there = items[at], items[original]
        if here.ghost or there.ghost or not may(here) or _said(here) != _said(there):
            return
        copies[at] = original


def _is_within(item: Item, other: Item) -> bool:
    """Tell whether another message says, in the same order, all that this one says."""
    rest = iter(other.parts)
    return all(part in rest for part in item.parts)


def _said(item: Item) -> tuple[object, ...]:
    return (item.role, item.id, item.name, item.parts)


def _is_results(item: Item) -> bool:
    return bool(item.parts) and all(isinstance(part, ToolResult) for part in item.parts)


def _name(item: Item) -> str:
    if item.address is None:
        return f"message {(item.at or 0) + 1}"
    return str(item.address)


def pair_up(bench: Bench) -> None:
    """Let every call have one result, and every result a call."""
    items = bench.items
    result_of, faults = pair(items)
    ends = standing(items, result_of).ends
    left_out: dict[int, set[int]] = {}
    unanswered: dict[int, list[str]] = {}
    for fault in faults:
        at, index = fault.place
        wrong = fault.detail.rpartition("; ")[0]
        part = items[at].parts[index]
        if fault.code == ORPHAN_CALL and isinstance(part, ToolCall):
            if bench.find(fault.code, items[at], wrong, "an error result says so"):
                unanswered.setdefault(at, []).append(part.id)
        elif bench.find(fault.code, items[at], wrong, "left out"):
            left_out.setdefault(at, set()).add(index)
    behind: dict[int, list[Item]] = {}
    for at, ids in sorted(unanswered.items()):
        results = [ToolResult(id_, NOT_RECORDED, is_error=True) for id_ in ids]
        behind.setdefault(ends[at], []).append(Item.new("tool", results))
    for at, indexes in left_out.items():
        items[at].reword(p for i, p in enumerate(items[at].parts) if i not in indexes)
    bench.insert(behind)


def rename_reused(bench: Bench) -> None:
    """Give a call whose id an earlier call has another id, and its result too."""
    items = bench.items
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
                new = _unused(id_, taken)
                detail = f"the id {id_!r} is that of an earlier call"
                done = f"called {new!r}, and so is its result"
                if bench.find(REUSED_CALL_ID, item, detail, done, ANTHROPIC):
                    id_ = new
                    renamed = ToolCall(id_, part.name, part.arguments, part.format)
                    _set_part(item, index, renamed)
                    result = items[answer[0]].parts[answer[1]]
                    if isinstance(result, ToolResult):
                        moved = ToolResult(id_, result.content, result.is_error, call=result.call)
                        _set_part(items[answer[0]], answer[1], moved)
            used.add(id_)


def _unused(id_: str, taken: set[str]) -> str:
    number = 2
    while (new := f"{id_[:MAXIMUM_ID_CHARACTERS]}-{number}") in taken:
        number += 1
    taken.add(new)
    return new


def _set_part(item: Item, index: int, part: Part) -> None:
    item.reword([*item.parts[:index], part, *item.parts[index + 1 :]])


Arrivals = dict[Place, list[tuple[Place, Place]]]
"""By the part that they go behind: results, each with its call before it, whose order they keep."""


def move_results(bench: Bench) -> None:
    """Let every result stand directly behind the turn with its call."""
    items = bench.items
    result_of, _ = pair(items)
    call_of = {result: call for call, result in result_of.items()}
    going: dict[int, dict[int, Place]] = {}
    for (at, index), end in standing(items, result_of).apart:
        part = items[at].parts[index]
        id_ = part.call_id if isinstance(part, ToolResult) else ""
        wrong = "stands before its call" if (at, index) < call_of[at, index] else "stands apart"
        detail = f"the result of call {id_!r} {wrong}"
        if bench.find(MOVED_RESULT, items[at], detail, "moved to its call"):
            going.setdefault(at, {})[index] = end
    arriving: Arrivals = {}
    for at, ends in going.items():
        for index, end in ends.items():
            arriving.setdefault(end, []).append((call_of[at, index], (at, index)))
    for results in arriving.values():
        results.sort()
    _move(bench, going, arriving)


def _move(bench: Bench, going: Mapping[int, Mapping[int, Place]], arriving: Arrivals) -> None:
    items = bench.items
    whole = {at for at, ends in going.items() if _goes_whole(items, at, ends)}
    inside = {end for end in arriving if _is_answered_inside(items[end[0]], end[1])}
    behind: dict[int, list[Item]] = {}
    for end in sorted(arriving.keys() - inside):
        for _, (at, index) in arriving[end]:
            if at not in whole:
                moved = Item.new("tool", [items[at].parts[index]])
                behind.setdefault(end[0], []).append(moved)
            elif index == 0:
                behind.setdefault(end[0], []).append(items[at])
    # What arrives inside a message is looked up before any message is reworded.
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
    bench.insert(behind, {id(items[at]) for at in whole})


def _goes_whole(items: list[Item], at: int, ends: Mapping[int, Place]) -> bool:
    """Tell whether a message holds nothing but results that go to one place, so that it can go there itself."""
    end = next(iter(ends.values()))
    return (
        len(ends) == len(items[at].parts)
        and set(ends.values()) == {end}
        and not _is_answered_inside(items[end[0]], end[1])
    )


def _is_answered_inside(item: Item, index: int) -> bool:
    """Tell whether a result stands behind a part in one message, so that behind the message is too late."""
    return any(isinstance(part, ToolResult) for part in item.parts[index + 1 :])


def speak_for_tools(bench: Bench) -> None:
    """Let what a tool message says beside no result be said by the user, as every renderer does."""
    for at, item in enumerate(bench.items):
        if item.role != "tool" or item.ghost or item.says_nothing:
            continue
        if any(isinstance(part, ToolResult) for part in item.parts):
            continue
        detail = "a tool message answers no call"
        if bench.find(TOOL_WITHOUT_CALL, item, detail, "shown as the user's"):
            bench.items[at] = Item.new("user", item.parts, replaces=item)


def end_cut_turns(bench: Bench) -> None:
    """Take away reasoning of Claude that nothing follows in its turn; other models' may end a turn."""
    turn: list[Item] = []
    for item in [*bench.items, None]:
        if item is not None and item.role == "assistant":
            turn.append(item)
        elif item is None or not item.says_nothing:
            _end(bench, turn)
            turn = []


def _end(bench: Bench, turn: list[Item]) -> None:
    for item in reversed(turn):
        if item.ghost:
            return
        kept = list(item.parts)
        while kept and _is_reasoning(kept[-1]):
            kept.pop()
        if len(kept) < len(item.parts):
            detail = "nothing follows the reasoning in its turn"
            done = "the reasoning is left out"
            if maker(item.model) != "anthropic" or not bench.find(
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


def take_out_empty(bench: Bench) -> None:
    """Take out what says nothing. What was emptied by mending was told of before."""
    gone: list[Item] = []
    for item in bench.items:
        if item.ghost or not item.says_nothing:
            continue
        emptied = item.is_new or item.reworded
        detail = f"a message of role {item.role} says nothing"
        if emptied or bench.find(EMPTY_MESSAGE, item, detail, "taken out"):
            gone.append(item)
    bench.remove(gone)
