"""What all pages have: head, navigation, and helpers to write links.

Invariant: all HTML comes from `exporters.html.markup`, which escapes text, and the head, which is constant.
"""

from __future__ import annotations

import functools
import pkgutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from trace_store.base.frozen import value
from trace_store.base.ident import format_time
from trace_store.base.oid import sha256_base64
from trace_store.context.wording import excerpt
from trace_store.contracts.ref_names import BRANCHES, RECORDS
from trace_store.errors import StorageError
from trace_store.exporters.html.markup import Markup, concat, element, plain
from trace_store.exporters.html.page import style
from trace_store.exporters.overview import TITLE_CHARACTERS, count_noun, format_moment
from trace_store.repo.repository import Repo
from trace_store.trajectories.views.page import trajectory_style

SESSIONS, SESSION, CONTEXT, COMPARE, CHECKPOINTS, TRASH, TRAJECTORIES, TRAJECTORY, SEARCH = (
    *("/", "/session", "/context", "/compare", "/checkpoints", "/trash", "/trajectories"),
    *("/trajectory", "/search"),
)
RUNS, RUN = "/runs", "/run"
_SECTIONS = (
    (SESSIONS, "Sessions"),
    (RUNS, "Runs"),
    (CHECKPOINTS, "Checkpoints"),
    (COMPARE, "Compare"),
    (TRASH, "Trash"),
    (TRAJECTORIES, "Trajectories"),
)


SHORT = 16
"""Characters of a cell that is not wrapped."""
ENDING = 8
"""Characters of a name that tell sessions with the same title apart."""


@value
class Page:
    """One page.

    Attributes:
        title: what it shows.
        top: its header.
        main: its content.
        beside: the content of its outline; empty for none.
        watch: the start of the names of the refs that it shows, separated by spaces.
        section: the path of its entry in the navigation.
        query: the text of the search box.
        status: the HTTP status.
    """

    title: str
    top: Markup
    main: Markup
    beside: Markup = Markup("")
    watch: str = ""
    section: str = ""
    query: str = ""
    status: int = 200


def url(path: str, **query: str) -> str:
    """Return an address on this server; empty values are left out."""
    given = urlencode({name: text for name, text in query.items() if text})
    return f"{path}?{given}" if given else path


def link(text: str, path: str, class_: str = "", **query: str) -> Markup:
    """Return a link to a page of this server."""
    classes = {"class_": class_} if class_ else {}
    return element("a", text, href=url(path, **query), **classes)


def short(ref: str) -> str:
    """Return the name of a branch, from its full name; records keep their full names."""
    return ref.removeprefix(BRANCHES)


def full(name: str) -> str:
    """Return the full name of a branch or record, from what `short` returns."""
    return name if name.startswith(RECORDS) else f"{BRANCHES}{name}"


def titled(repo: Repo, *names: str) -> dict[str, str]:
    """Return what branches are called on a page, by name: the titles of their sessions, which differ."""
    titles = repo.sessions.titles(*map(full, names))
    shown = {name: excerpt(titles[full(name)], TITLE_CHARACTERS) or name for name in names}
    uses = Counter(shown.values())
    return {
        name: text if uses[text] == 1 or text == name else f"{text} · {name[-ENDING:]}"
        for name, text in shown.items()
    }


def moment(milliseconds: int) -> Markup:
    """Return a time in UTC, which the script shows in the reader's time zone."""
    if not milliseconds:
        return element("span", "no time", class_="none")
    shown = format_moment(milliseconds)[:16]
    return element("time", f"{shown} UTC", datetime=format_time(milliseconds))


def top(title: str, kicker: str = "", *more: Markup, class_: str = "top") -> Markup:
    """Return the header of a page."""
    words = [element("p", kicker, class_="kicker")] if kicker else []
    return element("header", *words, element("h1", title, dir="auto"), *more, class_=class_)


def table(heads: Iterable[str], rows: Sequence[Iterable[str]], none: str) -> Markup:
    """Return a table, or a sentence if it has no rows."""
    if not rows:
        return nothing(none)
    head = element("tr", *(element("th", each, scope="col") for each in heads))
    body = [element("tr", *map(_cell, row)) for row in rows]
    shown = element("table", element("thead", head), element("tbody", *body), class_="list")
    return element("div", shown, class_="wide")


def _cell(content: str) -> Markup:
    """Return a cell of a table; a short text, such as a number, stays on one line."""
    is_short = len(content) <= SHORT and not isinstance(content, Markup)
    return element("td", content, dir="auto", **({"class_": "short"} if is_short else {}))


