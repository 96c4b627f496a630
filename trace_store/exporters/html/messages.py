"""One message as an HTML element.

Invariant: depends only on the turn; losses are counted.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from typing import Any

from trace_store.context.compiled import CompiledMessage
from trace_store.exporters.contract import ExportSession, Losses, Turn
from trace_store.exporters.html.markup import Markup, concat, element, preformatted, prose
from trace_store.exporters.overview import (
    ENCRYPTED_REASONING,
    MessageNumbers,
    count_noun,
    credited_authors,
    excerpt,
    format_moment,
    line_count,
    message_marks,
    parse_exact_json,
    pretty,
    result_turns,
    tool_calls,
    usage_note,
)
from trace_store.ident import format_time
from trace_store.objects.address import Address
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

OPEN_LINES, OPEN_CHARACTERS = 8, 800
"""Longer tool output is collapsed."""
PEEK_CHARACTERS = 90
INJECTED = ("instruction", "freeform", "artifact")
"""Kinds of user messages that a program wrote on a person's behalf."""


def anchor(turn: Turn) -> str:
    """Return the anchor of a message: its address."""
    return str(turn.message.address)


class Messages:
    """Renderer of a session's messages, with links between calls and results."""

    def __init__(self, session: ExportSession, losses: Losses) -> None:
        self._credited = credited_authors(session)
        self._losses = losses
        self._callers = tool_calls(session)
        self._answered = result_turns(session)
        self._token_total = session.context.estimated_token_count

    def article(self, turn: Turn, place: MessageNumbers) -> Markup:
        """Return the element of a message."""
        message = turn.message
        names = [message.role]
        if _is_tool_io(message.parts):
            names.append("io")
        if turn.hidden:
            names.append("hidden")
        if turn.reason or (message.role == "user" and message.kind in INJECTED):
            names.append("injected")
        body = list(self._parts(turn))
        if "injected" in names or message.role in ("system", "developer"):
            body = [_collapse_if_long(message.text, body)]
        return element(
            "article",
            self._heading(turn, place),
            *(body or [element("p", "nothing", class_="none")]),
            class_=" ".join(names),
            id=anchor(turn),
        )

    def _heading(self, turn: Turn, place: MessageNumbers) -> Markup:
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

    def _parts(self, turn: Turn) -> Iterator[Markup]:
        for part in turn.message.parts:
            yield self._part(part, turn.message)

    def _part(self, part: Part, message: CompiledMessage | None = None) -> Markup:
        if isinstance(part, Data):
            return element("pre", f"{part.schema}\n{part.indented}", class_="prose", dir="auto")
        if isinstance(part, Text):
            return element("div", prose(part.text), class_="prose", dir="auto")
        if isinstance(part, Reasoning):
            return self._reasoning(part, "" if message is None else message.model)
        if isinstance(part, ToolCall):
            return self._call(part, None if message is None else message.address)
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

    def _call(self, call: ToolCall, holder: Address | None) -> Markup:
        title: list[str] = [element("b", call.name)]
        answer = None if holder is None else self._answered.get((holder, call.id))
        if answer is not None:
            title.append(element("a", "result", class_="jump", href=f"#{anchor(answer)}"))
        else:
            title.append(element("span", "no result", class_="jump"))
        title.append(element("span", call.id, class_="id"))
        return element("section", element("h3", *title), _arguments(call.arguments), class_="call")

    def _result(self, result: ToolResult) -> Markup:
        caller = self._callers.get((result.call, result.call_id))
        texts = [part.text for part in result.content if isinstance(part, Text)]
        lines, length = sum(map(line_count, texts)), sum(map(len, texts))
        size = (
            f"{count_noun(lines, 'line')}, {count_noun(length, 'character')}"
            if length
            else "no text"
        )
        title: list[str] = [element("b", caller[0] if caller else "result of an unknown call")]
        if result.is_error:
            title.append(element("span", "error", class_="mark"))
        title += [element("span", size, class_="size"), _peek("\n".join(texts))]
        jump = [element("a", "call", class_="jump", href=f"#{anchor(caller[1])}")] if caller else []
        content = [
            preformatted(part.text) if isinstance(part, Text) else self._part(part)
            for part in result.content
        ]
        short = lines <= OPEN_LINES and length <= OPEN_CHARACTERS
        foot = element("p", *jump, element("span", result.call_id, class_="id"), class_="foot")
        return element(
            "details",
            element("summary", *title),
            *content,
            foot,
            class_="result error" if result.is_error else "result",
            open=short,
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


def _argument(value: Any) -> Markup:
    shown = value if isinstance(value, str) else pretty(value)
    kind = "text" if isinstance(value, str) else "json"
    return element("dd", preformatted(shown), class_=kind, dir="auto")


def _opaque(part: Opaque) -> Markup:
    content = part.data.decode("utf-8", "backslashreplace")
    with contextlib.suppress(ValueError):  # not JSON: show as is
        content = pretty(parse_exact_json(content))
    label = f"{len(part.data):,} bytes in the form of {part.provider or 'an unknown provider'}"
    return element(
        "details", element("summary", element("b", label)), preformatted(content), class_="opaque"
    )


def _collapse_if_long(content: str, body: list[Markup]) -> Markup:
    if line_count(content) <= OPEN_LINES and len(content) <= OPEN_CHARACTERS:
        return concat(body)
    label = f"{count_noun(line_count(content), 'line')}, {count_noun(len(content), 'character')}"
    summary = element("summary", element("span", label, class_="size"), _peek(content))
    return element("details", summary, *body, class_="folded")


def _peek(content: str) -> Markup:
    return element("span", excerpt(content, PEEK_CHARACTERS), class_="peek", dir="auto")


def _is_tool_io(parts: tuple[Part, ...]) -> bool:
    return bool(parts) and all(
        isinstance(part, ToolCall | ToolResult | Reasoning) for part in parts
    )
