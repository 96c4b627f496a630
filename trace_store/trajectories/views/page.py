"""Trajectories as static HTML pages: the page of a trajectory, and its timeline.

Invariant: a page runs no script and fetches nothing; see `exporters.html`. Only `markup` escapes text.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator, Mapping, Sequence

from trace_store.base.oid import sha256_base64
from trace_store.context.wording import excerpt
from trace_store.errors import StorageError
from trace_store.exporters.html.markup import Markup, concat, element, prose
from trace_store.exporters.html.page import POLICY, STYLE_HASH, head, style
from trace_store.exporters.overview import count_noun, format_moment
from trace_store.objects.address import Address
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.reading import Chapter
from trace_store.trajectories.views.markdown import MAXIMUM_MESSAGES
from trace_store.trajectories.views.timeline import summary
from trace_store.trajectories.views.view import (
    LISTS,
    SHOWN_COMMIT,
    View,
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

STYLE = "trajectory.css"
_OUTLINE_CHARACTERS = 80
_SIGNIFICANT = ("high", "critical")


def page_html(view: View) -> str:
    """Return the page of a trajectory."""
    top, outline, main = page_parts(view)
    body = element(
        "div",
        element("nav", outline, aria_label="Outline"),
        element("main", main),
        class_="page",
    )
    return _document(view, top, body)


def page_parts(view: View) -> tuple[Markup, Markup, Markup]:
    """Return the header, the outline and the content of the page of a trajectory."""
    trajectory, last = view.trajectory, view.trajectory.retrospective
    numbers = {event.id: number for number, event in enumerate(trajectory.decisions, 1)}
    parts = [
        _part("summary", "Summary", _summary(view)),
        _part(
            "decisions", "Decisions", [_decision(e, numbers[e.id]) for e in trajectory.decisions]
        ),
        *_chapters(view, numbers),
        _part("retrospective", "Retrospective", _retrospective(last) if last else ()),
        _part("code", "Code", _code(view)),
    ]
    return _top(view, "trajectory"), concat(_outline(view)), concat(parts)


def timeline_html(view: View) -> str:
    """Return the timeline of a trajectory as a page."""
    days: list[tuple[str, list[Markup]]] = []
    for event in view.events:
        day = format_moment(event.time)[:10] or "no time"
        if not days or days[-1][0] != day:
            days.append((day, []))
        days[-1][1].append(_timeline_item(event))
    sections = [
        element("section", element("h2", day), element("ol", *items), class_="timeline")
        for day, items in days
    ]
    return _document(view, _top(view, "timeline"), element("main", *sections))


def _document(view: View, top: Markup, content: Markup) -> str:
    title, sheet = view.title, style() + trajectory_style()
    policy = POLICY.replace(STYLE_HASH, f"sha256-{sha256_base64(sheet.encode())}")
    foot = element("footer", "Written by Trace from ", element("code", view.trajectory.id))
    body = element("body", top, content, foot)
    return f'<!doctype html>\n<html lang="en">\n{head(title, policy, sheet)}\n{body}\n</html>\n'


@functools.cache
def trajectory_style() -> str:
    """Return the style sheet of trajectories, which follows that of exported pages."""
    data = pkgutil.get_data(__package__, STYLE)
    if data is None:
        raise StorageError("missing style sheet", path=STYLE)
    return data.decode("utf-8")


def _top(view: View, kicker: str) -> Markup:
    rows = [
        (name, element("dd", _fact(view, name, text), dir="auto")) for name, text in view.facts()
    ]
    facts = element(
        "dl",
        *(element("div", concat([element("dt", name), shown])) for name, shown in rows),
        class_="facts",
    )
    title = element("h1", view.title, dir="auto")
    return element("header", element("p", kicker, class_="kicker"), title, facts, class_="top")


def _fact(view: View, name: str, text: str) -> str:
    task = view.trajectory.state.task
    if name == "task" and task is not None and (url := web_address(task.url)):
        return element("a", text, href=url)
    if name == "status":
        return element("span", text, class_=f"mark {text}")
    return text


def _part(name: str, title: str, content: Sequence[Markup] | Iterator[Markup]) -> Markup:
    """Return a part of the page; nothing if it has no content."""
    shown = list(content)
    if not shown:
        return Markup("")
    return element("section", element("h2", title), *shown, class_="part", id=name)


def _summary(view: View) -> Iterator[Markup]:
    state, last = view.trajectory.state, view.trajectory.retrospective
    if last is not None and event_text(last):
        yield element("div", prose(event_text(last)), class_="prose callout")
    wanted = dict.fromkeys((state.description, state.task.description if state.task else ""))
    for text in filter(None, wanted):
        yield element("div", prose(text), class_="prose")


def _decision(event: Event, number: int) -> Markup:
    title = [
        element("span", f"{number}", class_="n"),
        element("b", question_of(event) or event.content),
    ]
    if question_of(event):
        title.append(element("span", event.content, class_="chosen", dir="auto"))
    body = [_notes([event.agent, minute(event.time)], notes_on(event))]
    if event.reasoning:
        body.append(element("div", prose(event.reasoning), class_="prose"))
    if event.alternatives:
        rows = [
            concat([element("dt", each.option, dir="auto"), element("dd", each.reason, dir="auto")])
            for each in event.alternatives
        ]
        body += [element("p", "Not chosen", class_="kicker"), element("dl", *rows, class_="others")]
    folded = element("details", element("summary", *title), *body, open=True)
    return element("article", folded, class_="decision", id=f"d{number}")


def _chapters(view: View, numbers: Mapping[Address, int]) -> Iterator[Markup]:
    shown = [
        _chapter(f"c{number}", chapter, [_event(e, numbers) for e in chapter.events], messages)
        for number, (chapter, messages) in enumerate(view.chapters, 1)
    ]
    if view.hidden_thoughts:
        left_out = f"{count_noun(view.hidden_thoughts, 'thought')} left out"
        shown.append(element("p", left_out, class_="none"))
    yield _part("chapters", "Chapters", shown)


def _chapter(
    name: str, chapter: Chapter, events: Sequence[Markup], messages: Sequence[str]
) -> Markup:
    title = element("h3", chapter.title or "Before the first chapter")
    about = _notes([chapter.agent, span(chapter.started, chapter.ended)], ())
    folded = []
    if messages:
        heading = element("b", count_noun(len(messages), "message"))
        rows = [element("li", each) for each in messages[:MAXIMUM_MESSAGES]]
        more = len(messages) - len(rows)
        rows += [element("li", f"… and {more:,} more")] if more else []
        inside = (element("summary", heading, "of the agents' sessions"), element("ol", *rows))
        folded = [element("details", *inside, class_="folded")]
    return element("section", title, about, *events, *folded, class_="chapter", id=name)


def _event(event: Event, numbers: Mapping[Address, int]) -> Markup:
    """Return an event of a chapter; a decision is a link to its full text."""
    number = numbers.get(event.id)
    notes = _notes([minute(event.time), event.agent], [] if number else notes_on(event))
    label = element("b", type_label(event))
    if number:
        link = element("a", summary(event), href=f"#d{number}")
        content = element("div", element("p", link, dir="auto"), class_="prose")
    else:
        content = element("div", prose(event_text(event)), class_="prose")
    return element("div", element("p", label, class_="type"), notes, content, class_=_class(event))


def _timeline_item(event: Event) -> Markup:
    """Return an event of a timeline."""
    moment = format_moment(event.time)
    stamp = f"{moment.replace(' ', 'T')}Z" if moment else ""
    time = element("time", moment[11:16], datetime=stamp) if stamp else element("span", "")
    about = [time, element("b", type_label(event)), element("span", event.agent, class_="who")]
    about += [element("span", mark, class_="mark") for mark in notes_on(event)]
    text = excerpt(summary(event), 600)
    shown = [element("p", text, class_="said", dir="auto")] if text else []
    if event.type == ev.DECISION and event.reasoning:
        shown.append(element("p", excerpt(event.reasoning, 600), class_="peek", dir="auto"))
    return element("li", element("p", *about, class_="about"), *shown, class_=_class(event))


def _class(event: Event) -> str:
    """Return the classes of an event: its type, if it is a known one, and its weight."""
    words = ["event", event.type if event.type in ev.TYPES else ""]
    words.append("significant" if event.significance in _SIGNIFICANT else "")
    return " ".join(filter(None, words))


def _notes(texts: Sequence[str], marks_: Sequence[str]) -> Markup:
    shown = [element("span", text, dir="auto") for text in texts if text]
    shown += [element("span", mark, class_="mark") for mark in marks_]
    return element("p", *shown, class_="about")


def _retrospective(last: Event) -> Iterator[Markup]:
    if approach := text_of(last, "approach"):
        yield element("div", prose(approach), class_="prose")
    for name in LISTS:
        if found := texts_of(last, name):
            yield element("h3", name.capitalize())
            items = [element("li", element("div", prose(each), class_="prose")) for each in found]
            yield element("ol", *items)


def _code(view: View) -> Iterator[Markup]:
    trajectory = view.trajectory
    if trajectory.links:
        rows = [
            element(
                "li", element("code", link.commit[:SHOWN_COMMIT]), " ", text_of(link, "subject")
            )
            for link in trajectory.links
        ]
        yield element("ol", *rows)
    if trajectory.files:
        heading = element("summary", element("b", count_noun(len(trajectory.files), "file")))
        rows = [element("li", element("code", path)) for path in trajectory.files]
        yield element("details", heading, element("ol", *rows), class_="folded", open=True)


def _outline(view: View) -> Iterator[Markup]:
    decisions = [
        (f"d{number}", question_of(event) or event.content)
        for number, event in enumerate(view.trajectory.decisions, 1)
    ]
    chapters = [
        (f"c{number}", chapter.title or "Before the first chapter")
        for number, (chapter, _) in enumerate(view.chapters, 1)
    ]
    for title, entries in (("Decisions", decisions), ("Chapters", chapters)):
        if entries:
            yield element("h2", title)
            yield element(
                "ol",
                *(
                    element("li", element("a", _entry(text), href=f"#{name}"))
                    for name, text in entries
                ),
            )


def _entry(text: str) -> Markup:
    return element("span", excerpt(text, _OUTLINE_CHARACTERS), dir="auto")
