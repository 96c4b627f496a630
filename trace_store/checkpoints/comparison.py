"""Comparison of two branches since they diverged, or of two that have nothing in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.checkpoints.work_state import WorkState, work_state
from trace_store.context.compiler import ContextCompiler
from trace_store.context.wording import excerpt
from trace_store.disk.files import Disk
from trace_store.exporters import files
from trace_store.exporters.contract import Exported
from trace_store.exporters.html.markup import Markup, concat, element
from trace_store.exporters.html.page import head
from trace_store.objects.address import Address
from trace_store.objects.parts import Part
from trace_store.store import revision as revisions

_EXCERPT_CHARACTERS = 200
_MOST_SHOWN = 500
"""Messages and other lines of one side on a page; the last ones are shown."""
NO_COMMON_START = "no common start: all messages of both are shown"


@value
class SideMessage:
    """A message that one side added: its address, role, and the beginning of its text."""

    address: Address
    role: str
    text: str


@value
class Side:
    """One side of a comparison.

    Attributes:
        name: the revision as it was given.
        tip: its commit.
        messages: visible messages since the fork point, or all without one.
        state: the work state of these messages, with their tokens.
        token_count: tokens of the whole context.
        outcome: the beginning of the last answer since the fork point, or "".
    """

    JSON = "commit=tip context_token_count=token_count *state"

    name: str
    tip: ObjectId
    messages: tuple[SideMessage, ...]
    state: WorkState
    token_count: int

    @property
    def outcome(self) -> str:
        return self.state.outcome

    def numbers(self) -> dict[str, int]:
        """Return its numbers, by name."""
        return {
            "messages": len(self.messages),
            "tokens": self.state.token_count,
            "context tokens": self.token_count,
            "commands": self.state.command_count,
            "errors": self.state.error_count,
        }

    def sections(self) -> dict[str, list[str]]:
        """Return what it did as lines of text, by topic; the numbers are not among them."""
        state = self.state
        return {
            "outcome": [state.outcome],
            "decisions": [each.text for each in state.decisions],
            "files": [f"{each.path}{' (written)' if each.writes else ''}" for each in state.files],
            "open": [*state.open_ends],
            "messages": [f"{each.role}: {each.text}" for each in self.messages],
        }


@value
class ForkComparison:
    """Two branches side by side.

    Attributes:
        point: the newest common commit; None if only messages are common, or nothing.
        left: the first side.
        right: the second side.
        is_related: whether they have a commit or a message in common.
    """

    JSON = "fork_point=point related=is_related"

    point: ObjectId | None
    left: Side
    right: Side
    is_related: bool = True

    @property
    def start(self) -> str:
        """Where they diverged, in words."""
        if self.point:
            return f"forked at {self.point.short()}"
        return "forked in the first messages" if self.is_related else NO_COMMON_START

    def save_page(self, path: str | os.PathLike[str]) -> None:
        """Write it as an HTML page; another page of Trace is replaced.

        Raises:
            AlreadyExistsError: the file exists, and Trace did not write it.
            StorageError: the disk refuses, or the folder does not exist.
        """
        page = comparison_page(self).encode("utf-8", "replace")
        file = Exported(page, (), os.path.basename(path))
        files.save_page(Disk(), os.path.abspath(path), file)


def compare_forks(contexts: ContextCompiler, left: str, right: str) -> ForkComparison:
    """Compare two branches, or other revisions, since they diverged; raises as `resolve_commit`."""
    tips = [revisions.resolve_commit(contexts.store, each) for each in (left, right)]
    point, *_ = revisions.commits_of(contexts.store).merge_bases(*tips) or (None,)
    if point is None:  # a fork from the middle of a first commit has the messages, but no commit
        first, second = (contexts.fold(tip).addresses() for tip in tips)
        shared = first & second
    else:
        shared = contexts.fold(point).addresses()
    one, two = (
        _side(contexts, name, tip, shared) for name, tip in zip((left, right), tips, strict=True)
    )
    return ForkComparison(point, one, two, point is not None or bool(shared))


def _side(contexts: ContextCompiler, name: str, tip: ObjectId, shared: Set[Address]) -> Side:
    context = contexts.compile(tip)
    counts = context.message_tokens()
    own = [
        (message, total)
        for message, (total, _) in zip(context.messages, counts, strict=True)
        if message.address not in shared
    ]
    messages = [message for message, _ in own]
    state = work_state(messages, sum(count for _, count in own))
    shown = tuple(
        SideMessage(m.address, m.role, excerpt(m.text, _EXCERPT_CHARACTERS) or _parts(m.parts))
        for m in messages
    )
    return Side(name, tip, shown, state, context.token_count)


def _parts(parts: Sequence[Part]) -> str:
    return ", ".join(getattr(part, "name", "") or part.type.replace("_", " ") for part in parts)


def comparison_page(found: ForkComparison) -> str:
    """Return the page."""
    top, table = comparison_parts(found)
    body = element("body", top, element("main", table))
    title = f"{found.left.name} and {found.right.name}"
    return f'<!doctype html>\n<html lang="en">\n{head(title)}\n{body}\n</html>\n'


def comparison_parts(
    found: ForkComparison,
    message: Callable[[Side, SideMessage], Markup] | None = None,
    names: Mapping[str, str] | None = None,
) -> tuple[Markup, Markup]:
    """Return the header and the table of a page.

    Args:
        found: the comparison.
        message: returns how a message is shown, by default as one line.
        names: what a side is called instead of its name.
    """
    sides = found.left, found.right
    top = element(
        "header",
        element("h1", "Comparison"),
        element("p", found.start, class_="kicker"),
        class_="top",
    )
    sections = [side.sections() for side in sides]
    rows = [_row("numbers", [_pairs(_numbers(side)) for side in sides])]
    for title in sections[0]:
        if title == "messages" and message is not None:
            shown = [_shown(message(side, each) for each in side.messages) for side in sides]
        else:
            shown = [_lines(each[title]) for each in sections]
        rows.append(_row(title, shown))
    heads = [
        element("th", (names or {}).get(side.name, side.name), scope="col", dir="auto")
        for side in sides
    ]
    table = element("table", element("thead", element("tr", *heads)), *rows, class_="sides")
    return top, table


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
    return _shown(element("p", line, dir="auto") for line in lines if line)


def _shown(elements: Iterable[Markup]) -> Markup:
    found = list(elements)
    more = len(found) - _MOST_SHOWN
    if more > 0:
        found = [element("p", f"{more:,} earlier ones", class_="none"), *found[more:]]
    return element("div", *(found or [element("p", "none", class_="none")]), class_="prose")


def _numbers(side: Side) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in side.numbers().items()]
