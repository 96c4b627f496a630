"""The formats of chats: one row each, all read by one reader.

Rule: a table. A format is what most of a file is; it names the branches and the authors.
"""

from __future__ import annotations

from functools import partial

from trace_store.importers.file_head import HEAD_BYTES
from trace_store.importers.formats.chats import shapes
from trace_store.importers.formats.chats.reader import ChatReader
from trace_store.importers.sniff import look
from trace_store.importers.turn_format import TurnFormat

SUFFIXES = (".json", ".jsonl")
BEGINNING_BYTES = 4096


def chat_format(head: bytes) -> str:
    """Return the name of the format that the first bytes of a file show; "" when they show no chat."""
    glance = look(head)
    found = shapes.shape_of_all(glance.values)
    if not found and len(head) >= HEAD_BYTES:
        found = _shape_by_marks(head[:BEGINNING_BYTES])
    return shapes.OPENAI if found == shapes.UNDECIDED else found


def _shape_by_marks(beginning: bytes) -> str:
    """Return whose shape a first message has that is longer than what is looked at, as with an image in it."""
    if b'"data"' in beginning and b'"additional_kwargs"' in beginning:
        return shapes.LANGCHAIN
    if b'"input"' in beginning and b'"input_text"' in beginning:
        return shapes.RESPONSES
    held = any(mark in beginning for mark in (b'"messages"', b'"contents"'))
    if b'"role"' not in beginning or not (held or beginning.lstrip()[:1] == b"["):
        return ""
    if b'"parts"' in beginning:
        return shapes.GEMINI
    if b'"content"' not in beginning:
        return ""
    marks = (b'"media_type"', b'"max_tokens"', b'"tool_use_id"')
    return shapes.ANTHROPIC if any(mark in beginning for mark in marks) else shapes.OPENAI


def _format(name: str) -> TurnFormat:
    return TurnFormat(
        name,
        SUFFIXES,
        lambda head: chat_format(head) == name,
        partial(ChatReader, name),
        lambda head: look(head).is_document,
    )


TRACE_JSON = _format(shapes.TRACE)
LANGCHAIN = _format(shapes.LANGCHAIN)
GEMINI_CONTENTS = _format(shapes.GEMINI)
OPENAI_RESPONSES = _format(shapes.RESPONSES)
ANTHROPIC = _format(shapes.ANTHROPIC)
OPENAI = _format(shapes.OPENAI)
