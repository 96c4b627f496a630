"""Renderers: a context in the form that a provider, a person or another program takes.

They are imported when a context is first rendered: what counts or lists messages renders none.
"""

from __future__ import annotations

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.render.rendering import (
        CACHES,
        MESSAGE_LISTS,
        RENDERERS,
        prefix_digests,
        render,
    )
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
    "to_bytes",
]

_RENDERING = ("CACHES", "MESSAGE_LISTS", "RENDERERS", "prefix_digests", "render")

__getattr__ = door(
    __name__,
    {
        **dict.fromkeys(__all__, "values"),
        **dict.fromkeys(_RENDERING, "rendering"),
        "to_bytes": "wire",
    },
)
