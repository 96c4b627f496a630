"""A session as a request to Anthropic's Messages API."""

from __future__ import annotations

from trace_store.exporters.contract import Exported, ExportSession
from trace_store.exporters.lossy.read_back import SUFFIX as SUFFIX
from trace_store.exporters.lossy.read_back import write_request

NAME = "anthropic"
MAXIMUM_TOKENS = 8192
"""Maximum length of the answer, which the API requires; change it as you need."""


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    # Without `system` a reader would detect a text-only request as OpenAI's.
    return write_request(session, "anthropic", "anthropic", max_tokens=MAXIMUM_TOKENS, system=[])
