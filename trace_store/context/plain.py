"""Contexts as things to send: the part that all of them share, and the context that is a plain list of messages.

Rule: rendering is `render`'s business; this module hands it the messages.
"""

from __future__ import annotations

from trace_store.context import render
from trace_store.context.tokens import (
    REPLY_TOKENS,
    MessageTokens,
    TokenCounting,
    Tokenizer,
    count_message,
)
from trace_store.objects.message import Message
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from trace_store.context.compiled import CompiledMessage


class RenderableContext:
    """What every context can do: be rendered for a provider."""

    __slots__ = ()

    model: str

    @property
    def tools(self) -> tuple[Any, ...]:
        """The tool schemas in force, decoded from JSON."""
        raise AttributeError("tools")

    def shown_messages(self) -> Sequence[Message | CompiledMessage]:
        """Return the messages as they are rendered."""
        raise AttributeError("shown_messages")

    def render(self, form: str, **options: Any) -> render.Rendered:
        """Return the context in a provider's form; `form` is a name in `render.RENDERERS`.

        Raises:
            InvalidInputError: unknown form.
            RenderError: with `strict=True`, when the context would have to be repaired.
        """
        options.setdefault("model", self.model or None)
        return render.render(form, self.shown_messages(), self.tools, **options)

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


class PlainContext(RenderableContext):
    """A context made of a list of messages, as a strategy or a custom compiler gives it.

    Attributes:
        commit: the commit it was made at, or None.
        messages: plain messages.
        model: the model that it was compiled for, or "".
        token_source: how far to trust the counts.
    """

    __slots__ = ("_counting", "_tokenizer", "_tools", "commit", "messages", "model")

    def __init__(
        self,
        messages: Sequence[Message],
        tools: Callable[[], tuple[Any, ...]],
        tokenizer: Tokenizer,
        counting: TokenCounting,
        *,
        commit: ObjectId | None = None,
        model: str = "",
    ) -> None:
        self.messages = tuple(messages)
        self.commit = commit
        self.model = model
        self._tools = tools
        self._tokenizer = tokenizer
        self._counting = counting

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @property
    def tools(self) -> tuple[Any, ...]:
        """The tool schemas in force, decoded from JSON."""
        return self._tools()

    def shown_messages(self) -> Sequence[Message]:
        """Return the messages as they are rendered."""
        return self.messages

    @property
    def token_count(self) -> int:
        """Tokens of all messages and the framing of a request."""
        if not self.messages:
            return 0
        return self._counting.scale(self._tokens().total + REPLY_TOKENS)

    @property
    def token_source(self) -> str:
        """How far to trust `token_count`, as in `CompiledContext`."""
        return source_of_sum(self._counting.source, len(self))

    @property
    def text_token_count(self) -> int:
        """Tokens of the text alone, without framing, images and what is opaque."""
        return self._counting.scale(self._tokens().text)

    @property
    def text_token_source(self) -> str:
        """How far to trust `text_token_count`, as in `CompiledContext`."""
        return self._counting.source

    def _tokens(self) -> MessageTokens:
        counts = (count_message(self._tokenizer, message) for message in self.messages)
        return sum(counts, start=MessageTokens())


def source_of_sum(source: str, message_count: int) -> str:
    """Return how far to trust a sum of text and framing, given how far the text is to be trusted."""
    if message_count and source.startswith("exact:"):
        return "estimate:" + source.removeprefix("exact:")
    return source
