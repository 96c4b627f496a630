"""Contexts made from a plain list of messages."""

from __future__ import annotations

from trace_store.context.renderable import RenderableContext, source_of_sum
from trace_store.context.tokens.models import REPLY_TOKENS, TokenCounting
from trace_store.context.tokens.overhead import MessageTokens, count_message
from trace_store.context.tokens.tokenizer import Tokenizer, estimate_from_bytes
from trace_store.objects.content import bytes_of
from trace_store.objects.message import Message
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class PlainContext(RenderableContext):
    """A context of plain messages, from a strategy or a custom compiler.

    Attributes:
        commit: the commit it was made at, or None.
        messages: plain messages.
        model: the model that it was compiled for, or "".
        token_source: how tokens were counted.
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
        """The current tool schemas, decoded from JSON."""
        return self._tools()

    def shown_messages(self) -> Sequence[Message]:
        """Return the messages to render."""
        return self.messages

    @property
    def token_count(self) -> int:
        """Tokens of all messages, the tool schemas and the framing of a request."""
        if not self.messages:
            return 0
        import json

        schemas = [
            json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in self.tools
        ]
        tools = sum(estimate_from_bytes(len(bytes_of(each))) for each in schemas)
        return self._counting.scale(self._tokens().total + tools + REPLY_TOKENS)

    @property
    def estimated_token_count(self) -> int:
        """The same as `token_count`, since there is no provider's report."""
        return self.token_count

    @property
    def reported_token_count(self) -> None:
        """None, since there is no provider's report."""

    @property
    def token_source(self) -> str:
        """How `token_count` was counted, as in `CompiledContext`."""
        return source_of_sum(self._counting.source, len(self))

    @property
    def text_token_count(self) -> int:
        """Tokens of the text alone, without framing, images and opaque parts."""
        return self._counting.scale(self._tokens().text)

    @property
    def text_token_source(self) -> str:
        """How `text_token_count` was counted, as in `CompiledContext`."""
        return self._counting.source

    def _tokens(self) -> MessageTokens:
        counts = (count_message(self._tokenizer, message) for message in self.messages)
        return sum(counts, start=MessageTokens())
