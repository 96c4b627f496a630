"""HTML that content cannot break out of.

Rule: only `Markup` is HTML; all other text is escaped on its way into an element. What elements and attributes there
are is in `ALLOWED`, and nothing else can be made.
"""

from __future__ import annotations

from collections.abc import Iterable

from trace_store.exporters.visible import code_of, name_of, reveal, runs

ALLOWED: dict[str, frozenset[str]] = {
    "a": frozenset({"class", "href", "title"}),
    "article": frozenset({"class", "id"}),
    "b": frozenset({"class"}),
    "body": frozenset(),
    "code": frozenset({"class"}),
    "dd": frozenset({"class", "dir"}),
    "details": frozenset({"class", "open"}),
    "div": frozenset({"class", "dir"}),
    "dl": frozenset({"class"}),
    "dt": frozenset({"dir"}),
    "figcaption": frozenset(),
    "figure": frozenset(),
    "footer": frozenset(),
    "h1": frozenset({"dir"}),
    "h2": frozenset({"class"}),
    "h3": frozenset({"class"}),
    "head": frozenset(),
    "header": frozenset({"class"}),
    "html": frozenset({"lang"}),
    "i": frozenset({"class", "title"}),
    "img": frozenset({"alt", "src"}),
    "input": frozenset({"autofocus", "checked", "id", "placeholder", "type"}),
    "label": frozenset(),
    "li": frozenset({"class"}),
    "link": frozenset({"href", "rel"}),
    "main": frozenset(),
    "meta": frozenset({"charset", "content", "http-equiv", "name"}),
    "nav": frozenset({"aria-label"}),
    "ol": frozenset(),
    "p": frozenset({"class", "dir"}),
    "pre": frozenset({"class", "dir"}),
    "progress": frozenset({"aria-hidden", "max", "value"}),
    "section": frozenset({"class"}),
    "span": frozenset({"class", "dir", "title"}),
    "style": frozenset(),
    "summary": frozenset(),
    "time": frozenset({"datetime"}),
    "title": frozenset(),
}
"""The elements of a page, each with the attributes it may have."""

_VOID = frozenset({"img", "input", "link", "meta"})
_NAMES = {"class_": "class", "http_equiv": "http-equiv", "aria_label": "aria-label"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(content: str) -> Markup:
    """Return content as HTML; what would not be seen is shown by its code, with its name behind it."""
    return Markup(
        "".join(
            _unseen(run) if unseen else run.translate(_ESCAPES) for run, unseen in runs(content)
        )
    )


def plain(content: str) -> str:
    """Return content fit for an attribute or a title, where there can be no elements."""
    return reveal(content, lambda c: f"<{code_of(c)}>")[0].translate(_ESCAPES)


def element(tag: str, /, *children: str, **attributes: str | bool) -> Markup:
    """Return an element; text in it is escaped. An attribute that is true stands alone, one that is false is left out.

    Raises:
        KeyError: the page has no such element, or not with such an attribute.
    """
    allowed, words = ALLOWED[tag], [tag]
    for given, value in attributes.items():
        name = _NAMES.get(given, given.replace("_", "-"))
        if name not in allowed:
            raise KeyError(f"{tag} {name}")
        if value is True:
            words.append(name)
        elif value is not False:
            words.append(f'{name}="{plain(value)}"')
    opening = f"<{' '.join(words)}>"
    if tag in _VOID:
        return Markup(opening)
    if tag == "pre":
        opening += "\n"  # readers drop one line feed here, which must not be the content's own
    return Markup(f"{opening}{joined(children)}</{tag}>")


def joined(children: Iterable[str]) -> Markup:
    """Return children one after the other; text is escaped."""
    return Markup("".join(c if isinstance(c, Markup) else text(c) for c in children))


def _unseen(run: str) -> str:
    title = f' title="{name_of(run)}"' if len(run) == 1 else ""
    return f'<i class="u"{title}>{" ".join(map(code_of, run))}</i>'
