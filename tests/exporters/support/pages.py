"""A page as a browser reads it: its elements and their text."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"img", "input", "link", "meta"}


class Element(NamedTuple):
    """A start tag with the names of its ancestors."""

    tag: str
    attributes: dict[str, str]
    inside: tuple[str, ...]

    def has_class(self, name: str) -> bool:
        return name in self.attributes.get("class", "").split()


class Page(HTMLParser):
    """The elements of a page; unbalanced tags are an error."""

    def __init__(self, data: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.comments: list[str] = []
        self.text: list[tuple[Element, str]] = []
        self._open: list[Element] = []
        self._after_pre = False
        self.feed(data.decode("utf-8"))
        self.close()
        assert not self._open, f"left open: {self._open[-1]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        found = Element(tag, values, tuple(each.tag for each in self._open))
        assert len(found.attributes) == len(attrs), f"an attribute stands twice: {found}"
        self.elements.append(found)
        self._after_pre = tag == "pre"
        if tag not in VOID:
            self._open.append(found)

    def handle_endtag(self, tag: str) -> None:
        self._after_pre = False
        assert self._open, f"nothing is open: {tag}"
        assert self._open[-1].tag == tag, f"{tag} closes {self._open[-1]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._after_pre:  # browsers drop one line feed here
            data = data.removeprefix("\n")
            self._after_pre = False
        if self._open:
            self.text.append((self._open[-1], data))
        else:
            assert not data.strip(), f"text outside of everything: {data[:80]!r}"

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_pi(self, data: str) -> None:
        self.comments.append(data)

    def unknown_decl(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str, test: Callable[[Element], bool] = lambda _: True) -> list[Element]:
        return [each for each in self.elements if each.tag == tag and test(each)]

    def said(self) -> str:
        """Everything that is on the page as text."""
        return "".join(text for element, text in self.text if element.tag != "style")

    def said_in(self, tag: str, name: str = "") -> list[str]:
        """The text directly in each element of this kind."""
        return [
            text
            for element, text in self.text
            if element.tag == tag and (not name or element.has_class(name))
        ]


def fragment(markup: str) -> Page:
    """Some elements, as a page of their own."""
    return Page(f"<div>{markup}</div>".encode())
