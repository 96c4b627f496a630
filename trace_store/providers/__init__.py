"""Provider formats: one module each parses, renders and checks its messages."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers import anthropic as anthropic
    from trace_store.providers import documents as documents
    from trace_store.providers import gemini as gemini
    from trace_store.providers import lossless as lossless
    from trace_store.providers import openai_chat as openai_chat
    from trace_store.providers import openai_responses as openai_responses
    from trace_store.providers import plain_text as plain_text
    from trace_store.providers import rendering as rendering
    from trace_store.providers import wire as wire
    from trace_store.providers.documents import parse_messages as parse_messages
    from trace_store.providers.openai_responses import (
        messages_from_responses as messages_from_responses,
    )
    from trace_store.providers.rendering import Options as Options
    from trace_store.providers.rendering import Rendered as Rendered
    from trace_store.providers.rendering import Repair as Repair
    from trace_store.providers.rendering import render as render

FORMATS = ("anthropic", "gemini", "json", "openai", "openai-responses", "text")
"""Names of `rendering.RENDERERS`, sorted."""

_HOMES = {
    "messages_from_responses": "openai_responses",
    "Options": "rendering",
    "parse_messages": "documents",
    "render": "rendering",
    "Rendered": "rendering",
    "Repair": "rendering",
}

__all__ = ["FORMATS", *_HOMES]
__getattr__ = names(__name__, _HOMES)
