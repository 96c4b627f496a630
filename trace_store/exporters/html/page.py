"""Pages: a session's head, title, facts, outline and messages, and the index of several sessions.

The content security policy names the style sheet by hash. After a change of `style.css`, update STYLE_HASH; a test
checks it. The policy of the index allows only the search script, by hash. Nothing is fetched.

A message's element depends on its turn, and holds the results of its calls. From the rest of the session it takes only
the message number, token totals, credited authors, and links between calls and later results. What cannot be shown is
counted as a loss.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.ident import format_time
from trace_store.base.oid import ObjectId, sha256_base64
from trace_store.context.compiled import CompiledMessage
from trace_store.context.wording import excerpt
from trace_store.errors import StorageError
from trace_store.exporters.contract import Exported, ExportSession, Losses, SessionTurn
from trace_store.exporters.html.markup import Markup, concat, element, plain, preformatted, prose
from trace_store.exporters.overview import (
    ENCRYPTED_REASONING,
    Call,
    MessageNumbers,
    count_noun,
    credited_authors,
    format_moment,
    is_prompt,
    line_count,
    message_marks,
    number_turns,
    parse_exact_json,
    pretty,
    result_turns,
    session_facts,
    title_of,
    tool_calls,
    usage_note,
)
from trace_store.objects.parts import (
    Data,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.providers.media import IMAGE_TYPES, split_image

STYLE = "style.css"
STYLE_HASH = "sha256-hNlf5y2jGTy2pG1mETthvLL+GYLT1srniRKrF0Hhbe0="
POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src '{STYLE_HASH}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
OUTLINE_CHARACTERS = 80
MADE_BY = b'<meta name="generator" content="Trace">'
"""Marks a page that a later export may overwrite."""
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
OPEN_LINES, OPEN_CHARACTERS = 8, 800
"""Longer calls and results are collapsed."""
NEAR = 20
"""A result at most this many messages after its call is shown inside of it."""
PEEK_CHARACTERS = 90
INJECTED = ("instruction", "freeform", "artifact")
"""Kinds of user messages that a program wrote on a person's behalf."""


def page_of(session: ExportSession, losses: Losses) -> Iterator[str]:
    """Yield the page in chunks and count losses."""
    for subagent in session.subagents:
        losses.add("subagent", subagent.name)
    title = title_of(session)
    messages = Messages(session, losses)
    yield f'<!doctype html>\n<html lang="en">\n{head(title)}\n<body>\n'
    yield element("header", *_top(session, title), class_="top") + "\n"
    yield '<div class="page">\n'
    yield element("nav", *_outline(session, messages.turns), aria_label="Outline") + "\n<main>\n"
    for article in messages.articles():
        yield article + "\n"
    if not messages.turns:
        yield element("p", "This session has no messages.", class_="none") + "\n"
    yield "</main>\n</div>\n"
    yield element("footer", "Written by Trace from ", element("code", str(session.commit)))
    yield "\n</body>\n</html>\n"


@functools.cache
def style() -> str:
    """Return the style sheet.

    Raises:
        StorageError: it is missing or cannot be read.
    """
    try:
        data = pkgutil.get_data(__package__, STYLE)
    except OSError as error:
        raise StorageError("cannot read the style sheet", path=error.filename) from error
    if data is None:
        raise StorageError("missing style sheet", path=STYLE)
    return data.decode("utf-8")


