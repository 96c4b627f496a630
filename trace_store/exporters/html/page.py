"""The page around the messages: head, title, facts, outline.

Rule: its policy names the style sheet by hash. Whoever changes `style.css` writes the new hash here; a test tells it.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator

from trace_store.errors import StorageError
from trace_store.exporters.contract import ExportSession, Losses, Turn
from trace_store.exporters.html.markup import Markup, element, joined, plain, preformatted
from trace_store.exporters.html.messages import Messages, anchor
from trace_store.exporters.overview import (
    Place,
    beginning,
    counted,
    facts_of,
    is_prompt,
    places,
    pretty,
    title_of,
)
from trace_store.objects.parts import Reasoning
from trace_store.oid import ObjectId

STYLE = "style.css"
STYLE_HASH = "sha256-+JCFEv6tGwVbXyUiBa1O+W0kQsNvVMB7xn9YVs/Eks4="
POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src '{STYLE_HASH}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
OUTLINE_CHARACTERS = 80
MADE_BY = b'<meta name="generator" content="Trace">'
"""By which a page is known to be one that may be replaced by another."""


def page_of(session: ExportSession, losses: Losses) -> Iterator[str]:
    """Yield the page in pieces, and count what is lost on it."""
    for below in session.subagents:
        losses.add("subagent", below.name)
    title = title_of(session)
    turns = list(places(session))
    yield f'<!doctype html>\n<html lang="en">\n{head(title)}\n<body>\n'
    yield element("header", *_top(session, title), class_="top") + "\n"
    yield '<div class="page">\n'
    yield element("nav", *_outline(session, turns), aria_label="Outline") + "\n<main>\n"
    messages = Messages(session, losses)
    for turn, place in turns:
        yield messages.article(turn, place) + "\n"
    if not turns:
        yield element("p", "This session has no messages.", class_="none") + "\n"
    yield "</main>\n</div>\n"
    yield element("footer", "Written by Trace from ", element("code", str(session.commit)))
    yield "\n</body>\n</html>\n"


@functools.cache
def style() -> str:
    """Return the style sheet.

    Raises:
        StorageError: it is not installed, or cannot be read.
    """
    try:
        data = pkgutil.get_data(__package__, STYLE)
    except OSError as error:
        raise StorageError("the style sheet cannot be read", path=error.filename) from error
    if data is None:
        raise StorageError("the style sheet is not installed", path=STYLE)
    return data.decode("utf-8")


def head(title: str, policy: str = POLICY) -> Markup:
    """Return the head of a page, given its title and what the browser may do."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        # The policy itself has nothing to escape, and its quotes must stay.
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="Trace"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", Markup(plain(title))),
        element("style", Markup(style())),
    )


def _top(session: ExportSession, title: str) -> Iterator[Markup]:
    yield element("p", session.format or "session", class_="kicker")
    yield element("h1", title, dir="auto")
    rows = [
        element("div", joined([element("dt", name), element("dd", value, dir="auto")]))
        for name, value in facts_of(session)
    ]
    yield element("dl", *rows, class_="facts")
    if session.tools:
        label = counted(len(session.tools), "tool schema")
        schemas = preformatted(pretty(list(session.tools)))
        yield element("details", element("summary", element("b", label)), schemas, class_="tools")


def _outline(session: ExportSession, turns: list[tuple[Turn, Place]]) -> Iterator[Markup]:
    yield from _filters(session)
    entries: list[Markup] = []
    told: ObjectId | None = None
    for turn, place in turns:
        # What one commit put in the place of others is one entry.
        if is_prompt(turn) or (turn.reason and turn.commit != told):
            entries.append(_entry(turn, place))
        told = turn.commit if turn.reason else None
    if entries:
        yield element("h2", "Prompts")
        yield element("ol", *entries)


def _entry(turn: Turn, place: Place) -> Markup:
    said = turn.reason or beginning(turn.message.text, OUTLINE_CHARACTERS)
    words = [element("span", said, dir="auto")]
    if place.tokens is not None:
        words.append(element("i", f"{place.total:,}", title="tokens so far"))
    link = element("a", *words, href=f"#{anchor(turn)}")
    return element("li", link, class_="summary" if turn.reason else "prompt")


def _filters(session: ExportSession) -> Iterator[Markup]:
    """Yield switches for what there is; the style sheet does the rest."""
    parts = [part for turn in session.turns for part in turn.message.parts]
    there = {
        "tools": any(part.type in ("tool_call", "tool_result") for part in parts),
        "reasoning": any(isinstance(part, Reasoning) for part in parts),
        "hidden": any(turn.hidden for turn in session.turns),
    }
    switches = [
        element("label", element("input", type="checkbox", id=f"show-{name}", checked=True), name)
        for name, found in there.items()
        if found
    ]
    switches.append(
        element("label", element("input", type="checkbox", id="show-marks"), "Markdown marks")
    )
    yield element("div", *switches, class_="switches")
