"""Trajectories in Markdown: a page, several pages in one file, and a folder of files.

Invariant: recorded text never becomes page structure; see `exporters.markdown`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.context.wording import excerpt
from trace_store.exporters.markdown import collapse, fence, line, paragraphs
from trace_store.exporters.overview import count_noun, pretty
from trace_store.exporters.prose import TEXT, code_of, normalise_newlines, reveal, split_prose
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.reading import Chapter, Trajectory
from trace_store.trajectories.views.view import (
    LISTS,
    SHOWN_COMMIT,
    View,
    decision_line,
    event_text,
    minute,
    notes_on,
    question_of,
    span,
    text_of,
    texts_of,
    type_label,
    web_address,
)

MAXIMUM_MESSAGES = 200
"""How many messages of a chapter are shown."""
_HEADING_CHARACTERS = 200
_NAME_CHARACTERS = 50


def page_markdown(view: View, level: int = 1) -> str:
    """Return the page of a trajectory; `level` is the heading level of its title."""
    return "\n\n".join([*_head(view, level), *_body(view, level + 1)]) + "\n"


def bundle(views: Sequence[View]) -> str:
    """Return the pages of several trajectories as one, with a table of contents."""
    blocks = [f"# {count_noun(len(views), 'trajectory')}"]
    blocks.append(
        "\n".join(
            f"{number}. [{one_line(view.title)}](#t{number}), {one_line(view.trajectory.state.status)}"
            for number, view in enumerate(views, 1)
        )
    )
    for number, view in enumerate(views, 1):
        blocks += [f'<a id="t{number}"></a>', page_markdown(view, 2).rstrip("\n")]
    return "\n\n".join(blocks) + "\n"


def one_line(text: str, width: int = 0) -> str:
    """Return text on one line, escaped, and cut to `width` characters unless that is 0."""
    return line(_revealed(excerpt(text, width) if width else text))


def blocks_of(text: str) -> list[str]:
    """Return text as blocks: paragraphs, lists and code."""
    return [
        shown
        for piece in split_prose(normalise_newlines(text))
        if (
            shown := paragraphs(_revealed(piece.text))
            if piece.kind == TEXT
            else fence(_revealed(piece.text), piece.language or "text")
        )
    ]


def chapter_markdown(chapter: Chapter, messages: Sequence[str]) -> str:
    """Return a chapter as a page, with its decisions in full."""
    heading = _chapter_heading(chapter, 1)
    events = [block for event in chapter.events for block in _event(event, "", 2)]
    return "\n\n".join([*heading, *events, *_messages(messages)]) + "\n"


def decision_blocks(event: Event, heading: str, *, shows_agent: bool = True) -> list[str]:
    """Return a decision under a heading: the chosen option, the reasoning, and the alternatives."""
    notes = [event.agent, minute(event.time)] if shows_agent else []
    notes += notes_on(event)
    found = [heading, f"**{one_line(event.content)}**"]
    if not question_of(event):  # the heading already says what was chosen
        del found[1]
    found += [f"*{' · '.join(map(one_line, notes))}*"] if notes else []
    found += blocks_of(event.reasoning)
    if event.alternatives:
        rows = [
            f"- **{one_line(each.option)}**" + (f": {one_line(each.reason)}" if each.reason else "")
            for each in event.alternatives
        ]
        found += collapse(f"{count_noun(len(rows), 'alternative')} not chosen", ["\n".join(rows)])
    return found


def _head(view: View, level: int) -> Iterator[str]:
    state, task = view.trajectory.state, view.trajectory.state.task
    yield f"{'#' * level} {one_line(view.title)}"
    rows = [f"| {name} | {one_line(text)} |" for name, text in view.facts()]
    if task is not None and (url := web_address(task.url)):
        rows.append(f"| link | <{url.replace('>', '%3E').replace('|', '%7C')}> |")
    yield "\n".join(["| | |", "|---|---|", *rows])
    yield from blocks_of(state.description)
    if task is not None and task.description != state.description:
        yield from blocks_of(task.description)


def _body(view: View, level: int) -> Iterator[str]:
    marks_ = "#" * level
    trajectory, last = view.trajectory, view.trajectory.retrospective
    if last is not None:
        yield f"{marks_} Summary"
        yield from blocks_of(event_text(last))
    if trajectory.decisions:
        yield f"{marks_} Decisions"
    numbers = {event.id: f"d{number}" for number, event in enumerate(trajectory.decisions, 1)}
    for event in trajectory.decisions:
        yield from decision_blocks(event, _decision_heading(event, numbers[event.id], level + 1))
    chapters = view.chapters
    if chapters:
        yield f"{marks_} Chapters"
    for chapter, messages in chapters:
        yield from _chapter_heading(chapter, level + 1)
        for event in chapter.events:
            yield from _event(event, numbers.get(event.id, ""), 0)
        yield from _messages(messages)
    if view.hidden_thoughts:
        yield f"*{count_noun(view.hidden_thoughts, 'thought')} left out*"
    yield from _retrospective(last, level)
    yield from _code(view, level)


def _chapter_heading(chapter: Chapter, level: int) -> list[str]:
    title = one_line(chapter.title) or "Before the first chapter"
    about = f"*{one_line(chapter.agent)} · {span(chapter.started, chapter.ended)}*"
    return [f"{'#' * level} {title}", about]


def _decision_heading(event: Event, number: str, level: int) -> str:
    title = one_line(question_of(event) or event.content, _HEADING_CHARACTERS)
    return f"{'#' * level} {number}{'. ' if number else ''}{title}"


def _event(event: Event, number: str, level: int) -> Iterator[str]:
    """Yield an event. A decision with a number is only referred to, because it is shown in full elsewhere."""
    if event.type == ev.DECISION and level:
        yield from decision_blocks(event, _decision_heading(event, number, level))
        return
    notes = [minute(event.time), event.agent, *([] if number else notes_on(event))]
    start = f"**{one_line(type_label(event))}** {number}".rstrip()
    yield f"{start} · {' · '.join(map(one_line, notes))}"
    if number:
        yield f"> {one_line(decision_line(event))}"
    else:
        for block in blocks_of(event_text(event)):
            yield "\n".join(f"> {each}" for each in block.split("\n"))


def _messages(messages: Sequence[str]) -> list[str]:
    if not messages:
        return []
    shown = [_revealed(each) for each in messages[:MAXIMUM_MESSAGES]]
    if len(messages) > len(shown):
        shown.append(f"… and {len(messages) - len(shown):,} more")
    heading = f"{count_noun(len(messages), 'message')} of the agents' sessions"
    return collapse(heading, [fence("\n".join(shown))])


def _retrospective(last: Event | None, level: int) -> Iterator[str]:
    if last is None:
        return
    approach = text_of(last, "approach")
    if approach or any(texts_of(last, name) for name in LISTS):
        yield f"{'#' * level} Retrospective"
    yield from blocks_of(approach)
    for name in LISTS:
        if texts_of(last, name):
            yield f"**{name.capitalize()}**"
            yield "\n".join(f"- {one_line(each)}" for each in texts_of(last, name))


def _code(view: View, level: int) -> Iterator[str]:
    trajectory = view.trajectory
    if trajectory.links:
        yield f"{'#' * level} Code"
        yield "\n".join(map(commit_item, trajectory.links))
    if trajectory.files:
        rows = [f"- {one_line(path)}" for path in trajectory.files]
        yield from collapse(count_noun(len(rows), "file"), ["\n".join(rows)])


def commit_item(link: Event) -> str:
    """Return a linked commit of the code as an item of a list."""
    subject = one_line(text_of(link, "subject"), _HEADING_CHARACTERS)
    return f"- `{_hex(link.commit)}` {subject}".rstrip()


def _hex(commit: str) -> str:
    return "".join(c for c in commit if c.isalnum())[:SHOWN_COMMIT]


def _revealed(text: str) -> str:
    """Show invisible characters by code."""
    return reveal(text, lambda c: f"<{code_of(c)}>")[0]


def folder_files(
    view: View, render: Callable[[Trajectory], Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of each file; the path is relative to the folder, with slashes.

    Args:
        view: the trajectory.
        render: returns the whole trajectory as JSON values, for `trajectory.json`.
    """
    yield "README.md", page_markdown(view)
    yield "trajectory.json", pretty(render(view.trajectory)) + "\n"
    for number, (chapter, messages) in enumerate(view.chapters, 1):
        name = f"{number:02}-{file_name(chapter.title or 'start')}.md"
        yield f"chapters/{name}", chapter_markdown(chapter, messages)
    for number, event in enumerate(view.events, 1):
        raw = event.data.get("raw")
        if isinstance(raw, str):
            yield f"artifacts/{number:04}-{file_name(event.type)}.txt", raw
        elif raw is not None:
            text = json.dumps(raw, ensure_ascii=True, indent=2) + "\n"
            yield f"artifacts/{number:04}-{file_name(event.type)}.json", text


def file_name(title: str) -> str:
    """Return a title as part of a file name that is valid on every file system."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in title.lower()).split()
    return "-".join(words)[:_NAME_CHARACTERS].strip("-") or "untitled"
