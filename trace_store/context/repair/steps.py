"""Repair of contexts: a series of steps, until every provider accepts the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trace_store.context.repair.faults import PROVIDERS, Fault
from trace_store.context.repair.parts import repair_parts
from trace_store.context.repair.turns import (
    complete_pairs,
    convert_tool_messages,
    move_results,
    remove_duplicates,
    remove_empty,
    rename_reused_ids,
    trim_cut_turns,
)
from trace_store.context.repair.working_copy import Item, WorkingCopy
from trace_store.errors import InvalidInputError
from trace_store.frozen import value
from trace_store.objects.parts import Text
from trace_store.providers.media import BEGINNING
from trace_store.providers.rendering import render
from trace_store.providers.values import (
    FAULTS,
    LEADING_ASSISTANT,
    NO_MESSAGES,
    SYSTEM_ROLES,
    Renderable,
    Repair,
)

NOTHING_LEFT = "[Nothing of this conversation was recorded.]"
MAXIMUM_ROUNDS = 8
"""One step may cause or fix the fault of another; usually two rounds suffice."""


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
    items: tuple[Item, ...]
    removed: tuple[Item, ...]
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
    providers_to_suit = tuple(providers) or PROVIDERS
    copy = WorkingCopy(
        [Item.of(message, at) for at, message in enumerate(messages)], frozenset(providers_to_suit)
    )
    repair_parts(copy)
    for _ in range(MAXIMUM_ROUNDS):
        before = copy.count
        remove_duplicates(copy)
        complete_pairs(copy)
        move_results(copy)
        rename_reused_ids(copy)
        convert_tool_messages(copy)
        trim_cut_turns(copy)
        remove_empty(copy)
        if copy.count == before:
            break
    rendered = _fix_start(copy, tools)
    # Faults of the whole context come last; those of one message stay in the order of the steps.
    faults = sorted(copy.faults, key=lambda found: len(messages) if found.at is None else found.at)
    return RepairedContext(tuple(faults), tuple(copy.items), tuple(copy.removed), rendered)


def _fix_start(copy: WorkingCopy, tools: Sequence[dict[str, Any]]) -> dict[str, tuple[Repair, ...]]:
    """Make the user speak first, and add a message if none is left; return the renderers' adaptations.

    The renderers decide, since it depends on what they leave out.
    """
    for _ in range(3):
        rendered = {
            name: render(name, copy.items, tools).repairs for name in sorted(copy.providers_to_suit)
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
            copy.find(NO_MESSAGES, None, detail, done, refusing[NO_MESSAGES])
            copy.items.append(Item.new("user", [Text(NOTHING_LEFT)]))
        elif LEADING_ASSISTANT in refusing:
            at = first[LEADING_ASSISTANT]
            item = None if at is None else copy.items[at]
            detail = "the conversation begins with the assistant"
            done = "a user note added before it"
            copy.find(LEADING_ASSISTANT, item, detail, done, refusing[LEADING_ASSISTANT])
            front = (i for i, each in enumerate(copy.items) if not _is_system(each))
            copy.items.insert(next(front, 0), Item.new("user", [Text(BEGINNING)]))
    # Strict rendering raises if a renderer still refuses the context.
    return {
        name: render(name, copy.items, tools, strict=True).repairs
        for name in sorted(copy.providers_to_suit)
    }


def _is_system(item: Item) -> bool:
    return item.role in SYSTEM_ROLES
