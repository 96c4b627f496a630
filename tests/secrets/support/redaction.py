"""Redaction of whole texts."""

from __future__ import annotations

from trace_store.objects.content import bytes_of, text_of
from trace_store.secrets.engine import Scanner, replaced


def redacted(scanner: Scanner, text: str) -> str:
    """Return a text with its secrets replaced by placeholders."""
    data = bytes_of(text)
    return text_of(replaced(data, scanner.find_bytes(data)))
