"""What a person or an agent does on a branch between merges: turns, calls, edits, marks, removals, summaries.

Rule: nobody thinks of calls and results; that they stay together is for the operations.
"""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st

from tests.stateful.support.ground import AUTHOR, Ground
from trace_store import Message, ToolCall, ToolResult
from trace_store.context.fold import Entry
from trace_store.history.commit import write
from trace_store.history.draft import Draft
from trace_store.objects import operations as ops
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Part, Text
from trace_store.writer import Writer

Change = Callable[[Ground, st.DataObject, Draft], None]
LABELS = ("decision", "todo")
PRIORITIES = ("pinned", "important", "normal")
TOOLS = ("read", "grep", "edit")


def work(ground: Ground, data: st.DataObject, kind: str, *, second: bool = False) -> None:
    """Make one commit of a kind of change on HEAD's branch; none where there is nothing to change."""
    store = ground.stores[second]
    draft = Draft(Writer(store, author=AUTHOR))
    KINDS[kind](ground, data, draft)
    if draft.operations:
        ground.command(lambda: write(draft))


def _say(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    for _ in range(data.draw(st.integers(1, 2))):
        role = data.draw(st.sampled_from(["user", "assistant", "assistant", "system"]))
        draft.append(role, f"m{ground.number()}")


def _call(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    """Call tools, and wait for their results, or have them in the same commit, in one message or several."""
    names = [f"c{ground.number()}" for _ in range(data.draw(st.integers(1, 2)))]
    draft.append("assistant", [ToolCall(name, "look", "{}") for name in names], model="m")
    if data.draw(st.booleans()):
        _results(ground, draft, names, apart=data.draw(st.booleans()))


def _answer(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    waiting = _waiting(ground)
    if waiting:
        _results(ground, draft, waiting, apart=data.draw(st.booleans()))
    else:
        draft.append("assistant", f"m{ground.number()}")


def _results(ground: Ground, draft: Draft, names: list[str], *, apart: bool) -> None:
    results = [ToolResult(name, f"r{ground.number()}") for name in names]
    for some in [[each] for each in results] if apart else [results]:
        draft.append("tool", some)


def _edit(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    seen = _some(ground, data)
    if seen is not None:
        draft.edit(seen.address, _reworded(ground, seen))


def _reworded(ground: Ground, seen: Entry) -> list[Part]:
    text = f"e{ground.number()}"
    parts = load_parts(seen.parts, ground.store.objects.read)
    changed: list[Part] = []
    for part in parts:
        if isinstance(part, ToolResult):
            changed.append(ToolResult(part.call_id, text, part.is_error, call=part.call))
        elif not isinstance(part, Text):
            changed.append(part)
    return changed if seen.answers else [Text(text), *changed]


def _mark(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    seen = _some(ground, data)
    if seen is not None and seen.priority != ops.SKIP:
        draft.annotate([seen.address], priority=data.draw(st.sampled_from(PRIORITIES)))


def _skip(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    there = [each.address for each in ground.now().entries if not each.hidden]
    if there:
        priority = data.draw(st.sampled_from([ops.SKIP, ops.SKIP, ops.NORMAL, ops.PINNED]))
        draft.annotate([data.draw(st.sampled_from(there))], priority=priority)


def _label(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    seen = _some(ground, data)
    if seen is not None:
        label = data.draw(st.sampled_from(LABELS))
        if label in seen.labels:
            draft.annotate([seen.address], unlabels=[label])
        else:
            keep = data.draw(st.sampled_from([None, None, ["m1"], ["e2"]]))
            draft.annotate([seen.address], labels=[label], keep=keep)


def _remove(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    seen = _some(ground, data)
    if seen is not None:
        draft.remove([seen.address], ghost=data.draw(st.booleans()))


def _restore(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    hidden = [each.address for each in ground.now().entries if each.hidden]
    if hidden:
        version = data.draw(st.sampled_from([None, 0]))
        draft.restore([data.draw(st.sampled_from(hidden))], version=version)


def _replace(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    """Put a summary in the place of messages that follow each other."""
    seen = [each.address for each in ground.now().visible()]
    if seen:
        first = data.draw(st.integers(0, len(seen) - 1))
        some = seen[first : first + data.draw(st.integers(1, 3))]
        draft.replace(some, [Message("user", f"s{ground.number()}")], reason="compression")


def _tools(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    names = data.draw(st.lists(st.sampled_from(TOOLS), unique=True))
    draft.set_tools([{"name": name, "parameters": {}} for name in names])


def _usage(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    counts = {"input_tokens": ground.number(), "output_tokens": 4}
    line = ground.line(ground.tip())[:3]
    about = data.draw(st.sampled_from([None, *line]))
    draft.record_usage(counts, about=about)


def _several(ground: Ground, data: st.DataObject, draft: Draft) -> None:
    """One commit that says something, and changes that and something older."""
    here = draft.append("user", f"m{ground.number()}")
    draft.annotate([here], labels=["todo"], priority="important")
    draft.edit(here, f"e{ground.number()}")
    _edit(ground, data, draft)


def _some(ground: Ground, data: st.DataObject) -> Entry | None:
    """Return a message that is shown as itself; None when none is."""
    seen = ground.visible()
    return data.draw(st.sampled_from(seen)) if seen else None


def _waiting(ground: Ground) -> list[str]:
    """Return the ids of the calls of one message that have no results."""
    state = ground.now()
    for entry in reversed(state.entries):
        halves = [part for each in state.unit(entry.address) for part in state.entry(each).parts]
        answered = {part["id"] for part in halves if part["type"] == "tool_result"}
        calls = [part["id"] for part in entry.parts if part["type"] == "tool_call"]
        if waiting := [name for name in calls if name not in answered]:
            return waiting
    return []


KINDS: dict[str, Change] = {
    "say": _say,
    "call": _call,
    "answer": _answer,
    "edit": _edit,
    "mark": _mark,
    "skip": _skip,
    "label": _label,
    "remove": _remove,
    "restore": _restore,
    "replace": _replace,
    "tools": _tools,
    "usage": _usage,
    "several": _several,
}
