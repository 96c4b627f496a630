"""Transcripts in Markdown, readable as source and rendered.

Invariant: session text never becomes page structure. Only lists, bold text and code spans stay Markdown. Everything
else is escaped, so that any renderer shows the characters. Code and tool output is fenced with more backticks than
it contains. Remote and large images are described, not embedded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from trace_store.exporters.contract import Exported, ExportSession, Losses, SessionTurn, file_name
from trace_store.exporters.overview import (
    ENCRYPTED_REASONING,
    MessageNumbers,
    count_noun,
    credited_authors,
    format_moment,
    line_count,
    message_marks,
    number_turns,
    parse_exact_json,
    pretty,
    session_facts,
    title_of,
    tool_calls,
    usage_note,
)
from trace_store.exporters.prose import TEXT, code_of, normalise_newlines, reveal, split_prose
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

NAME = "markdown"
SUFFIX = ".md"
SHOWS_HIDDEN = True

MAXIMUM_IMAGE_BYTES = 64 * 1024
"""Larger images are described, not embedded."""
OPEN_LINES, OPEN_CHARACTERS = 12, 1000
"""Longer tool output is collapsed."""

_NBSP = "\u00a0"
_MARKS = re.compile(
    r"[\\`*\[~$]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # inside a word it has no meaning
    r"|^[-+=>#:]"
    r"|:(?=[A-Za-z][A-Za-z0-9_+-]*:)"  # some renderers turn it into emoji
)
_INLINE = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?<!\*)\*\*(?=[^\s*])(?P<bold>(?:(?!\*\*).)+?)(?<=[^\s*])\*\*(?!\*)"
)
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])")
_ENTITY = re.compile(r"&(?=#|[A-Za-z])")
_SPACES = re.compile(r" (?= )")
_TICKS = re.compile(r"`+")


def write(session: ExportSession) -> Exported:
    """Return the transcript; see `contract.FormatWriter`."""
    losses = Losses()
    blocks = _Page(session, losses).blocks()
    data = "\n\n".join(blocks) + "\n"
    return Exported(data.encode("utf-8"), losses.all(), file_name(session, SUFFIX))


def line(text: str) -> str:
    """Return text on one line, safe in a heading or table cell."""
    return escape(" ".join(text.split())).replace("|", "&#124;")


def escape(text: str) -> str:
    """Escape a line so that every renderer shows it literally."""
    text = _ENTITY.sub("&amp;", _MARKS.sub(r"\\\g<0>", text)).replace("<", "&lt;")
    text = _SPACES.sub(_NBSP, _NUMBERED.sub(r"\1\\\2", text))
    return f"&#124;{text[1:]}" if text.startswith("|") else text


def paragraphs(text: str) -> str:
    """Return text as paragraphs and lists; line breaks and indentation are kept."""
    shown: list[str] = []
    for each in text.split("\n"):
        body = each.strip(" \t")
        if body:
            # Two trailing spaces are a hard line break.
            if shown and shown[-1]:
                shown[-1] += "  "
            shown.append(_format_line(each.expandtabs(4), body))
        elif shown and shown[-1]:
            shown.append("")
    return "\n".join(shown).rstrip("\n")


def _format_line(whole: str, body: str) -> str:
    indent = len(whole) - len(whole.lstrip(" "))
    item = None if indent else _ITEM.match(body)
    mark = f"{item[1]} " if item else _NBSP * indent
    return mark + _spans(body[item.end() :] if item else body)


def _spans(text: str) -> str:
    """Escape a line except for code spans and bold text."""
    shown, end = "", 0
    for span in _INLINE.finditer(text):
        # Text after a span is escaped like a line start, although it is not one.
        shown += escape(text[end : span.start()])
        shown += f"**{_spans(span['bold'])}**" if span["bold"] else span[0]
        end = span.end()
    return shown + escape(text[end:])


def fence(text: str, language: str = "text") -> str:
    """Return text in a fence that it cannot close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def collapse(summary: str, blocks: list[str]) -> list[str]:
    """Return blocks collapsed under a one-line summary."""
    safe = " ".join(summary.split()).replace("&", "&amp;").replace("<", "&lt;")
    return [f"<details>\n<summary>{safe}</summary>", *blocks, "</details>"]


