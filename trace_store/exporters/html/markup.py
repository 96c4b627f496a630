"""HTML that content cannot break out of.

Invariant: only `Markup` is HTML; all other text is escaped inside an element. Only the elements and attributes in
`ALLOWED` can be created.

Invariant: every character of the content is on the page. Markdown marks stay, hidden by default; long content is
collapsed, never truncated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trace_store.exporters.overview import count_noun, line_count
from trace_store.exporters.prose import (
    CODE,
    TABLE,
    TEXT,
    ProsePiece,
    code_of,
    name_of,
    normalise_newlines,
    reveal,
    runs,
    split_prose,
)

ALLOWED: dict[str, frozenset[str]] = {
    "a": frozenset({"aria-current", "class", "href", "rel", "tabindex", "title"}),
    "article": frozenset({"aria-label", "class", "id", "tabindex"}),
    "b": frozenset({"class"}),
    "body": frozenset(),
    "button": frozenset({"class", "data-session", "type", "value"}),
    "code": frozenset({"class"}),
    "dd": frozenset({"class", "dir"}),
    "del": frozenset(),
    "details": frozenset({"class", "open"}),
    "div": frozenset(
        {
            *("class", "data-count", "data-hidden", "data-name", "data-start", "data-stop"),
            *("data-tip", "dir", "id"),
        }
    ),
    "dl": frozenset({"class"}),
    "dt": frozenset({"dir"}),
    "figcaption": frozenset(),
    "figure": frozenset(),
    "footer": frozenset(),
    "form": frozenset({"action", "aria-label", "class", "method", "role"}),
    "h1": frozenset({"dir"}),
    "h2": frozenset({"class"}),
    "h3": frozenset({"class"}),
    "head": frozenset(),
    "header": frozenset({"class"}),
    "html": frozenset({"lang"}),
    "i": frozenset({"class", "title"}),
    "img": frozenset({"alt", "src"}),
    "input": frozenset(
        {"aria-label", "autofocus", "checked", "id", "name", "placeholder", "type", "value"}
    ),
    "ins": frozenset(),
    "label": frozenset({"class"}),
    "li": frozenset({"class"}),
    "link": frozenset({"href", "rel"}),
    "main": frozenset({"class", "data-watch", "id", "tabindex"}),
    "mark": frozenset(),
    "meta": frozenset({"charset", "content", "http-equiv", "name"}),
    "meter": frozenset({"aria-label", "max", "value"}),
    "nav": frozenset({"aria-label", "class"}),
    "ol": frozenset({"class"}),
    "option": frozenset({"selected", "value"}),
    "p": frozenset({"class", "dir"}),
    "pre": frozenset({"class", "dir"}),
    "progress": frozenset({"aria-hidden", "max", "value"}),
    "section": frozenset({"aria-label", "class", "id"}),
    "select": frozenset({"aria-label", "name"}),
    "span": frozenset({"class", "dir", "id", "role", "title"}),
    "style": frozenset(),
    "summary": frozenset(),
    "table": frozenset({"class"}),
    "tbody": frozenset(),
    "td": frozenset({"class", "dir"}),
    "th": frozenset({"colspan", "dir", "scope"}),
    "thead": frozenset(),
    "time": frozenset({"datetime"}),
    "title": frozenset(),
    "tr": frozenset(),
    "ul": frozenset({"class"}),
}
"""Allowed elements with their attributes."""

_VOID = frozenset({"img", "input", "link", "meta"})
_NAMES = {"class_": "class"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Markup(str):
    """A string that is already HTML."""

    __slots__ = ()


def text(content: str) -> Markup:
    """Escape content.

    Invisible characters are shown by code, with their name as title.
    """
    return Markup(
        "".join(
            _invisible(run) if invisible else run.translate(_ESCAPES)
            for run, invisible in runs(content)
        )
    )


def plain(content: str) -> str:
    """Escape content for an attribute or title, where elements are not allowed."""
    return reveal(content, lambda c: f"<{code_of(c)}>")[0].translate(_ESCAPES)


def element(tag: str, /, *children: str, **attributes: str | bool) -> Markup:
    """Return an element with escaped text.

    True attributes have no value, False ones are omitted.

    Raises:
        KeyError: the element or attribute is not allowed.
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
    start_tag = f"<{' '.join(words)}>"
    if tag in _VOID:
        return Markup(start_tag)
    if tag == "pre":
        start_tag += "\n"  # browsers drop the first line feed
    return Markup(f"{start_tag}{concat(children)}</{tag}>")


def concat(children: Iterable[str]) -> Markup:
    """Concatenate children, escaping text."""
    return Markup("".join(c if isinstance(c, Markup) else text(c) for c in children))


def _invisible(run: str) -> str:
    title = f' title="{name_of(run)}"' if len(run) == 1 else ""
    return f'<i class="u"{title}>{" ".join(map(code_of, run))}</i>'


