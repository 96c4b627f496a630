"""Repair of contexts: steps that are repeated until every chosen provider accepts the result.

`providers.validity` decides which result belongs to which call, and where it must stand; all renderers use it. Where a
renderer would adapt a part, the repaired part is what it would send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.context.faults import (
    ANTHROPIC,
    BROKEN_BLOCK,
    BROKEN_CHARACTER,
    CUT_TURN,
    DUPLICATE_MESSAGE,
    FORMATS_OF,
    IDS_ONCE,
    INVALID_ARGUMENTS,
    OBJECT_ARGUMENTS,
    PROVIDERS,
    REUSED_CALL_ID,
    UNSIGNED_REASONING,
    Fault,
    WorkingCopy,
    WorkingMessage,
)
from trace_store.errors import InvalidInputError
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic import NOWHERE, PROVIDER, THINKING
from trace_store.providers.media import (
    BEGINNING,
    anthropic_images,
    block_fault,
    document_fault,
    image_note,
    invalid_image,
    left_out_code,
    opaque_block,
    opaque_note,
    split_image,
    typed_image,
)
from trace_store.providers.media_facts import ANY_IMAGE, image_fault
from trace_store.providers.rendering import (
    BLANK_TEXT,
    EMPTY_MESSAGE,
    FAULTS,
    INVALID_IMAGE,
    LEADING_ASSISTANT,
    MOVED_RESULT,
    NO_MESSAGES,
    ORPHAN_CALL,
    SYSTEM_ROLES,
    TOOL_WITHOUT_CALL,
    UNKNOWN_BLOCK,
    Renderable,
    Repair,
    render,
)
from trace_store.providers.validity import Place, maker, pair, standing, unrecorded
from trace_store.providers.wire import parse_object, scrub

NOTHING_LEFT = "[Nothing of this conversation was recorded.]"
MAXIMUM_ROUNDS = 8
"""One step may cause or fix the fault of another; usually two rounds suffice."""
REPEATED_TEXT = "it contains the same text twice"
MAXIMUM_ID_CHARACTERS = 200

Arrivals = dict[Place, list[tuple[Place, Place]]]
"""Maps a part to the results that move behind it, as (call, result) in the order of the calls."""

LEFT_OUT = "left out"


@value
class RepairedContext:
    """A repaired context, and its differences from the original.

    Attributes:
        faults: the faults, in message order; empty if the context was valid.
        items: the messages, in order.
        removed: messages that were removed.
        adaptations: by provider, how its renderer adapts content that it does not support.
    """

    faults: tuple[Fault, ...]
    items: tuple[WorkingMessage, ...]
    removed: tuple[WorkingMessage, ...]
    adaptations: dict[str, tuple[Repair, ...]]


def repair_context(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]] = (),
    *,
    providers: Sequence[str] = (),
) -> RepairedContext:
    """Return the faults of a context, and its repaired form.

    Args:
        messages: the context, oldest first.
        tools: the schemas of the tools.
        providers: the providers to be valid for; empty means all.

    Raises:
        InvalidInputError: unknown provider.
        RenderError: a bug here: a renderer refuses the repaired context.
    """
    for name in providers:
        if name not in PROVIDERS:
            known = ", ".join(PROVIDERS)
            raise InvalidInputError(f"unknown provider {name[:40]!r}; expected one of {known}")
    chosen_providers = tuple(providers) or PROVIDERS
    work = WorkingCopy(
        [WorkingMessage.of(message, at) for at, message in enumerate(messages)],
        frozenset(chosen_providers),
    )
    _repair_parts(work)
    for _ in range(MAXIMUM_ROUNDS):
        before = work.count
        _remove_duplicates(work)
        _complete_pairs(work)
        _move_results(work)
        _rename_reused_ids(work)
        _convert_tool_messages(work)
        _trim_cut_turns(work)
        _remove_empty(work)
        if work.count == before:
            break
    rendered = _fix_start(work, tools)
    # Faults of the whole context come last; those of one message stay in the order of the steps.
    faults = sorted(work.faults, key=lambda found: len(messages) if found.at is None else found.at)
    return RepairedContext(tuple(faults), tuple(work.items), tuple(work.removed), rendered)


def _fix_start(work: WorkingCopy, tools: Sequence[dict[str, Any]]) -> dict[str, tuple[Repair, ...]]:
    """Make the user speak first, and add a message if none is left; return the renderers' adaptations.

    The renderers decide, since it depends on what they leave out.
    """
    for _ in range(3):
        rendered = {
            name: render(name, work.items, tools).repairs for name in sorted(work.chosen_providers)
        }
        refusing: dict[str, list[str]] = {}
        first: dict[str, int | None] = {}
        for name, repairs in rendered.items():
            for repair in repairs:
                if repair.code in FAULTS:
                    refusing.setdefault(repair.code, []).append(name)
                    first.setdefault(repair.code, repair.at)
        if not refusing:
            return rendered
        if NO_MESSAGES in refusing:
            detail, done = "no message is left to send", "a user note added"
            work.report(NO_MESSAGES, None, detail, done, refusing[NO_MESSAGES])
            work.items.append(WorkingMessage.new("user", [Text(NOTHING_LEFT)]))
        elif LEADING_ASSISTANT in refusing:
            at = first[LEADING_ASSISTANT]
            item = None if at is None else work.items[at]
            detail = "the conversation begins with the assistant"
            done = "a user note added before it"
            work.report(LEADING_ASSISTANT, item, detail, done, refusing[LEADING_ASSISTANT])
            front = (i for i, each in enumerate(work.items) if not _is_system(each))
            work.items.insert(next(front, 0), WorkingMessage.new("user", [Text(BEGINNING)]))
    # Strict rendering raises if a renderer still refuses the context.
    return {
        name: render(name, work.items, tools, strict=True).repairs
        for name in sorted(work.chosen_providers)
    }


def _is_system(item: WorkingMessage) -> bool:
    return item.role in SYSTEM_ROLES


def _remove_duplicates(work: WorkingCopy) -> None:
    """Remove messages that were copied when a part of the session was recorded twice.

    An assistant message is a copy if an earlier one has the same provider id and all its parts. Messages right before
    it and results right after it are copies, too, as long as they equal those around the original. Within a message,
    a repeated call is a copy, and so is a repeated text of Claude.
    """
    items = work.items
    for item in items:
        if item.role == "assistant" and not item.ghost:
            _remove_repeated_parts(work, item)
    first_of = _find_copies(items)
    gone: list[WorkingMessage] = []
    for at in sorted(first_of):
        detail = f"it is a copy of {_name(items[first_of[at]])}"
        if work.report(DUPLICATE_MESSAGE, items[at], detail, "removed", IDS_ONCE):
            gone.append(items[at])
    work.remove(gone)


def _remove_repeated_parts(work: WorkingCopy, item: WorkingMessage) -> None:
    kept: list[Part] = []
    seen: set[Part] = set()
    for part in item.parts:
        # Call ids are unique. Claude never sends the same text twice in one message, but a message of another model
        # may be joined from several.
        from_claude = item.id and maker(item.model) == "anthropic"
        is_unique = isinstance(part, ToolCall) or (from_claude and isinstance(part, Text))
        detail = f"it holds call {part.id!r} twice" if isinstance(part, ToolCall) else REPEATED_TEXT
        if not (is_unique and part in seen) or not work.report(
            DUPLICATE_MESSAGE, item, detail, "the copy left out", IDS_ONCE
        ):
            kept.append(part)
            seen.add(part)
    item.reword(kept)


def _find_copies(items: list[WorkingMessage]) -> dict[int, int]:
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
    items: list[WorkingMessage],
    copies: dict[int, int],
    start: int,
    step: int,
    is_allowed: Callable[[WorkingMessage], bool],
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
        if here.ghost or there.ghost or not is_allowed(here) or _content(here) != _content(there):
            return
        copies[at] = original


def _is_within(item: WorkingMessage, other: WorkingMessage) -> bool:
    """Return True if another message has all parts of this one, in the same order."""
    rest = iter(other.parts)
    return all(part in rest for part in item.parts)


def _content(item: WorkingMessage) -> tuple[object, ...]:
    return (item.role, item.id, item.name, item.parts)


def _is_results(item: WorkingMessage) -> bool:
    return bool(item.parts) and all(isinstance(part, ToolResult) for part in item.parts)


def _name(item: WorkingMessage) -> str:
    if item.address is None:
        return f"message {(item.at or 0) + 1}"
    return str(item.address)


def _complete_pairs(work: WorkingCopy) -> None:
    """Make sure that every call has one result, and every result a call."""
    items = work.items
    result_of, faults = pair(items)
    ends = standing(items, result_of).ends
    left_out: dict[int, set[int]] = {}
    unanswered: dict[int, list[str]] = {}
    for fault in faults:
        at, index = fault.place
        # After the semicolon the detail says what a renderer does; a repair may do something else.
        problem = fault.detail.rpartition("; ")[0]
        part = items[at].parts[index]
        if fault.code == ORPHAN_CALL and isinstance(part, ToolCall):
            if work.report(fault.code, items[at], problem, "an error result added"):
                unanswered.setdefault(at, []).append(part.id)
        elif work.report(fault.code, items[at], problem, "left out"):
            left_out.setdefault(at, set()).add(index)
    behind: dict[int, list[WorkingMessage]] = {}
    for at, ids in sorted(unanswered.items()):
        results = [unrecorded(id_) for id_ in ids]
        behind.setdefault(ends[at], []).append(WorkingMessage.new("tool", results))
    for at, indexes in left_out.items():
        items[at].reword(p for i, p in enumerate(items[at].parts) if i not in indexes)
    work.insert(behind)


def _rename_reused_ids(work: WorkingCopy) -> None:
    """Give a call with a reused id, and its result, another id."""
    items = work.items
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
                if work.report(REUSED_CALL_ID, item, detail, done, ANTHROPIC):
                    id_ = new
                    call = ToolCall(id_, part.name, part.arguments, part.format)
                    _set_part(item, index, call)
                    result = items[answer[0]].parts[answer[1]]
                    if isinstance(result, ToolResult):
                        renamed = ToolResult(id_, result.content, result.is_error, call=result.call)
                        _set_part(items[answer[0]], answer[1], renamed)
            used.add(id_)


def _unused_id(id_: str, taken: set[str]) -> str:
    number = 2
    while (new := f"{id_[:MAXIMUM_ID_CHARACTERS]}-{number}") in taken:
        number += 1
    taken.add(new)
    return new


def _set_part(item: WorkingMessage, index: int, part: Part) -> None:
    item.reword([*item.parts[:index], part, *item.parts[index + 1 :]])


def _move_results(work: WorkingCopy) -> None:
    """Move every result directly behind the turn with its call."""
    items = work.items
    result_of, _ = pair(items)
    call_of = {result: call for call, result in result_of.items()}
    destinations: dict[int, dict[int, Place]] = {}
    for (at, index), end in standing(items, result_of).apart:
        part = items[at].parts[index]
        id_ = part.call_id if isinstance(part, ToolResult) else ""
        wrong = (
            "comes before its call"
            if (at, index) < call_of[at, index]
            else "is separated from its call"
        )
        detail = f"the result of call {id_!r} {wrong}"
        if work.report(MOVED_RESULT, items[at], detail, "moved to its call"):
            destinations.setdefault(at, {})[index] = end
    arrivals: Arrivals = {}
    for at, ends in destinations.items():
        for index, end in ends.items():
            arrivals.setdefault(end, []).append((call_of[at, index], (at, index)))
    for results in arrivals.values():
        results.sort()
    _apply_moves(work, destinations, arrivals)


def _apply_moves(
    work: WorkingCopy, destinations: Mapping[int, Mapping[int, Place]], arrivals: Arrivals
) -> None:
    """Move results: with their message if all its parts go to one place, else in new messages or into an existing one.

    Args:
        work: the working copy.
        destinations: by message and part, the part that a result moves behind.
        arrivals: the same moves, by destination.
    """
    items = work.items
    whole = {at for at, ends in destinations.items() if _moves_whole(items, at, ends)}
    inside = {end for end in arrivals if _is_answered_inside(items[end[0]], end[1])}
    behind: dict[int, list[WorkingMessage]] = {}
    for end in sorted(arrivals.keys() - inside):
        for _, (at, index) in arrivals[end]:
            if at not in whole:
                moved = WorkingMessage.new("tool", [items[at].parts[index]])
                behind.setdefault(end[0], []).append(moved)
            elif index == 0:
                behind.setdefault(end[0], []).append(items[at])
    # Looked up before any message changes.
    answers = {end: [items[at].parts[index] for _, (at, index) in arrivals[end]] for end in inside}
    for at in (destinations.keys() - whole) | {at for at, _ in inside}:
        parts: list[Part] = []
        for index, part in enumerate(items[at].parts):
            if index not in destinations.get(at, ()):
                parts.append(part)
            parts += answers.get((at, index), ())
        items[at].reword(parts)
    for at in whole:
        items[at].moved = True
    work.insert(behind, {id(items[at]) for at in whole})


def _moves_whole(items: list[WorkingMessage], at: int, ends: Mapping[int, Place]) -> bool:
    """Return True if a message can move as a whole: all results to one destination."""
    end = next(iter(ends.values()))
    return (
        len(ends) == len(items[at].parts)
        and set(ends.values()) == {end}
        and not _is_answered_inside(items[end[0]], end[1])
    )


def _is_answered_inside(item: WorkingMessage, index: int) -> bool:
    """Return True if a result follows a part in its message; results that move behind it then join the message."""
    return any(isinstance(part, ToolResult) for part in item.parts[index + 1 :])


def _convert_tool_messages(work: WorkingCopy) -> None:
    """Turn tool messages without a result into user messages, as every renderer does."""
    for at, item in enumerate(work.items):
        if item.role != "tool" or item.ghost or item.says_nothing:
            continue
        if any(isinstance(part, ToolResult) for part in item.parts):
            continue
        detail = "a tool message is not the result of a call"
        if work.report(TOOL_WITHOUT_CALL, item, detail, "changed to a user message"):
            work.items[at] = WorkingMessage.new("user", item.parts, replaces=item)


def _trim_cut_turns(work: WorkingCopy) -> None:
    """Remove Claude's reasoning at the end of a turn; other models may end a turn with it."""
    turn: list[WorkingMessage] = []
    for item in [*work.items, None]:
        if item is not None and item.role == "assistant":
            turn.append(item)
        elif item is None or not item.says_nothing:
            _end_turn(work, turn)
            turn = []


