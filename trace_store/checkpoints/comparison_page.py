"""A fork comparison as a static HTML page, styled like an exported session."""

from __future__ import annotations

from trace_store.exporters.html.markup import Markup, concat, element
from trace_store.exporters.html.page import head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.checkpoints.comparison import ForkComparison, Side


def comparison_page(found: ForkComparison) -> str:
    """Return the page."""
    sides = found.left, found.right
    parted = found.point.short() if found.point else "the first messages"
    top = element(
        "header",
        element("h1", "Fork comparison"),
        _pairs([("forked at", parted)]),
        class_="top",
    )
    told = [side.sections() for side in sides]
    rows = [_row("numbers", [_pairs(_numbers(side)) for side in sides])]
    rows += [_row(title, [_lines(each[title]) for each in told]) for title in told[0]]
    names = [element("th", side.name, scope="col", dir="auto") for side in sides]
    heads = element("thead", element("tr", *names))
    body = element("body", top, element("main", element("table", heads, *rows, class_="sides")))
    title = f"{found.left.name} and {found.right.name}"
    return f'<!doctype html>\n<html lang="en">\n{head(title)}\n{body}\n</html>\n'


def _row(title: str, contents: Sequence[Markup]) -> Markup:
    """Return a heading, and the contents of both sides beside each other."""
    heading = element("th", element("h2", title.capitalize()), colspan="2", scope="rowgroup")
    cells = [element("td", content, dir="auto") for content in contents]
    return element("tbody", element("tr", heading), element("tr", *cells))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Markup:
    rows = [
        element("div", concat([element("dt", key), element("dd", said, dir="auto")]))
        for key, said in pairs
    ]
    return element("dl", *rows, class_="facts")


def _lines(lines: Iterable[str]) -> Markup:
    shown = [element("p", line, dir="auto") for line in lines if line]
    return element("div", *(shown or [element("p", "none", class_="none")]), class_="prose")


def _numbers(side: Side) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in side.numbers().items()]
