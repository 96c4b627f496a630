"""A session as a request to Google's Gemini API; the API's URL names the model."""

from __future__ import annotations

from trace_store.exporters.contract import Exported, ExportSession
from trace_store.exporters.lossy.read_back import SUFFIX as SUFFIX
from trace_store.exporters.lossy.read_back import write_request

NAME = "gemini-contents"


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    return write_request(session, "gemini")
