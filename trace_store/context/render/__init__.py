"""Renderers: a context in the form that a provider, a person or another program takes.

They are imported when a context is first rendered: what counts or lists messages renders none.
"""

from __future__ import annotations

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.render.anthropic import render_anthropic
    from trace_store.context.render.breakpoints import without_breakpoints
    from trace_store.context.render.gemini import render_gemini
    from trace_store.context.render.lossless import render_lossless
    from trace_store.context.render.openai_chat import render_openai_chat
    from trace_store.context.render.openai_responses import render_openai_responses
    from trace_store.context.render.rendering import (
        CACHES,
        MESSAGE_LISTS,
        RENDERERS,
        prefix_digests,
        render,
    )
    from trace_store.context.render.text import render_text
    from trace_store.context.render.values import (
        ADAPTATIONS,
        FAULTS,
        Options,
        Renderable,
        Rendered,
        Renderer,
        Repair,
        Repairs,
    )
    from trace_store.context.render.wire import to_bytes

__all__ = [
    "ADAPTATIONS",
    "CACHES",
    "FAULTS",
    "FORMS",
    "MESSAGE_LISTS",
    "RENDERERS",
    "Options",
    "Renderable",
    "Rendered",
    "Renderer",
    "Repair",
    "Repairs",
    "prefix_digests",
    "render",
    "render_anthropic",
    "render_gemini",
    "render_lossless",
    "render_openai_chat",
    "render_openai_responses",
    "render_text",
    "to_bytes",
    "without_breakpoints",
]

FORMS = ("anthropic", "gemini", "json", "openai", "openai-responses", "text")
"""The names of RENDERERS, sorted."""

_RENDERING = ("CACHES", "MESSAGE_LISTS", "RENDERERS", "prefix_digests", "render")

__getattr__ = door(
    __name__,
    {
        **dict.fromkeys(__all__, "values"),
        **dict.fromkeys(_RENDERING, "rendering"),
        "render_anthropic": "anthropic",
        "render_gemini": "gemini",
        "render_lossless": "lossless",
        "render_openai_chat": "openai_chat",
        "render_openai_responses": "openai_responses",
        "render_text": "text",
        "to_bytes": "wire",
        "without_breakpoints": "breakpoints",
    },
)
