"""Gemini CLI: chat recordings of Google's agent."""

from __future__ import annotations

from trace_store.importers.formats.gemini.chats import NAME, GeminiReader
from trace_store.importers.formats.gemini.locations import finds, reads_document, recognises
from trace_store.importers.turn_plan import TurnFormat

SUFFIXES = (".json", ".jsonl")

FORMAT = TurnFormat(NAME, SUFFIXES, recognises, GeminiReader, reads_document, finds)