OUTPUT_LINES, OUTPUT_CHARACTERS = 60, 6000
PROSE_LINES, PROSE_CHARACTERS = 180, 18_000
"""Size shown of long content; the rest is collapsed."""
FOLDED_CHARACTERS = 750
"""Less than this is not worth collapsing."""

_HEADING = re.compile(r"(#{1,6})([ \t]+)(?=\S)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_ITEM = re.compile(r"( *)([-*+•]|\d{1,3}[.)])([ \t]+)(?=\S)")
_INLINE = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?<!\*)\*\*(?=[^\s*])(?P<bold>(?:(?!\*\*).)+?)(?<=[^\s*])\*\*(?!\*)"
)


def prose(content: str) -> Markup:
    """Return prose as paragraphs, lists and code; long prose is collapsed."""
    head: list[ProsePiece] = []
    rest: list[ProsePiece] = []
    lines, characters = PROSE_LINES, PROSE_CHARACTERS
    for piece in split_prose(normalise_newlines(content)):
        if lines <= 0 or characters <= 0:
            rest.append(piece)
            continue
        first, later = piece.text, ""
        if piece.kind == TEXT:
            first, later = _split_long(piece.text, lines, characters)
        head.append(ProsePiece(piece.kind, first, piece.language))
        if later:
            rest.append(ProsePiece(TEXT, later))
            lines = 0
        lines -= line_count(first)
        characters -= len(first)
    folded = "\n".join(piece.text for piece in rest)
    if len(folded) < FOLDED_CHARACTERS:
        return concat(map(_piece, [*head, *rest]))
    return concat([*map(_piece, head), _more(folded, concat(map(_piece, rest)))])


def preformatted(content: str) -> Markup:
    """Return preformatted text; long text is collapsed."""
    head, rest = _split_long(normalise_newlines(content), OUTPUT_LINES, OUTPUT_CHARACTERS)
    shown = element("pre", head, dir="auto")
    if not rest:
        return shown
    return concat([shown, _more(rest, element("pre", rest, dir="auto"))])


def _split_long(content: str, lines: int, characters: int) -> tuple[str, str]:
    """Split a text into its start and a rest that is worth collapsing, or ""."""
    end = -1
    for _ in range(lines):
        end = content.find("\n", end + 1)
        if end < 0:
            break
    head = end + 1 if end >= 0 else len(content)
    if head > characters:
        last = content.rfind("\n", 0, characters)
        head = last + 1 if last > characters // 2 else characters
    if len(content) - head < FOLDED_CHARACTERS:
        return content, ""
    return content[:head], content[head:]


def _more(rest: str, shown: Markup) -> Markup:
    lines = line_count(rest)
    what = count_noun(lines, "more line") if lines > 1 else count_noun(len(rest), "more character")
    return element("details", element("summary", what), shown, class_="more")


def _piece(piece: ProsePiece) -> Markup:
    if piece.kind == CODE:
        name = [element("span", piece.language, class_="lang")] if piece.language else []
        return element("div", *name, preformatted(piece.text), class_="code")
    if piece.kind == TABLE:
        return element("pre", piece.text, class_="table", dir="auto")
    return concat(_paragraphs(piece.text))


def _paragraphs(content: str) -> Iterator[Markup]:
    pending: list[str] = []

    def paragraph() -> Iterator[Markup]:
        if pending:
            indent = min(len(line) - len(line.lstrip(" ")) for line in pending)
            lines = Markup("\n".join(_spans(line[indent:]) for line in pending))
            pending.clear()
            if indent < 2:
                yield element("p", lines, dir="auto")
            else:
                yield element("p", lines, class_=_depth(indent), dir="auto")

    for line in content.split("\n"):
        heading, item, rule = _HEADING.match(line), _ITEM.match(line), _RULE.fullmatch(line)
        if heading or item or rule or not line.strip(" \t"):
            yield from paragraph()
        if heading:
            level = f"h{min(len(heading[1]), 4)}"
            mark = element("span", heading[0], class_="k")
            yield element("p", mark, _spans(line[heading.end() :]), class_=level, dir="auto")
        elif item:
            depth = f"li {_depth(len(item[1]))}"
            mark = element("span", item[2], class_="mark")
            yield element("p", mark, _spans(line[item.end() :]), class_=depth, dir="auto")
        elif rule:
            yield element("p", element("span", line, class_="k"), class_="rule")
        elif line.strip(" \t"):
            pending.append(line)
    yield from paragraph()


def _depth(indent: int) -> str:
    """Return the CSS class of an indentation."""
    return f"d{min(indent // 2, 4)}"


def _spans(line: str) -> Markup:
    shown: list[str] = []
    end = 0
    for match in _INLINE.finditer(line):
        shown.append(line[end : match.start()])
        if match["bold"]:
            stars = element("span", "**", class_="k")
            shown.append(element("b", stars, _spans(match["bold"]), stars))
        else:
            ticks = element("span", match["ticks"], class_="k")
            shown += [ticks, element("code", match["code"]), ticks]
        end = match.end()
    return concat([*shown, line[end:]])
