"""Blocks in the output of agents: events to record.

    [[TRAJECTORY:decision]] {"question": "Where?", "chosen": "in memory", "reasoning": "no store"} [[/TRAJECTORY]]
    [[RETROSPECTIVE]] summary: Tokens are signed [[/RETROSPECTIVE]]

A body that begins with `{` is JSON. Models write it with small faults, such as code fences, single quotes and trailing
commas; these are repaired. Any other body is read as lines `field: value`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from trace_store import errors
from trace_store.frozen import value
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import event_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAXIMUM_CHARACTERS = 256 * 1024
"""Maximum length of a block."""
MARK = "[["
"""The first characters of every block."""
_OPENING = re.compile(r"\[\[(?:TRAJECTORY:[ \t]*([A-Za-z][\w-]{0,63})|RETROSPECTIVE)[ \t]*\]\]")
_ANY_MARK = re.compile(_OPENING.pattern + r"|\[\[/(?:TRAJECTORY|RETROSPECTIVE)\]\]")
_LONGEST_MARK = 128
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\Z", re.DOTALL)
_JSON_FAULT = re.compile(
    r"""("(?:\\.|[^"\\])*")|('(?:\\.|[^'\\])*')|(,)(?=\s*[}\]])|\b(True|False|None)\b""", re.DOTALL
)
_PYTHON_NAMES = {"True": "true", "False": "false", "None": "null"}
_FIELD_LINE = re.compile(r"[ \t]*(?:[#*>-]+[ \t]*)?\**([A-Za-z_]+)\**[ \t]*:\**[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+(.*)")
_CONTENT_NAMES = {"chosen", "text", "message", "description", "decision"}
"""Aliases of the field `content`."""
_LISTS = ("alternatives", "challenges", "learnings", "suggestions", "tags")
_FIELDS = frozenset(
    (
        *("content", "question", "reasoning", "confidence", "significance", "title", "to", "from"),
        *("summary", "approach", *_LISTS),
    )
)
_REQUIRED = {ev.RETROSPECTIVE: "summary", ev.CHAPTER: "title"}
"""The required field of each type; `content` for the others."""


@value
class Block:
    """A block in a text.

    Attributes:
        number: 1 for the first one.
        type: the type of the event.
        body: the text in it; None if the block was never closed, or is too long.
    """

    number: int
    type: str
    body: str | None


class BlockReader:
    """Finds blocks in streamed text; keeps only an open block in memory."""

    def __init__(self) -> None:
        self._text = ""
        self._opened: str | None = None  # the type of the open block
        self._pieces: list[str] = []
        self._size = 0
        self._count = 0

    def feed(self, text: str) -> Iterator[Block]:
        """Yield the blocks that end in the next piece of the text."""
        self._text += text
        at = 0
        for mark in _ANY_MARK.finditer(self._text):
            self._keep(self._text[at : mark.start()])
            at = mark.end()
            opens = _OPENING.fullmatch(mark[0]) is not None
            if self._opened is not None:
                yield self._end(is_closed=not opens)
            if opens:
                self._opened, self._size = (mark[1] or ev.RETROSPECTIVE).lower(), 0
        # What may be the beginning of a mark stays for the next piece.
        rest = max(at, len(self._text) - _LONGEST_MARK)
        rest = self._text.find(MARK[0], rest)
        rest = len(self._text) if rest < 0 else rest
        self._keep(self._text[at:rest])
        self._text = self._text[rest:]

    def finish(self) -> Iterator[Block]:
        """Yield the block that was never closed, if there is one."""
        if self._opened is not None:
            yield self._end(is_closed=False)

    def _keep(self, text: str) -> None:
        if self._opened is not None:
            self._size += len(text)
            if self._size <= MAXIMUM_CHARACTERS:
                self._pieces.append(text)

    def _end(self, *, is_closed: bool) -> Block:
        body = "".join(self._pieces)
        is_whole = is_closed and self._size <= MAXIMUM_CHARACTERS
        type_, self._opened = self._opened or "", None
        self._pieces, self._size = [], 0
        self._count += 1
        return Block(self._count, type_, body if is_whole else None)


def blocks_in(text: str) -> Iterator[Block]:
    """Yield the blocks of a text."""
    if MARK in text:
        reader = BlockReader()
        yield from reader.feed(text)
        yield from reader.finish()


def read_block(block: Block) -> dict[str, Any]:
    """Return the data of the event in a block; unknown fields go to `raw`.

    Raises:
        InvalidInputError: the block cannot be read, is not closed, or lacks the required field.
    """
    if block.body is None:
        raise errors.InvalidInputError(
            f"the block is not closed, or longer than {MAXIMUM_CHARACTERS:,} characters"
        )
    is_allowed = (
        block.type in (*ev.TOLD, ev.CHAPTER, ev.RETROSPECTIVE) or block.type not in ev.TYPES
    )
    ev.check_type(block.type)
    if not is_allowed:
        raise errors.InvalidInputError(f"a block cannot record the type {block.type!r}")
    main = _REQUIRED.get(block.type, "content")
    written = _read_body(block.body, main)
    fields = {main if name in _CONTENT_NAMES else name: written[name] for name in written}
    data = event_data(block.type, more={name: fields[name] for name in fields if name in _FIELDS})
    if not data.get(main):
        raise errors.InvalidInputError(f"the block has no {main}")
    if raw := {name: fields[name] for name in fields if name not in _FIELDS}:
        data["raw"] = raw
    return data


def _read_body(body: str, main: str) -> dict[str, Any]:
    text = body.strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    if not text.startswith("{"):
        return _read_lines(text, main)
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as first:
        try:
            found = json.loads(
                _JSON_FAULT.sub(_repaired, text), strict=False, parse_constant=_refuse_constant
            )
        except (ValueError, RecursionError):
            raise errors.InvalidInputError(f"the block is not JSON: {first}") from first
    return dict(found)


def _repaired(match: re.Match[str]) -> str:
    double, single, comma, name = match.groups()
    if single:
        return json.dumps(single[1:-1].replace("\\'", "'"), ensure_ascii=False)
    return "" if comma else double or _PYTHON_NAMES[name]


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _read_lines(text: str, main: str) -> dict[str, Any]:
    """Return the fields in lines `field: value`; lines before the first one belong to the field `main`."""
    found: dict[str, list[str]] = {}
    name = main
    for line in text.splitlines():
        field = _FIELD_LINE.match(line)
        if field and (key := field[1].lower()) in _FIELDS | _CONTENT_NAMES:
            name, line = key, field[2]
        if line.strip():
            found.setdefault(name, []).append(line)
    fields: dict[str, Any] = {}
    for name, lines in found.items():
        if name in _LISTS:
            fields[name] = [item[1] if (item := _ITEM.match(each)) else each for each in lines]
        else:
            fields[name] = "\n".join(lines).strip()
    if "confidence" in fields:
        with suppress(ValueError):  # event_data reports it
            fields["confidence"] = float(fields["confidence"])
    return fields
