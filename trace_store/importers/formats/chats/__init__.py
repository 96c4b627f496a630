"""Chats: messages as providers and many programs write them to files.

A file may mix formats. The most specific one names its branches and authors.
"""

from __future__ import annotations

from functools import partial

from trace_store.importers.formats.chats import shapes
from trace_store.importers.formats.chats.reader import ChatReader
from trace_store.importers.sniff import HEAD_BYTES, file_shape
from trace_store.importers.turn_plan import TurnFormat

SUFFIXES = (".json", ".jsonl")
MARK_BYTES = 4096
"""Bytes to search for the keys of a format, if the first message is longer than the head."""


def chat_format(head: bytes) -> str:
    """Return the chat format of the first bytes, or ""."""
    shape = file_shape(head)
    name = shapes.shape_of_all(shape.values)
    if not name and len(head) >= HEAD_BYTES:
        name = _shape_by_marks(head[:MARK_BYTES])
    return shapes.OPENAI if name == shapes.UNDECIDED else name


def _shape_by_marks(head: bytes) -> str:
    """Return the shape of a message longer than the head, such as one with an image."""
    if b'"data"' in head and b'"additional_kwargs"' in head:
        return shapes.LANGCHAIN
    if b'"input"' in head and b'"input_text"' in head:
        return shapes.RESPONSES
    has_list = any(mark in head for mark in (b'"messages"', b'"contents"'))
    if b'"role"' not in head or not (has_list or head.lstrip()[:1] == b"["):
        return ""
    if b'"parts"' in head:
        return shapes.GEMINI
    if b'"content"' not in head:
        return ""
    marks = (b'"media_type"', b'"max_tokens"', b'"tool_use_id"')
    return shapes.ANTHROPIC if any(mark in head for mark in marks) else shapes.OPENAI


def _format(name: str) -> TurnFormat:
    return TurnFormat(
        name,
        SUFFIXES,
        lambda head: chat_format(head) == name,
        partial(ChatReader, name),
        lambda head: file_shape(head).is_document,
    )


TRACE_JSON = _format(shapes.TRACE)
LANGCHAIN = _format(shapes.LANGCHAIN)
GEMINI_CONTENTS = _format(shapes.GEMINI)
OPENAI_RESPONSES = _format(shapes.RESPONSES)
ANTHROPIC = _format(shapes.ANTHROPIC)
OPENAI = _format(shapes.OPENAI)
