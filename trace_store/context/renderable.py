"""Rendering of contexts for providers."""

from __future__ import annotations

from trace_store import providers
from trace_store.objects.message import Message
from trace_store.objects.parts import Reasoning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_store.context.compiled import CompiledMessage, MessageLike


class RenderableContext:
    """Base class of contexts: renders them for a provider."""

    __slots__ = ()

    model: str

    @property
    def tools(self) -> tuple[Any, ...]:
        """The current tool schemas, decoded from JSON."""
        raise AttributeError("tools")

    def shown_messages(self) -> Sequence[Message | CompiledMessage]:
        """Return the messages to render."""
        raise AttributeError("shown_messages")

    def render(self, form: str, **options: Any) -> providers.values.Rendered:
        """Return the context in a provider's format; `form` is a name in `render.RENDERERS`.

        Raises:
            InvalidInputError: unknown format.
            RenderError: with `strict=True`, if the context would need a repair.
        """
        options.setdefault("model", self.model or None)
        return providers.rendering.render(form, self.shown_messages(), self.tools, **options)

    def to_openai(self, **options: Any) -> dict[str, Any]:
        """Return an OpenAI chat request: `{"messages": …, "tools": …}`."""
        request: dict[str, Any] = self.render("openai", **options).request
        return request

    def to_openai_responses(self, **options: Any) -> dict[str, Any]:
        """Return an OpenAI Responses request: `{"instructions": …, "input": …, "tools": …}`."""
        request: dict[str, Any] = self.render("openai-responses", **options).request
        return request

    def to_anthropic(self, **options: Any) -> dict[str, Any]:
        """Return an Anthropic request: `{"system": …, "messages": …, "tools": …}`."""
        request: dict[str, Any] = self.render("anthropic", **options).request
        return request

    def to_gemini(self, **options: Any) -> dict[str, Any]:
        """Return a Gemini request: `{"systemInstruction": …, "contents": …, "tools": …}`."""
        request: dict[str, Any] = self.render("gemini", **options).request
        return request

    def to_text(self, **options: Any) -> str:
        """Return a plain transcript."""
        return str(self.render("text", **options).request)

    def to_json(self, **options: Any) -> dict[str, Any]:
        """Return Trace's lossless form."""
        request: dict[str, Any] = self.render("json", **options).request
        return request


def source_of_sum(source: str, message_count: int) -> str:
    """Return how a sum of text and framing was counted, given how the text was."""
    if message_count and source.startswith("exact:"):
        return "estimate:" + source.removeprefix("exact:")
    return source


def without_reasoning(message: CompiledMessage) -> MessageLike | None:
    """Return a message without its reasoning; None if nothing is left."""
    if message.ghost or not any(isinstance(part, Reasoning) for part in message.parts):
        return message
    plain = message.message()
    parts = tuple(part for part in plain.parts if not isinstance(part, Reasoning))
    if not parts:
        return None
    return Message(
        plain.role, parts, kind=plain.kind, name=plain.name, model=plain.model, id=plain.id
    )
