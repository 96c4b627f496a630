"""Provider formats: one module each parses, renders and checks its messages."""

from trace_store.lazy_import import submodules

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

FORMATS = ("anthropic", "gemini", "json", "openai", "openai-responses", "text")
"""Names of `rendering.RENDERERS`, sorted."""

__getattr__ = submodules(__name__)
