"""opencode: sessions from its `export`, its database, or an SQL dump."""

from __future__ import annotations

from trace_store.importers.formats.opencode.locations import (
    finds,
    inside,
    is_database,
    reads_document,
    recognises,
)
from trace_store.importers.formats.opencode.sessions import NAME, OpencodeReader
from trace_store.importers.turn_plan import TurnFormat

SUFFIXES = (".json", ".sql", ".db")

FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, OpencodeReader, reads_document, finds, is_database, inside
)