def _end_turn(work: WorkingCopy, turn: list[WorkingMessage]) -> None:
    for item in reversed(turn):
        if item.ghost:
            return
        kept = list(item.parts)
        while kept and _is_reasoning(kept[-1]):
            kept.pop()
        if len(kept) < len(item.parts):
            detail = "nothing follows the reasoning in its turn"
            done = "reasoning left out"
            if maker(item.model) != "anthropic" or not work.report(
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


def _remove_empty(work: WorkingCopy) -> None:
    """Remove empty messages; those that a repair emptied are no additional fault."""
    gone: list[WorkingMessage] = []
    for item in work.items:
        if item.ghost or not item.says_nothing:
            continue
        emptied = item.is_new or item.reworded
        detail = f"a message of role {item.role} is empty"
        if emptied or work.report(EMPTY_MESSAGE, item, detail, "removed"):
            gone.append(item)
    work.remove(gone)


def _repair_parts(work: WorkingCopy) -> None:
    """Repair all messages part by part."""
    work.images = anthropic_images(work.items)
    for item in work.items:
        if not (item.ghost or item.says_nothing):
            before: Sequence[Part | None] = (None, *item.parts)
            pairs = zip(before, item.parts, strict=False)
            item.reword(
                [new for last, part in pairs for new in _repair_part(work, item, part, last)]
            )


def _repair_part(
    work: WorkingCopy, item: WorkingMessage, part: Part, before: Part | None
) -> Iterator[Part]:
    """Yield the replacement of a part: the part itself if it is valid, nothing if it is left out."""
    if isinstance(part, Text):
        if _carries_signature(item, part, before):
            yield part
        else:
            yield from _text(work, item, part)
    elif isinstance(part, ToolResult):
        yield _result(work, item, part)
    elif isinstance(part, ToolCall):
        yield _call(work, item, part)
    elif isinstance(part, Image):
        yield from _image(work, item, part)
    elif isinstance(part, Reasoning):
        yield from _reasoning(work, item, part)
    elif isinstance(part, Opaque):
        yield from _opaque(work, item, part)
    else:
        yield part


def _carries_signature(item: WorkingMessage, part: Text, before: Part | None) -> bool:
    """Return True if this is the empty text that carries Gemini's signature of a finished turn."""
    return (
        not part.text
        and item.role == "assistant"
        and isinstance(before, Reasoning)
        and bool(before.signature)
        and maker(item.model) == "gemini"
    )


def _text(work: WorkingCopy, item: WorkingMessage, part: Text) -> Iterator[Text]:
    if not part.text:
        if not work.report(BLANK_TEXT, item, "a text is empty", LEFT_OUT):
            yield part
    elif not part.text.strip():
        if not work.report(BLANK_TEXT, item, "a text is only white space", LEFT_OUT, ANTHROPIC):
            yield part
    else:
        text = _replace_surrogates(work, item, part.text)
        yield part if text is part.text else Text(text)


def _replace_surrogates(work: WorkingCopy, item: WorkingMessage, text: str) -> str:
    """Return the text with lone surrogates replaced; the same object if there are none."""
    whole, broken = scrub(text)
    detail = "text contains a lone surrogate"
    if broken and work.report(BROKEN_CHARACTER, item, detail, "replaced by U+FFFD"):
        return str(whole)
    return text


def _result(work: WorkingCopy, item: WorkingMessage, part: ToolResult) -> ToolResult:
    content: list[Part] = []
    for inner in part.content:
        if isinstance(inner, Text) and len(part.content) == 1:
            # The only text of a result may be blank: a tool that printed nothing is valid.
            content.append(Text(_replace_surrogates(work, item, inner.text)))
        elif isinstance(inner, Text):
            content += _text(work, item, inner)
        elif isinstance(inner, Image):
            content += _image(work, item, inner, inside_result=True)
        elif isinstance(inner, Opaque):
            content += _opaque(work, item, inner, inside_result=True)
        else:
            content.append(inner)
    mended = ToolResult(part.call_id, content, part.is_error, call=part.call)
    return part if mended == part else mended


def _call(work: WorkingCopy, item: WorkingMessage, part: ToolCall) -> ToolCall:
    arguments = _replace_surrogates(work, item, part.arguments)
    if part.format != "text" and arguments.strip() and parse_object(arguments) is None:
        detail = f"the arguments of call {part.id!r} are not a JSON object"
        done = "kept as text under the name `input`"
        if work.report(INVALID_ARGUMENTS, item, detail, done, OBJECT_ARGUMENTS):
            arguments = json.dumps({"input": arguments}, ensure_ascii=False, separators=(",", ":"))
    if arguments is part.arguments:
        return part
    return ToolCall(part.id, part.name, arguments, part.format)


def _image(
    work: WorkingCopy, item: WorkingMessage, part: Image, *, inside_result: bool = False
) -> Iterator[Part]:
    found = split_image(part)
    detail = invalid_image(part) if found is None else image_fault(*found)
    limits, refusing = ANY_IMAGE, PROVIDERS
    if not detail and found is not None:
        limits, refusing = work.images, ANTHROPIC
        detail = image_fault(*found, limits)
    typed = None if found is None else typed_image(part, limits)
    by_model = item.role == "assistant" and not inside_result
    done = LEFT_OUT if by_model else "replaced by a note"
    if typed is not None:
        done = f"type set to {typed[0]}"
    if not detail or not work.report(INVALID_IMAGE, item, detail, done, refusing):
        yield part
    elif typed is not None:
        yield from _image(work, item, Image(*typed), inside_result=inside_result)
    elif not by_model:
        yield Text(image_note(part))


def _reasoning(work: WorkingCopy, item: WorkingMessage, part: Reasoning) -> Iterator[Part]:
    if maker(item.model) == "anthropic" and not part.signature:
        detail = f"reasoning of {item.model} has no signature"
        if work.report(UNSIGNED_REASONING, item, detail, LEFT_OUT, ANTHROPIC):
            return
    whole, broken = scrub(part.text)
    if not broken:
        yield part
        return
    # A signature is valid only for the exact text.
    done = LEFT_OUT if part.signature else "replaced by U+FFFD"
    if not work.report(BROKEN_CHARACTER, item, "reasoning contains a lone surrogate", done):
        yield part
    elif not part.signature:
        yield Reasoning(str(whole), part.signature)


def _opaque(
    work: WorkingCopy, item: WorkingMessage, part: Opaque, *, inside_result: bool = False
) -> Iterator[Part]:
    by_model = item.role == "assistant" and not inside_result
    if left_out_code(part) == UNKNOWN_BLOCK:
        detail = f"a block has the format of {part.provider!r}, which no provider accepts"
        done = LEFT_OUT if by_model else "replaced by a note"
        if not work.report(UNKNOWN_BLOCK, item, detail, done):
            yield part
        elif not by_model:
            yield Text(opaque_note(part))
        return
    block = opaque_block(part) if part.provider == PROVIDER else None
    fault = document_fault(part) if block is None else block_fault(block, work.images)
    if fault and work.report(
        INVALID_IMAGE, item, fault, "replaced by a note", FORMATS_OF[part.provider]
    ):
        yield Text(opaque_note(part))
        return
    if inside_result or block is None or block["type"] not in NOWHERE:
        yield part
        return
    # A complete block would have been decoded to a part of its own.
    detail = f"a {block['type']} block is incomplete"
    if by_model:
        if not work.report(BROKEN_BLOCK, item, detail, LEFT_OUT, ANTHROPIC):
            yield part
    elif work.report(BROKEN_BLOCK, item, detail, "replaced by a note", ANTHROPIC):
        yield Text(opaque_note(part))
    else:
        yield part
