"""Display of conflicts and of the ways to resolve them."""

from __future__ import annotations

from trace_cli.render.escape import one_line
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, paint
from trace_store.context.content import message_line
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.context.entries import Entry
    from trace_store.merge.conflicts import Conflict
    from trace_store.store.handle import Store

WIDTH = 72
SHOWN_MESSAGES = 3
_OPTIONS = {OURS: "--ours", THEIRS: "--theirs", BOTH: "--both", TEXT: "TEXT"}


def conflict_lines(invocation: Invocation, store: Store, found: Sequence[Conflict]) -> list[str]:
    """Return the lines that list open and resolved conflicts."""
    lines = []
    for conflict in found:
        name = " ".join(short_address(address) for address in conflict.addresses[:1])
        said = conflict.resolution
        kind = paint(invocation, conflict.kind, "red" if said is None else "green")
        head = f"{conflict.number}  {kind}  {name}".rstrip()
        if said is not None:
            how = one_line(said.text, WIDTH) if said.choice == TEXT else said.choice
            lines.append(f"{head}  resolved: {how}")
            continue
        lines.append(f"{head}  {conflict.meaning}")
        for side, entries in (("ours", conflict.ours), ("theirs", conflict.theirs)):
            for entry in entries[:SHOWN_MESSAGES]:
                lines.append(f"     {side:6}  {_state(entry)}{entry_line(store, entry)}")
            if len(entries) > SHOWN_MESSAGES:
                more = counted(len(entries) - SHOWN_MESSAGES, "more message")
                lines.append(f"             and {more}")
    return lines


def entry_line(store: Store, entry: Entry) -> str:
    """Return the current version of a message on one line."""
    stored = {**entry.message, "parts": entry.parts}
    return one_line(message_line(stored, store.objects.read, WIDTH), WIDTH)


def _state(entry: Entry) -> str:
    marks = [entry.hidden] if entry.hidden else []
    if entry.priority != "normal":
        marks.append(entry.priority)
    return f"[{', '.join(marks)}] " if marks else ""


def choices_line(found: Sequence[Conflict]) -> str:
    """Return the command that resolves one of the open conflicts."""
    allowed = [name for name in _OPTIONS if all(name in each.choices for each in found)]
    ways = " | ".join(_OPTIONS[name] for name in allowed or [OURS])
    return f"trace resolve NUMBER {ways}"
