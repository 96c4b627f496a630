"""Codex: rollouts of OpenAI's agent, one record a line, of all builds since 2025."""

from __future__ import annotations

from trace_store.importers.formats.codex.locations import finds, reads_document, recognises
from trace_store.importers.formats.codex.rollouts import NAME, CodexReader
from trace_store.importers.turn_plan import TurnFormat

SUFFIXES = (".json", ".jsonl", ".jsonl.zst")

FORMAT = TurnFormat(NAME, SUFFIXES, recognises, CodexReader, reads_document, finds)
