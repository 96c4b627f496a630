"""A session as a request of Anthropic's messages, to go on from."""

from __future__ import annotations

from trace_store.exporters.contract import Exported, ExportSession
from trace_store.exporters.lossy.requests import SUFFIX as SUFFIX
from trace_store.exporters.lossy.requests import write_request

NAME = "anthropic"
MAXIMUM_TOKENS = 8192
"""How long an answer may be: the API wants a number. Change it as you need."""


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    # Without `system` a reader would take a request of texts alone for OpenAI's.
    return write_request(session, "anthropic", "anthropic", max_tokens=MAXIMUM_TOKENS, system=[])
