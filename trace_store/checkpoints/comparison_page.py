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
    rows = [
        _row("Numbers", [_pairs((n, f"{count:,}") for n, count in numbers_of(s)) for s in sides]),
        _row("Outcome", [_lines([side.outcome]) for side in sides]),
        _row("Decisions", [_lines(each.text for each in s.state.decisions) for s in sides]),
        _row("Files", [_lines(_files(side)) for side in sides]),
        _row("Open", [_lines(side.state.open_ends) for side in sides]),
        _row("Messages", [_lines(f"{m.role}: {m.text}" for m in s.messages) for s in sides]),
    ]
    names = [element("th", side.name, scope="col", dir="auto") for side in sides]
    heads = element("thead", element("tr", *names))
    body = element("body", top, element("main", element("table", heads, *rows, class_="sides")))
    title = f"{found.left.name} and {found.right.name}"
    return f'<!doctype html>\n<html lang="en">\n{head(title)}\n{body}\n</html>\n'


def _row(title: str, contents: Sequence[Markup]) -> Markup:
    """Return a heading, and the contents of both sides beside each other."""
    heading = element("th", element("h2", title), colspan="2", scope="rowgroup")
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


def numbers_of(side: Side) -> list[tuple[str, int]]:
    """Return the numbers of a side, each with its name."""
    return [
        ("messages", len(side.messages)),
        ("tokens", side.state.token_count),
        ("context tokens", side.token_count),
        ("commands", side.state.command_count),
        ("errors", side.state.error_count),
    ]


def _files(side: Side) -> list[str]:
    return [f"{file.path}{' (written)' if file.writes else ''}" for file in side.state.files]