def cards(items: Sequence[Markup], none: str, class_: str = "cards") -> Markup:
    """Return a list of cards, or a sentence if there are none."""
    return element("ul", *items, class_=class_) if items else nothing(none)


def counted(found: Sequence[Any], noun: str, most: int) -> Markup:
    """Return how many there are, of which a list shows the first ones."""
    more = f", the first {most} are shown" if len(found) > most else ""
    return element("p", f"{count_noun(len(found), noun)}{more}", class_="kicker")


def nothing(text: str) -> Markup:
    """Return a sentence in place of content."""
    return element("p", text, class_="none")


def problem(text: str) -> Markup:
    """Return a sentence about a wrong entry in a form, for the place below the form."""
    return element("p", text, class_="problem")


def facts(rows: Iterable[tuple[str, str]]) -> Markup:
    """Return pairs of a name and a value, without those that have no value."""
    shown = [
        element("div", element("dt", name), element("dd", text, dir="auto"))
        for name, text in rows
        if text
    ]
    return element("dl", *shown, class_="facts")


def select(
    name: str, label: str, options: Iterable[str] | Mapping[str, str], chosen: str
) -> Markup:
    """Return a choice, in which a mapping says what each option is called; the first option means any."""
    names = options if isinstance(options, Mapping) else {each: each for each in options}
    shown = [element("option", f"any {label}", value="")]
    shown += [
        element("option", text, value=each, selected=each == chosen)
        for each, text in names.items()
        if each
    ]
    return element("select", *shown, name=name, aria_label=label)


def field(name: str, text: str, hint: str, kind: str = "text") -> Markup:
    """Return a field of a form, which its hint labels."""
    return element("input", type=kind, name=name, value=text, placeholder=hint, aria_label=hint)


def form(path: str, label: str, *fields: Markup, button: str) -> Markup:
    """Return a form that opens a page."""
    send = element("button", button, type="submit")
    return element(
        "form", *fields, send, action=path, method="get", class_="filters", aria_label=label
    )


def document(page: Page, *, action_token: str, repository: str) -> str:
    """Return the whole page; `action_token` is empty if there are no actions."""
    live = element("span", id="live", role="status")
    search = element(
        "input",
        type="search",
        name="q",
        id="search",
        value=page.query,
        placeholder="Search messages",
        aria_label="Search messages",
    )
    bar = element(
        "div",
        element("nav", *_navigation(page.section), live, aria_label="Pages", class_="pages"),
        element("form", search, action=SEARCH, method="get", role="search"),
        class_="bar",
    )
    main = element("main", page.main, id="main", tabindex="-1", data_watch=page.watch)
    if page.beside:
        outline = element("nav", page.beside, aria_label="Outline", class_="outline")
        main = element("div", outline, main, class_="page")
    body = concat(
        [
            element("a", "Skip to content", href="#main", class_="skip"),
            bar,
            page.top,
            main,
            element("footer", "Trace · ", element("code", repository)),
        ]
    )
    return f'<!doctype html>\n<html lang="en">\n{_head(page.title, action_token)}\n<body>\n{body}\n</body>\n</html>\n'


def _navigation(section: str) -> list[Markup]:
    return [
        element("a", name, href=path, **({"aria_current": "page"} if path == section else {}))
        for path, name in _SECTIONS
    ]


def _head(title: str, action_token: str) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="trace-token", content=action_token),
        element("link", rel="icon", href="data:,"),
        element("link", rel="stylesheet", href=f"/static/{asset_name('app.css')}"),
        element("title", Markup(plain(f"{title} · Trace"))),
        Markup(f'<script src="/static/{asset_name("app.js")}" type="module"></script>'),
    )


@functools.cache
def asset(name: str) -> str:
    """Return a file that pages load: the script, or the style sheets of exported pages with what is new here.

    Raises:
        StorageError: it is missing.
    """
    data = pkgutil.get_data(__package__, name)
    if data is None:
        raise StorageError("missing file of the web page", path=name)
    text = data.decode("utf-8")
    return style() + trajectory_style() + text if name == "app.css" else text


@functools.cache
def asset_name(name: str) -> str:
    """Return the name of such a file on the server, which changes with its content."""
    digest = sha256_base64(asset(name).encode())
    return f"{''.join(c for c in digest[:16] if c.isalnum())}-{name}"
