"""The text of a pull request: what was done, the decisions behind it, the commits.

GitHub refuses more than 65,536 characters. From a longer text, the least significant decisions are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from trace_store.base.frozen import replace
from trace_store.context.wording import excerpt
from trace_store.exporters.overview import count_noun
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import SIGNIFICANCES, Alternative, Event
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.views.markdown import (
    blocks_of,
    commit_item,
    decision_blocks,
    one_line,
)
from trace_store.trajectories.views.view import (
    View,
    event_text,
    percent,
    question_of,
    texts_of,
    web_address,
)

MAXIMUM_CHARACTERS = 60_000
_MAXIMUM_COMMITS = 100
_MAXIMUM_ALTERNATIVES = 10
_LINE_CHARACTERS, _PROSE_CHARACTERS = 300, 2_000
_LISTED = 20
_NOTE_CHARACTERS = 100
_FIRST, _SECOND = 0, 1
"""Ranks of blocks that come before all decisions."""


def pull_request(view: View, new: Collection[str] | None = None) -> str:
    """Return Markdown of at most `MAXIMUM_CHARACTERS` for the text of a pull request.

    Args:
        view: the trajectory; only its decisions, retrospective and links are shown.
        new: the commits of the code to be merged; None: all. A decision belongs to the first commit that was linked
            after it, and is shown if that commit is. A decision that no commit followed is shown, too.
    """
    decisions = _decisions(view.trajectory, new)
    links = [link for link in view.trajectory.links if new is None or link.commit in new]
    blocks = [(_FIRST, block) for block in _head(view)]
    blocks += [(_FIRST, "### Decisions")] if decisions else []
    blocks += [(_rank(each), _decision(each)) for each in decisions]
    blocks += [(_SECOND, block) for block in _tail(view.trajectory, links)]
    kept = _fitting(blocks)
    if len(kept) < len(blocks):
        kept.append(
            f"*{count_noun(len(blocks) - len(kept), 'part')} left out, to keep this short.*"
        )
    return "\n\n".join(kept) + "\n"


def _head(view: View) -> Iterator[str]:
    state, last = view.trajectory.state, view.trajectory.retrospective
    yield f"## {one_line(view.title, _LINE_CHARACTERS)}"
    notes = []
    if task := state.task:
        name = one_line(f"{task.system} {task.id}".strip(), _LINE_CHARACTERS)
        url = web_address(task.url)[:_PROSE_CHARACTERS]
        notes += [f"Task: {name}"] if name else []
        notes += [f"<{url.replace('>', '%3E')}>"] if url else []
    notes += [f"Confidence: {percent(state.confidence)}"] if state.confidence is not None else []
    notes.append(f"Trajectory: `{view.trajectory.id}`")
    yield " · ".join(notes)
    summary = event_text(last) if last is not None else state.description
    yield from blocks_of(_short(summary))


def _tail(trajectory: Trajectory, links: Sequence[Event]) -> Iterator[str]:
    last = trajectory.retrospective
    for name in ("challenges", "suggestions"):
        found = texts_of(last, name) if last is not None else []
        if found:
            yield f"### {name.capitalize()}"
            yield "\n".join(f"- {one_line(each, _LINE_CHARACTERS)}" for each in found[:_LISTED])
    if links:
        yield "### Commits"
        rows = [*map(commit_item, links[:_MAXIMUM_COMMITS])]
        if len(links) > len(rows):
            rows.append(f"- … and {len(links) - len(rows):,} more")
        yield "\n".join(rows)


def _decisions(trajectory: Trajectory, new: Collection[str] | None) -> list[Event]:
    """Return the decisions of new commits, and those that no commit followed, oldest first."""
    found: list[Event] = []
    is_new = True
    for event in reversed(trajectory.events):
        if event.type == ev.LINKED:
            is_new = new is None or event.commit in new
        elif event.type == ev.DECISION and is_new:
            found.append(event)
    return found[::-1]


def _fitting(blocks: Sequence[tuple[int, str]]) -> list[str]:
    """Return the blocks that fit, in their order; blocks of lower rank are kept before others."""
    left = MAXIMUM_CHARACTERS - _NOTE_CHARACTERS
    kept: set[int] = set()
    for number in sorted(range(len(blocks)), key=lambda number: blocks[number][0]):
        size = len(blocks[number][1]) + 2
        if size <= left:
            left -= size
            kept.add(number)
    return [block for number, (_, block) in enumerate(blocks) if number in kept]


def _rank(decision: Event) -> int:
    """Return the rank of a decision; without a significance, it counts as medium."""
    given = decision.significance
    place = SIGNIFICANCES.index(given if given in SIGNIFICANCES else "medium")
    return _SECOND + len(SIGNIFICANCES) - place


def _decision(event: Event) -> str:
    heading = f"#### {one_line(question_of(event) or event.content, _LINE_CHARACTERS)}"
    return "\n\n".join(decision_blocks(_cut(event), heading, shows_agent=False))


def _cut(event: Event) -> Event:
    """Return a decision with long texts cut."""
    data = {**event.data, "reasoning": _short(event.reasoning)}
    data["alternatives"] = [
        Alternative(excerpt(each.option, _LINE_CHARACTERS), excerpt(each.reason, _LINE_CHARACTERS))
        for each in event.alternatives[:_MAXIMUM_ALTERNATIVES]
    ]
    return replace(event, content=excerpt(event.content, _LINE_CHARACTERS), data=data)


def _short(text: str) -> str:
    if len(text) <= _PROSE_CHARACTERS:
        return text
    return text[:_PROSE_CHARACTERS].rstrip() + "…"
