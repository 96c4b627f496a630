"""Sessions as one static HTML page for readers.

Invariant: the page runs and fetches nothing. Its content security policy forbids scripts, frames, forms and the
network, and allows the style sheet by hash and inline images.
"""

from __future__ import annotations

from trace_store.exporters.contract import Exported, ExportSession, Losses, file_name
from trace_store.exporters.html import page

NAME = "html"
SUFFIX = ".html"
SHOWS_HIDDEN = True

__all__ = ["NAME", "SHOWS_HIDDEN", "SUFFIX", "page", "write"]


def write(session: ExportSession) -> Exported:
    """Return the page; see `contract.FormatWriter`."""
    losses = Losses()
    chunks = [chunk.encode("utf-8") for chunk in page.page_of(session, losses)]
    return Exported(chunks, losses.all(), file_name(session, SUFFIX))
