"""Sessions as requests to the APIs of providers: Anthropic, Gemini, and OpenAI's two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trace_store.base.frozen import field, value
from trace_store.exporters.contract import Exported, ExportSession
from trace_store.exporters.lossy.read_back import SUFFIX, write_request

MAXIMUM_TOKENS = 8192
"""Maximum length of the answer, which Anthropic requires; change it as you need."""


@value
class RequestWriter:
    """Writer of one request format; see `contract.FormatWriter`.

    Attributes:
        NAME: name of the format.
        renderer: name of the provider's renderer.
        provider: its most recent model in the session is the request's `model`; "" if the API's URL names the model.
        parameters: other fields of the request.
    """

    NAME: str
    renderer: str
    provider: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    SUFFIX = SUFFIX

    def write(self, session: ExportSession) -> Exported:
        """Return the request."""
        return write_request(session, self.renderer, self.provider, **self.parameters)


ANTHROPIC = RequestWriter(
    "anthropic",
    "anthropic",
    "anthropic",
    # Without `system` a reader would detect a text-only request as OpenAI's.
    {"max_tokens": MAXIMUM_TOKENS, "system": []},
)
GEMINI_CONTENTS = RequestWriter("gemini-contents", "gemini")
OPENAI = RequestWriter("openai", "openai", "openai")
OPENAI_RESPONSES = RequestWriter("openai-responses", "openai-responses", "openai")
