"""Pages: a session's head, title, facts and outline around its messages, and the index of several sessions.

The content security policy names the style sheet by hash. After a change of `style.css`, update STYLE_HASH; a test
checks it. The policy of the index allows only the search script, by hash. Nothing is fetched.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterable, Iterator

from trace_store.errors import StorageError
from trace_store.exporters.contract import Exported, ExportSession, Losses, Turn
from trace_store.exporters.html.markup import Markup, concat, element, plain, preformatted
from trace_store.exporters.html.messages import Messages, anchor
from trace_store.exporters.overview import (
    MessageNumbers,
    count_noun,
    excerpt,
    is_prompt,
    number_turns,
    pretty,
    session_facts,
    title_of,
)
from trace_store.frozen import value
from trace_store.objects.parts import Reasoning
from trace_store.oid import ObjectId, sha256_base64

STYLE = "style.css"
STYLE_HASH = "sha256-2yynmfZtLOCus4Yg0YkNs2mAWz6zywchGSP9P5eehzQ="
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
"""Marks a page that a later export may overwrite."""
FILE_NAME = "index.html"
SCRIPT = """
const box = document.querySelector("input[type=search]");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const holds = (e) => words.every((w) => e.textContent.toLowerCase().includes(w));
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !holds(section);
    for (const li of section.querySelectorAll("li")) li.hidden = words.length > 0 && !holds(li);
  }
});
"""


def page_of(session: ExportSession, losses: Losses) -> Iterator[str]:
    """Yield the page in chunks and count losses."""
    for below in session.subagents:
        losses.add("subagent", below.name)
    title = title_of(session)
    turns = list(number_turns(session))
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
        StorageError: it is missing or cannot be read.
    """
    try:
        data = pkgutil.get_data(__package__, STYLE)
    except OSError as error:
        raise StorageError("cannot read the style sheet", path=error.filename) from error
    if data is None:
        raise StorageError("missing style sheet", path=STYLE)
    return data.decode("utf-8")


def head(title: str, policy: str = POLICY, sheet: str = "") -> Markup:
    """Return the head of a page with its title, content security policy and style sheet."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        # The policy needs no escaping, and its quotes must stay.
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="Trace"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", Markup(plain(title))),
        element("style", Markup(sheet or style())),
    )


def _top(session: ExportSession, title: str) -> Iterator[Markup]:
    yield element("p", session.format or "session", class_="kicker")
    yield element("h1", title, dir="auto")
    rows = [
        element("div", concat([element("dt", name), element("dd", value, dir="auto")]))
        for name, value in session_facts(session)
    ]
    yield element("dl", *rows, class_="facts")
    if session.tools:
        label = count_noun(len(session.tools), "tool schema")
        schemas = preformatted(pretty(list(session.tools)))
        yield element("details", element("summary", element("b", label)), schemas, class_="tools")


def _outline(session: ExportSession, turns: list[tuple[Turn, MessageNumbers]]) -> Iterator[Markup]:
    yield from _filters(session)
    entries: list[Markup] = []
    last_replacing: ObjectId | None = None
    for turn, place in turns:
        # Messages of one replacing commit are one entry.
        if is_prompt(turn) or (turn.reason and turn.commit != last_replacing):
            entries.append(_entry(turn, place))
        last_replacing = turn.commit if turn.reason else None
    if entries:
        yield element("h2", "Prompts")
        yield element("ol", *entries)


def _entry(turn: Turn, place: MessageNumbers) -> Markup:
    said = turn.reason or excerpt(turn.message.text, OUTLINE_CHARACTERS)
    words = [element("span", said, dir="auto")]
    if place.tokens is not None:
        words.append(element("i", f"{place.total:,}", title="tokens so far"))
    link = element("a", *words, href=f"#{anchor(turn)}")
    return element("li", link, class_="summary" if turn.reason else "prompt")


def _filters(session: ExportSession) -> Iterator[Markup]:
    """Yield the display switches that apply; the style sheet implements them."""
    parts = [part for turn in session.turns for part in turn.message.parts]
    available = {
        "tools": any(part.type in ("tool_call", "tool_result") for part in parts),
        "reasoning": any(isinstance(part, Reasoning) for part in parts),
        "hidden": any(turn.hidden for turn in session.turns),
    }
    switches = [
        element("label", element("input", type="checkbox", id=f"show-{name}", checked=True), name)
        for name, is_available in available.items()
        if is_available
    ]
    switches.append(
        element("label", element("input", type="checkbox", id="show-marks"), "Markdown marks")
    )
    yield element("div", *switches, class_="switches")


@value
class IndexEntry:
    """A session on the index page.

    Attributes:
        session: the session.
        file: name of its page in the same folder.
    """

    session: ExportSession
    file: str


def index_page(entries: Iterable[IndexEntry]) -> Exported:
    """Return the index page, most recent session first."""
    ordered = sorted(entries, key=lambda each: -_end(each.session))
    return Exported([chunk.encode() for chunk in _page(ordered)], (), FILE_NAME)


def _page(entries: list[IndexEntry]) -> Iterator[str]:
    title = count_noun(len(entries), "session")
    policy = f"{POLICY}; script-src 'sha256-{sha256_base64(SCRIPT.encode())}'"
    yield f'<!doctype html>\n<html lang="en">\n{head(title, policy)}\n<body>\n'
    search = element(
        "input", type="search", placeholder="Search titles and prompts", autofocus=True
    )
    yield element("header", element("h1", title), search, class_="top") + "\n<main>\n"
    for entry in entries:
        yield _section(entry) + "\n"
    yield f"</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


def _section(entry: IndexEntry) -> Markup:
    session = entry.session
    facts = dict(session_facts(session))
    details = [facts[name] for name in ("agent", "model", "folder", "time") if facts.get(name)]
    details.append(count_noun(len(session.turns), "message"))
    prompts = [
        element(
            "li",
            element(
                "a",
                excerpt(turn.message.text, 3 * OUTLINE_CHARACTERS),
                href=f"{entry.file}#{anchor(turn)}",
            ),
        )
        for turn in session.turns
        if is_prompt(turn)
    ]
    link = element("a", title_of(session), href=entry.file)
    return element(
        "section",
        element("h2", link, class_="role"),
        element("p", " · ".join(details), class_="kicker"),
        element("ol", *prompts),
        class_="session",
    )


def _end(session: ExportSession) -> int:
    return max((turn.time for turn in session.turns), default=0)
