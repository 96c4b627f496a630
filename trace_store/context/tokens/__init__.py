"""Tokens: how much a context weighs, for which model, and how far to trust the number."""

from __future__ import annotations

from trace_store.context.tokens.memo import TokenMemo
from trace_store.context.tokens.models import PROVIDER_SOURCE, TokenCounting, describe
from trace_store.context.tokens.overhead import (
    MESSAGE_TOKENS,
    REPLY_TOKENS,
    MessageTokens,
    count_message,
    count_stored_message,
)
from trace_store.context.tokens.tokenizer import (
    DEFAULT_ENCODING,
    CallableTokenizer,
    Tokenizer,
    as_tokenizer,
    get_tokenizer,
)

__all__ = [
    "DEFAULT_ENCODING",
    "MESSAGE_TOKENS",
    "PROVIDER_SOURCE",
    "REPLY_TOKENS",
    "CallableTokenizer",
    "MessageTokens",
    "TokenCounting",
    "TokenMemo",
    "Tokenizer",
    "as_tokenizer",
    "count_message",
    "count_stored_message",
    "describe",
    "get_tokenizer",
]
