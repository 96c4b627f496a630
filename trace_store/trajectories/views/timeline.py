"""The timeline of a trajectory as text: a vertical line with time, agent, type and significance."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from trace_store.context.wording import excerpt
from trace_store.exporters.overview import format_moment
from trace_store.exporters.prose import code_of, reveal
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.views.view import (
    OTHER_SYMBOL,
    SYMBOLS,
    View,
    decision_line,
    event_text,
    notes_on,
    texts_of,
    type_label,
)

WIDTH = 100
LINES, CHARACTERS = 3, 600
"""Maximum lines and characters that are shown of an event."""
LEFT = 6
"""The columns before the line."""
STYLES = {
    ev.CHAPTER: "blue",
    ev.DECISION: "green",
    ev.FINDING: "cyan",
    ev.ERROR: "red",
    ev.COMPLETED: "green",
    ev.ABANDONED: "red",
    "high": "yellow",
    "critical": "red",
}


def timeline_text(view: View) -> str:
    """Return the timeline as plain text."""
    return "\n".join(timeline_lines(view)) + "\n"


def timeline_lines(
    view: View,
    *,
    width: int = 0,
    paint: Callable[[str, str], str] = lambda text, _: text,
) -> Iterator[str]:
    """Yield the lines of a timeline; invisible characters are shown by code.

    Args:
        view: the trajectory.
        width: the columns of a line; 0: 100.
        paint: returns a text in a style: `bold`, `dim` or a colour.
    """
    state, width = view.trajectory.state, width or WIDTH
    yield paint(_shown(excerpt(view.title, width)), "bold")
    yield paint(_shown(f"{state.id} · {state.status}"), "dim")
    day = ""
    for event in view.events:
        moment = format_moment(event.time)
        if moment[:10] != day:
            day = moment[:10]
            yield ""
            yield paint(f"{day or 'no time'} UTC", "dim")
        yield _heading(event, moment[11:16], paint)
        for line in wrapped(event, width - LEFT - 2):
            yield f"{' ' * LEFT}{paint('│', 'dim')} {line}"


def summary(event: Event) -> str:
    """Return what a timeline shows of an event."""
    text = event_text(event)
    if event.type == ev.DECISION:
        text = decision_line(event)
    if event.type == ev.STARTED:
        text = str(event.data.get("title", ""))
    if event.type == ev.LINKED and (files := texts_of(event, "files")):
        text += f" ({', '.join(files[:4])}{', …' if len(files) > 4 else ''})"
    return text


def wrapped(event: Event, width: int) -> list[str]:
    """Return what is shown of an event in lines of at most `width` characters."""
    text = _shown(excerpt(summary(event), CHARACTERS))
    return textwrap.wrap(text, max(20, width), max_lines=LINES, placeholder=" …")


def _heading(event: Event, time: str, paint: Callable[[str, str], str]) -> str:
    style = STYLES.get(event.type, "")
    symbol = paint(SYMBOLS.get(event.type, OTHER_SYMBOL), style)
    name = paint(_shown(f"{type_label(event):<13}"), style)
    notes = "  ".join(paint(_shown(mark), STYLES.get(mark, "dim")) for mark in notes_on(event))
    return f"{time:<{LEFT}}{symbol} {name}  {_shown(event.agent)}  {notes}".rstrip()


def _shown(text: str) -> str:
    return reveal(" ".join(text.split()) if "\n" in text else text, lambda c: f"<{code_of(c)}>")[0]
