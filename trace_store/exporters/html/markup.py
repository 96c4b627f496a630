"""HTML that content cannot break out of.

Rule: only `Markup` is HTML; all other text is escaped on its way into an element. What elements and attributes there
are is in `ALLOWED`, and nothing else can be made.

Rule: every character of the content is on the page. Marks of Markdown stay beside what they mean, so that a reader may
see them; long content is folded, never cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trace_store.exporters.invisible import as_lines, code_of, name_of, reveal, runs
from trace_store.exporters.overview import counted, line_count
from trace_store.exporters.prose import CODE, TABLE, TEXT, Piece, pieces

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


OUTPUT_LINES, OUTPUT_CHARACTERS = 60, 6000
PROSE_LINES, PROSE_CHARACTERS = 180, 18_000
"""So much of what is long is shown; the rest is folded behind it."""
FOLDED_CHARACTERS = 750
"""Less than this is not worth folding."""

_HEADING = re.compile(r"(#{1,6})([ \t]+)(?=\S)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_ITEM = re.compile(r"( *)([-*+•]|\d{1,3}[.)])([ \t]+)(?=\S)")
_INLINE = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?<!\*)\*\*(?=[^\s*])(?P<bold>(?:(?!\*\*).)+?)(?<=[^\s*])\*\*(?!\*)"
)


def prose(content: str) -> Markup:
    """Return what somebody wrote, as paragraphs, lists and code; what is long is folded."""
    head: list[Piece] = []
    rest: list[Piece] = []
    lines, characters = PROSE_LINES, PROSE_CHARACTERS
    for piece in pieces(as_lines(content)):
        if lines <= 0 or characters <= 0:
            rest.append(piece)
            continue
        first, later = piece.text, ""
        if piece.kind == TEXT:
            first, later = _divided(piece.text, lines, characters)
        head.append(Piece(piece.kind, first, piece.language))
        if later:
            rest.append(Piece(TEXT, later))
            lines = 0
        lines -= line_count(first)
        characters -= len(first)
    folded = "\n".join(piece.text for piece in rest)
    if len(folded) < FOLDED_CHARACTERS:
        return joined(map(_piece, [*head, *rest]))
    return joined([*map(_piece, head), _more(folded, joined(map(_piece, rest)))])


def preformatted(content: str) -> Markup:
    """Return text as it stands; what is long is folded."""
    head, rest = _divided(as_lines(content), OUTPUT_LINES, OUTPUT_CHARACTERS)
    shown = element("pre", head, dir="auto")
    if not rest:
        return shown
    return joined([shown, _more(rest, element("pre", rest, dir="auto"))])


def _divided(content: str, lines: int, characters: int) -> tuple[str, str]:
    """Return the beginning of a text, and the rest when there is enough of it to be worth folding."""
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
    what = counted(lines, "more line") if lines > 1 else counted(len(rest), "more character")
    return element("details", element("summary", what), shown, class_="more")


def _piece(piece: Piece) -> Markup:
    if piece.kind == CODE:
        name = [element("span", piece.language, class_="lang")] if piece.language else []
        return element("div", *name, preformatted(piece.text), class_="code")
    if piece.kind == TABLE:
        return element("pre", piece.text, class_="table", dir="auto")
    return joined(_paragraphs(piece.text))


def _paragraphs(content: str) -> Iterator[Markup]:
    waiting: list[str] = []

    def paragraph() -> Iterator[Markup]:
        if waiting:
            indent = min(len(line) - len(line.lstrip(" ")) for line in waiting)
            lines = Markup("\n".join(_spans(line[indent:]) for line in waiting))
            waiting.clear()
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
            waiting.append(line)
    yield from paragraph()


def _depth(indent: int) -> str:
    """Return the class of what stands so many spaces in."""
    return f"d{min(indent // 2, 4)}"


def _spans(line: str) -> Markup:
    shown: list[str] = []
    end = 0
    for found in _INLINE.finditer(line):
        shown.append(line[end : found.start()])
        if found["bold"]:
            stars = element("span", "**", class_="k")
            shown.append(element("b", stars, _spans(found["bold"]), stars))
        else:
            ticks = element("span", found["ticks"], class_="k")
            shown += [ticks, element("code", found["code"]), ticks]
        end = found.end()
    return joined([*shown, line[end:]])
