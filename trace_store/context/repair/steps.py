"""Mend a context: step by step, until every provider would take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trace_store.context.repair.faults import PROVIDERS, Fault
from trace_store.context.repair.parts import mend_contents
from trace_store.context.repair.turns import (
    end_cut_turns,
    move_results,
    pair_up,
    rename_reused,
    speak_for_tools,
    take_out_copies,
    take_out_empty,
)
from trace_store.context.repair.working_copy import Bench, Item
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
"""What one step takes away may be all that was wrong for another, or bring it to light; two rounds are the rule."""


@value
class Mended:
    """A context that its providers would take, and how it differs from the one that came in.

    Attributes:
        faults: what was wrong, in the order of the messages; none when the context was sound.
        items: the messages, in order.
        removed: the messages that are no longer among them.
        adaptations: for each provider what its renderer still does about things that it has no place for.
    """

    faults: tuple[Fault, ...]
    items: tuple[Item, ...]
    removed: tuple[Item, ...]
    adaptations: dict[str, tuple[Repair, ...]]


def mend(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]] = (),
    *,
    providers: Sequence[str] = (),
) -> Mended:
    """Return what is wrong with a context, and the context as it would be sound.

    Args:
        messages: the context, oldest first.
        tools: schemas of the tools the model is offered.
        providers: whom it has to suit; none means all.

    Raises:
        InvalidInputError: there is no such provider.
        RenderError: it cannot be mended, which is a mistake here: a renderer refuses what this module takes for sound.
    """
    for name in providers:
        if name not in PROVIDERS:
            known = ", ".join(PROVIDERS)
            raise InvalidInputError(f"unknown provider {name[:40]!r}: one of {known}")
    chosen = tuple(providers) or PROVIDERS
    bench = Bench([Item.of(message, at) for at, message in enumerate(messages)], frozenset(chosen))
    mend_contents(bench)
    for _ in range(MAXIMUM_ROUNDS):
        before = bench.count
        take_out_copies(bench)
        pair_up(bench)
        move_results(bench)
        rename_reused(bench)
        speak_for_tools(bench)
        end_cut_turns(bench)
        take_out_empty(bench)
        if bench.count == before:
            break
    rendered = _begin(bench, tools)
    # The whole context comes last; faults about one message stay in the order of the steps.
    faults = sorted(bench.faults, key=lambda found: len(messages) if found.at is None else found.at)
    return Mended(tuple(faults), tuple(bench.items), tuple(bench.removed), rendered)


def _begin(bench: Bench, tools: Sequence[dict[str, Any]]) -> dict[str, tuple[Repair, ...]]:
    """Let the user speak first, and let there be something to send; return what each renderer still adapts.

    What renderers drop decides, so they are asked.
    """
    for _ in range(3):
        rendered = {name: render(name, bench.items, tools).repairs for name in sorted(bench.chosen)}
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
            detail, done = "nothing is left to send", "a note of the user's says so"
            bench.find(NO_MESSAGES, None, detail, done, refusing[NO_MESSAGES])
            bench.items.append(Item.new("user", [Text(NOTHING_LEFT)]))
        elif LEADING_ASSISTANT in refusing:
            at = first[LEADING_ASSISTANT]
            item = None if at is None else bench.items[at]
            detail = "the conversation begins with the assistant"
            done = "a note of the user's stands before it"
            bench.find(LEADING_ASSISTANT, item, detail, done, refusing[LEADING_ASSISTANT])
            front = (i for i, each in enumerate(bench.items) if not _is_system(each))
            bench.items.insert(next(front, 0), Item.new("user", [Text(BEGINNING)]))
    # Only a renderer that knows more than these steps is not satisfied by now; it says what it misses.
    return {
        name: render(name, bench.items, tools, strict=True).repairs for name in sorted(bench.chosen)
    }


def _is_system(item: Item) -> bool:
    return item.role in SYSTEM_ROLES
