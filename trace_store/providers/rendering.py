"""Registry of renderers, and rendering by one of them.

Invariant: a renderer is a pure function of messages, tools and options. `Rendered` lists every change as a repair, and
`strict` refuses a broken context and names the address.
"""

from __future__ import annotations

from trace_store import errors, providers
from trace_store.gc_pause import paused
from trace_store.providers.values import Options, Renderable, Rendered, Renderer, Repairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

CACHES = ("none", "stable")
# Name of the list of messages in requests.
MESSAGE_LISTS = ("messages", "input", "contents")
# A renderer is imported on first use.
RENDERERS = {
    renderer.name: renderer
    for renderer in (
        Renderer("anthropic", 3, lambda *given: providers.anthropic.render_anthropic(*given)),
        Renderer("gemini", 2, lambda *given: providers.gemini.render_gemini(*given)),
        Renderer("json", 1, lambda *given: providers.lossless.render_lossless(*given)),
        Renderer("openai", 3, lambda *given: providers.openai_chat.render_openai_chat(*given)),
        Renderer(
            "openai-responses",
            2,
            lambda *given: providers.openai_responses.render_openai_responses(*given),
        ),
        Renderer("text", 2, lambda *given: providers.plain_text.render_text(*given)),
    )
}


def render(
    renderer: str | Renderer,
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]] = (),
    *,
    model: str | None = None,
    strict: bool = False,
    reasoning: bool = True,
    cache: str = "none",
) -> Rendered:
    """Return a context as a request.

    A renderer ignores options that do not apply to it.

    Args:
        renderer: a name in RENDERERS, or the caller's own renderer.
        messages: the context, oldest first.
        tools: schemas of the offered tools, neutral or in a provider's form.
        model: the model to call; None is the most recent one.
        strict: refuse a broken context instead of repairing it.
        reasoning: include earlier reasoning, if the format has a place for it.
        cache: "stable" sets cache breakpoints, "none" sets none.

    Raises:
        RenderError: `strict`, and the context is broken; `.address` names the first broken message.
        InvalidInputError: unknown renderer or cache mode.
    """
    if isinstance(renderer, str):
        if renderer not in RENDERERS:
            names = ", ".join(sorted(RENDERERS))
            raise errors.InvalidInputError(f"unknown renderer {renderer[:40]!r}: one of {names}")
        renderer = RENDERERS[renderer]
    if cache not in CACHES:
        raise errors.InvalidInputError(
            f"unknown cache mode {cache[:40]!r}: one of {', '.join(CACHES)}"
        )
    options = Options(model=model, strict=strict, reasoning=reasoning, cache=cache)
    messages = tuple(messages)
    repairs = Repairs(messages)
    if renderer is RENDERERS.get(renderer.name):
        with paused:
            request = renderer.function(messages, tools, options, repairs)
    else:
        request = renderer.function(messages, tools, options, repairs)
    if strict:
        repairs.refuse_faults()
    found = sorted(repairs.found, key=lambda repair: -1 if repair.at is None else repair.at)
    return Rendered(request, tuple(found), renderer.name, renderer.version)
