"""A session as a request to OpenAI's chat completions."""

from __future__ import annotations

from trace_store.exporters.contract import Exported, ExportSession
from trace_store.exporters.lossy.read_back import SUFFIX as SUFFIX
from trace_store.exporters.lossy.read_back import write_request

NAME = "openai"


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    return write_request(session, "openai", "openai")