class _Page:
    """Writer of one session's page; counts losses."""

    def __init__(self, session: ExportSession, losses: Losses) -> None:
        self._session = session
        self._losses = losses
        self._calls = tool_calls(session)
        self._credited_authors = credited_authors(session)

    def blocks(self) -> Iterator[str]:
        """Yield the blocks of the page, to be separated by empty lines."""
        session = self._session
        for subagent in session.subagents:
            self._losses.add("subagent", subagent.name)
        yield f"# {self._line(title_of(session))}"
        rows = [f"| {name} | {self._line(value)} |" for name, value in session_facts(session)]
        yield "\n".join(["| | |", "|---|---|", *rows])
        if session.tools:
            schemas = fence(self._show_invisible(pretty(list(session.tools))), "json")
            yield from collapse(count_noun(len(session.tools), "tool schema"), [schemas])
        for turn, count in number_turns(session):
            yield from self._turn(turn, count)

    def _turn(self, turn: SessionTurn, count: MessageNumbers) -> Iterator[str]:
        message = turn.message
        if message.id:
            self._losses.add("message-id")
        speaker = " · ".join(word for word in (message.role, message.name, message.model) if word)
        yield f"## {count.number}. {self._line(speaker)}"
        notes = [
            format_moment(turn.time),
            f"by {turn.author}" if turn.author in self._credited_authors else "",
        ]
        if count.tokens is not None:
            notes.append(f"{count.tokens:,} tokens, {count.total:,} so far")
        notes += [usage_note(turn), *message_marks(turn)]
        shown = " · ".join(self._line(note) for note in notes if note)
        yield f"{shown} · `{message.address}`"
        for part in message.parts:
            yield from self._part(part, message.model)

    def _part(self, part: Part, model: str) -> Iterator[str]:
        if isinstance(part, Data):
            yield f"**data** {self._line(part.schema)}"
            yield fence(self._show_invisible(part.indented), "json")
        elif isinstance(part, Text):
            yield from self._prose(part.text)
        elif isinstance(part, Reasoning):
            if part.signature is not None:
                self._losses.add("reasoning-signature", f"bound to {model}" if model else "")
            said = "\n\n".join(["**reasoning**", *self._prose(part.text)])
            if not part.text.strip():
                said = f"*{ENCRYPTED_REASONING}*"
            yield "\n".join(f"> {each}" for each in said.split("\n"))
        elif isinstance(part, ToolCall):
            yield f"**call** {self._line(part.name)} · {self._line(part.id)}"
            yield self._arguments(part)
        elif isinstance(part, ToolResult):
            yield from self._result(part)
        elif isinstance(part, Image):
            yield self._image(part)
        elif isinstance(part, Opaque):
            self._losses.add("opaque-part", f"in the form of {part.provider}")
            yield f"*{len(part.data):,} bytes in the format of {self._line(part.provider)}*"

    def _prose(self, text: str) -> Iterator[str]:
        for piece in split_prose(normalise_newlines(text)):
            if piece.kind != TEXT:
                yield fence(self._show_invisible(piece.text), piece.language or "text")
            elif shown := paragraphs(self._show_invisible(piece.text)):
                yield shown

    def _arguments(self, call: ToolCall) -> str:
        try:
            return fence(self._show_invisible(pretty(parse_exact_json(call.arguments))), "json")
        except ValueError:
            return fence(self._show_invisible(normalise_newlines(call.arguments)))

    def _result(self, result: ToolResult) -> Iterator[str]:
        call = self._calls.get((result.call, result.call_id))
        kind = "error" if result.is_error else "result"
        source = f"{call[0] if call else 'a call'} · {result.call_id}"
        shown = [block for part in result.content if (block := self._result_part(part))]
        texts = [part.text for part in result.content if isinstance(part, Text)]
        lines, length = sum(map(line_count, texts)), sum(map(len, texts))
        if lines <= OPEN_LINES and length <= OPEN_CHARACTERS:
            yield f"**{kind}** of {self._line(source)}"
            yield from shown or ["*nothing*"]
        else:
            size = f"{count_noun(lines, 'line')}, {count_noun(length, 'character')}"
            yield from collapse(self._show_invisible(f"{kind} of {source} · {size}"), shown)

    def _result_part(self, part: Part) -> str:
        if isinstance(part, Text):
            text = self._show_invisible(normalise_newlines(part.text)).removesuffix("\n")
            return fence(text) if text else ""
        return "\n\n".join(self._part(part, ""))

    def _image(self, image: Image) -> str:
        content = split_image(image)
        if content is None:
            if image.url is None:
                return "*an empty image*"
            self._losses.add("image", "named by a URL")
            return f"*an image at* {self._line(image.url[:500])}"
        media, data = content
        size = f"{len(data):,} bytes"
        if media in IMAGE_TYPES and len(data) <= MAXIMUM_IMAGE_BYTES:
            return f"![{media}, {size}](data:{media};base64,{base64.b64encode(data).decode()})"
        reason = "too large" if media in IMAGE_TYPES else "of a type that is not shown"
        self._losses.add("image", reason)
        return f"*an image: {self._line(media) or 'of unknown type'}, {size}*"

    def _line(self, text: str) -> str:
        return line(self._show_invisible(text))

    def _show_invisible(self, text: str) -> str:
        """Replace invisible characters with their codes and count them."""
        shown, count = reveal(text, lambda c: f"<{code_of(c)}>")
        self._losses.add("control-character", "shown by code", count)
        return shown
