"""Gemini CLI: chat recordings of Google's agent, a record a line, and the documents that builds before 2026 wrote."""

from __future__ import annotations

from trace_store.importers.formats.gemini.chats import NAME, GeminiReader
from trace_store.importers.formats.gemini.locations import finds, reads_document, recognises
from trace_store.importers.turn_format import TurnFormat

SUFFIXES = (".json", ".jsonl")

FORMAT = TurnFormat(NAME, SUFFIXES, recognises, GeminiReader, reads_document, finds)