def head(title: str, policy: str = POLICY, sheet: str = "") -> Markup:
    """Return the head of a page with its title, content security policy and style sheet."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        # The policy needs no escaping, and its quotes must stay.
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="Trace"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", Markup(plain(title))),
        element("style", Markup(sheet or style())),
    )


def _top(session: ExportSession, title: str) -> Iterator[Markup]:
    yield element("p", session.format or "session", class_="kicker")
    yield element("h1", title, dir="auto")
    rows = [
        element("div", concat([element("dt", name), element("dd", value, dir="auto")]))
        for name, value in session_facts(session)
    ]
    yield element("dl", *rows, class_="facts")
    if session.tools:
        label = count_noun(len(session.tools), "tool schema")
        schemas = preformatted(pretty(list(session.tools)))
        yield element("details", element("summary", element("b", label)), schemas, class_="tools")


def _outline(
    session: ExportSession, turns: list[tuple[SessionTurn, MessageNumbers]]
) -> Iterator[Markup]:
    yield from _filters(session)
    entries: list[Markup] = []
    last_replacing_commit: ObjectId | None = None
    for turn, place in turns:
        # Consecutive messages with which one commit replaces others share one entry.
        if is_prompt(turn) or (turn.reason and turn.commit != last_replacing_commit):
            entries.append(_entry(turn, place))
        last_replacing_commit = turn.commit if turn.reason else None
    if entries:
        yield element("h2", "Prompts")
        yield element("ol", *entries)


def _entry(turn: SessionTurn, place: MessageNumbers) -> Markup:
    said = turn.reason or excerpt(turn.message.text, OUTLINE_CHARACTERS)
    words = [element("span", said, dir="auto")]
    if place.tokens is not None:
        words.append(element("i", f"{place.total:,}", title="tokens so far"))
    link = element("a", *words, href=f"#{anchor(turn)}")
    return element("li", link, class_="summary" if turn.reason else "prompt")


def _filters(session: ExportSession) -> Iterator[Markup]:
    """Yield the display switches that apply; the style sheet implements them."""
    parts = [part for turn in session.turns for part in turn.message.parts]
    available = {
        "tools": any(part.type in ("tool_call", "tool_result") for part in parts),
        "reasoning": any(isinstance(part, Reasoning) for part in parts),
        "hidden": any(turn.hidden for turn in session.turns),
    }
    switches = [
        element("label", element("input", type="checkbox", id=f"show-{name}", checked=True), name)
        for name, is_available in available.items()
        if is_available
    ]
    switches.append(
        element("label", element("input", type="checkbox", id="show-marks"), "Markdown marks")
    )
    yield element("div", *switches, class_="switches")


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
    return Exported([chunk.encode() for chunk in _index_chunks(ordered)], (), FILE_NAME)


def _index_chunks(entries: list[IndexEntry]) -> Iterator[str]:
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


def anchor(turn: SessionTurn) -> str:
    """Return the anchor of a message: its address."""
    return str(turn.message.address)


class Messages:
    """Renderer of a session's messages; results are shown inside of their calls.

    Attributes:
        turns: the messages with their numbers.
        hosts: by the place of a message in `turns`, the place of the message that it is shown in.
    """

    def __init__(self, session: ExportSession, losses: Losses) -> None:
        self.turns = list(number_turns(session))
        self.hosts: dict[int, int] = {}
        self._credited = credited_authors(session)
        self._losses = losses
        self._callers = tool_calls(session)
        self._answered = result_turns(session)
        self._token_total = session.context.estimated_token_count
        self._inside: dict[Call, dict[int, list[int]]] = {}
        self._nest(session.turns)

    def _nest(self, turns: Sequence[SessionTurn]) -> None:
        """Find the messages that only have results of one message shortly before them."""
        places = {turn.message.address: at for at, turn in enumerate(turns)}
        for at, turn in enumerate(turns):
            parts = turn.message.parts
            calls = [(p.call, p.call_id) for p in parts if isinstance(p, ToolResult)]
            holders = {call[0] if call in self._callers else None for call in calls}
            holder = holders.pop() if len(holders) == 1 and len(calls) == len(parts) else None
            host = -1 if holder is None else places[holder]
            if host < 0 or not 0 < at - host <= NEAR:
                continue
            if bool(turn.hidden) != bool(turns[host].hidden):
                continue
            self.hosts[at] = host
            for number, call in enumerate(calls):
                self._inside.setdefault(call, {}).setdefault(at, []).append(number)

    def articles(self, start: int = 0, stop: int | None = None) -> Iterator[Markup]:
        """Yield the elements of messages from a place to another; one that is shown in another is part of that."""
        for at, (turn, place) in enumerate(self.turns[start:stop], start):
            if at not in self.hosts:
                yield self.article(turn, place)

    def article(
        self, turn: SessionTurn, place: MessageNumbers, parts: Sequence[int] | None = None
    ) -> Markup:
        """Return the element of a message, with some of its parts or all."""
        message = self._message(turn)
        names = [message.role]
        if _is_tool_io(message.parts):
            names.append("io")
        if turn.hidden:
            names.append("hidden")
        if turn.reason or (message.role == "user" and message.kind in INJECTED):
            names.append("injected")
        if parts is None:
            body = list(self._parts(message))
        else:
            body = [self._output(message.parts[number]) for number in parts]
        if "injected" in names or message.role in ("system", "developer"):
            body = [_collapse_if_long(message.text, body)]
        return element(
            "article",
            self._heading(turn, place),
            *(body or [element("p", "nothing", class_="none")]),
            *self._notes(turn),
            class_=" ".join(names),
            id=anchor(turn),
            tabindex="-1",
            aria_label=f"{message.role}, message {place.number}",
        )

    def _message(self, turn: SessionTurn) -> CompiledMessage:
        """Return the message of a turn, as it is shown."""
        return turn.message

    def _notes(self, turn: SessionTurn) -> Iterable[Markup]:
        """Return what is shown after a message; a file has nothing."""
        return ()

    def _links(self, turn: SessionTurn) -> Iterator[Markup]:
        """Yield links for the heading of a message; a file has none."""
        yield from ()

    def _heading(self, turn: SessionTurn, place: MessageNumbers) -> Markup:
        message, address = turn.message, anchor(turn)
        title = f"{address}, {message.id}" if message.id else address
        who = [
            message.name,
            message.model,
            f"by {turn.author}" if turn.author in self._credited else "",
        ]
        words = [
            element("a", str(place.number), class_="n", href=f"#{address}", title=title),
            element("h2", message.role, class_="role"),
            *(element("span", word, class_="who") for word in who if word),
            *(element("span", mark, class_="mark") for mark in message_marks(turn)),
            *(
                [element("time", format_moment(turn.time), datetime=format_time(turn.time))]
                if turn.time
                else []
            ),
        ]
        words += self._links(turn)
        bars: list[Markup] = []
        if place.tokens is not None:
            note = f"{place.total:,} tokens so far"
            spent = usage_note(turn)
            counts = element("b", f"+{place.tokens:,}"), f" {place.total:,}"
            words.append(
                element(
                    "span", *counts, class_="tokens", title=", ".join(filter(None, [note, spent]))
                )
            )
            share = {"value": str(place.total), "max": str(max(self._token_total, place.total, 1))}
            bars.append(element("progress", aria_hidden="true", **share))
        return element("header", *words, *bars)

    def _parts(self, message: CompiledMessage) -> Iterator[Markup]:
        called: set[str] = set()
        for part in message.parts:
            if isinstance(part, ToolCall):
                is_first, call = part.id not in called, (message.address, part.id)
                called.add(part.id)
                yield self._call(part, call, self._inside.get(call, {}) if is_first else {})
            else:
                yield self._part(part, message.model)

    def _part(self, part: Part, model: str = "") -> Markup:
        if isinstance(part, Data):
            return element("pre", f"{part.schema}\n{part.indented}", class_="prose", dir="auto")
        if isinstance(part, Text):
            return element("div", prose(part.text), class_="prose", dir="auto")
        if isinstance(part, Reasoning):
            return self._reasoning(part, model)
        if isinstance(part, ToolResult):
            return self._result(part)
        if isinstance(part, Image):
            return self._image(part)
        if isinstance(part, Opaque):
            return _opaque(part)
        return element("p", part.type, class_="none")

    def _reasoning(self, part: Reasoning, model: str) -> Markup:
        if part.signature is not None:
            self._losses.add("reasoning-signature", f"bound to {model}" if model else "")
        if not part.text.strip():
            return element("p", ENCRYPTED_REASONING, class_="reasoning none")
        lines = line_count(part.text)
        label = element("summary", element("b", "reasoning"), _peek(part.text))
        content = element("div", prose(part.text), class_="prose", dir="auto")
        return element("details", label, content, class_="reasoning", open=lines <= 4 * OPEN_LINES)

    def _call(self, call: ToolCall, key: Call, inside: dict[int, list[int]]) -> Markup:
        """Return a call with its results, folded if they are long."""
        arguments, answer = call.arguments, self._answered.get(key)
        results = [self.turns[at][0].message.parts[n] for at, all in inside.items() for n in all]
        size = _size_of(part for part in results if isinstance(part, ToolResult))
        is_later = answer is not None and not inside
        said = _size_words(size) if results else "result below" if is_later else "no result"
        title: list[str] = [element("b", call.name)]
        if any(isinstance(part, ToolResult) and part.is_error for part in results):
            title.append(element("span", "error", class_="mark"))
        title += [_peek(_brief(arguments)), element("span", said, class_="size")]
        content = [_arguments(arguments)]
        for at, numbers in inside.items():
            turn, place = self.turns[at]
            if 0 in numbers:
                content.append(self.article(turn, place, numbers))
            else:
                parts = self._message(turn).parts
                content += [self._output(parts[number]) for number in numbers]
        jump = []
        if answer is not None and is_later:
            jump = [element("a", "result", class_="jump", href=f"#{anchor(answer)}")]
        foot = element("p", *jump, element("span", call.id, class_="id"), class_="foot")
        return element(
            "details",
            element("summary", *title),
            *content,
            foot,
            class_="call",
            open=_is_short(size) and _is_short((line_count(arguments), len(arguments))),
        )

    def _output(self, result: Part) -> Markup:
        """Return the content of a result that is shown in its call."""
        assert isinstance(result, ToolResult)
        content = [
            preformatted(part.text) if isinstance(part, Text) else self._part(part)
            for part in result.content
        ]
        return element(
            "div",
            *(content or [element("p", "no content", class_="none")]),
            class_="output error" if result.is_error else "output",
        )

    def _result(self, result: ToolResult) -> Markup:
        """Return a result that is not shown in its call."""
        caller = self._callers.get((result.call, result.call_id))
        size = _size_of([result])
        texts = [part.text for part in result.content if isinstance(part, Text)]
        title: list[str] = [element("b", caller[0] if caller else "result of an unknown call")]
        if result.is_error:
            title.append(element("span", "error", class_="mark"))
        title += [_peek("\n".join(texts)), element("span", _size_words(size), class_="size")]
        jump = [element("a", "call", class_="jump", href=f"#{anchor(caller[1])}")] if caller else []
        foot = element("p", *jump, element("span", result.call_id, class_="id"), class_="foot")
        return element(
            "details",
            element("summary", *title),
            self._output(result),
            foot,
            class_="result",
            open=_is_short(size),
        )

    def _image(self, image: Image) -> Markup:
        content = split_image(image)
        if content is None:
            if image.url is None:
                return element("p", "an empty image", class_="none")
            self._losses.add("image", "named by a URL")
            return element("p", "an image at ", element("code", image.url[:2000]), class_="none")
        media, data = content
        name = f"{media or 'unknown type'}, {len(data):,} bytes"
        if media not in IMAGE_TYPES:
            self._losses.add("image", "of a type that is not shown")
            return element("p", f"an image: {name}", class_="none")
        source = f"data:{media};base64,{base64.b64encode(data).decode()}"
        return element("figure", element("img", src=source, alt=name), element("figcaption", name))


def _size_of(results: Iterable[ToolResult]) -> tuple[int, int]:
    """Return the lines and characters of results."""
    texts = [p.text for each in results for p in each.content if isinstance(p, Text)]
    return sum(map(line_count, texts)), sum(map(len, texts))


def _size_words(size: tuple[int, int]) -> str:
    lines, length = size
    if not length:
        return "no text"
    return f"{count_noun(lines, 'line')}, {count_noun(length, 'character')}"


def _is_short(size: tuple[int, int]) -> bool:
    return size[0] <= OPEN_LINES and size[1] <= OPEN_CHARACTERS


def _arguments(arguments: str) -> Markup:
    """Return the arguments of a call, one a line, or as text."""
    try:
        value = parse_exact_json(arguments)
    except ValueError:
        return preformatted(arguments)
    if not isinstance(value, dict):
        return preformatted(pretty(value))
    rows = [
        concat([element("dt", key, dir="auto"), _argument(each)]) for key, each in value.items()
    ]
    return element("dl", *rows, class_="arguments")


def _brief(arguments: str) -> str:
    """Return the values of arguments on one line."""
    try:
        value = parse_exact_json(arguments)
    except ValueError:
        return arguments
    values = value.values() if isinstance(value, dict) else [value]
    return ", ".join(each if isinstance(each, str) else json.dumps(each) for each in values)


def _argument(value: Any) -> Markup:
    shown = value if isinstance(value, str) else pretty(value)
    kind = "text" if isinstance(value, str) else "json"
    return element("dd", preformatted(shown), class_=kind, dir="auto")


def _opaque(part: Opaque) -> Markup:
    content = part.data.decode("utf-8", "backslashreplace")
    with contextlib.suppress(ValueError):  # not JSON: show as is
        content = pretty(parse_exact_json(content))
    label = f"{len(part.data):,} bytes in the format of {part.provider or 'an unknown provider'}"
    return element(
        "details", element("summary", element("b", label)), preformatted(content), class_="opaque"
    )


def _collapse_if_long(content: str, body: list[Markup]) -> Markup:
    size = line_count(content), len(content)
    if _is_short(size):
        return concat(body)
    label = element("span", _size_words(size), class_="size")
    summary = element("summary", label, _peek(content))
    return element("details", summary, *body, class_="folded")


def _peek(content: str) -> Markup:
    return element("span", excerpt(content, PEEK_CHARACTERS), class_="peek", dir="auto")


def _is_tool_io(parts: tuple[Part, ...]) -> bool:
    return bool(parts) and all(
        isinstance(part, ToolCall | ToolResult | Reasoning) for part in parts
    )
