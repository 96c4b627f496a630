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
    title = f"{found.left.name} and {found.right.name}"
    parted = found.point.short() if found.point else "the first messages"
    facts = _pairs([("forked at", parted)], "facts")
    top = element(
        "header",
        element("p", "fork comparison", class_="kicker"),
        element("h1", title, dir="auto"),
        facts,
        class_="top",
    )
    sections = [
        _section("Numbers", [_pairs(_numbers(side), "facts") for side in _sides(found)], found),
        _section("Outcome", [_lines([side.outcome]) for side in _sides(found)], found),
        _section(
            "Decisions", [_lines(d.text for d in s.state.decisions) for s in _sides(found)], found
        ),
        _section("Files", [_lines(_files(side)) for side in _sides(found)], found),
        _section("Open", [_lines(side.state.open_ends) for side in _sides(found)], found),
        _section("Messages", [_lines(_messages(side)) for side in _sides(found)], found),
    ]
    body = element("body", top, element("main", *sections))
    return f'<!doctype html>\n<html lang="en">\n{head(title)}\n{body}\n</html>\n'


def _sides(found: ForkComparison) -> tuple[Side, Side]:
    return found.left, found.right


def _section(title: str, contents: Sequence[Markup], found: ForkComparison) -> Markup:
    """Return a section with both sides next to each other, stacked on narrow screens."""
    columns = [
        element("div", element("dt", side.name, dir="auto"), element("dd", content, dir="auto"))
        for side, content in zip(_sides(found), contents, strict=True)
    ]
    return element("section", element("h2", title), element("dl", *columns, class_="facts"))


def _pairs(pairs: Iterable[tuple[str, str]], name: str) -> Markup:
    rows = [
        element("div", concat([element("dt", key), element("dd", said, dir="auto")]))
        for key, said in pairs
    ]
    return element("dl", *rows, class_=name)


def _lines(lines: Iterable[str]) -> Markup:
    shown = [element("p", line, dir="auto") for line in lines if line]
    return element("div", *(shown or [element("p", "none", class_="none")]), class_="prose")


def _numbers(side: Side) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in numbers_of(side)]


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


def _messages(side: Side) -> list[str]:
    return [f"{message.role}: {message.text}" for message in side.messages]
