"""Index page of several sessions: titles, times, prompts, with a search box.

Invariant: the content security policy allows only the search script, by hash. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trace_store.exporters.contract import Exported, ExportSession
from trace_store.exporters.html.markup import Markup, element
from trace_store.exporters.html.messages import anchor
from trace_store.exporters.html.page import OUTLINE_CHARACTERS, POLICY, head
from trace_store.exporters.overview import count_noun, excerpt, is_prompt, session_facts, title_of
from trace_store.frozen import value
from trace_store.oid import sha256_base64

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
