"""Tokens: how much a context weighs, for which model, and how far to trust the number.

Most counts are known: what counts is imported when it is first asked for.
"""

from __future__ import annotations

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.tokens.counting import REPLY_TOKENS, TokenCounting
    from trace_store.context.tokens.memo import TokenMemo
    from trace_store.context.tokens.models import PROVIDER_SOURCE, describe, nearest_model
    from trace_store.context.tokens.overhead import (
        MESSAGE_TOKENS,
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
    "nearest_model",
]

__getattr__ = door(
    __name__,
    {
        "DEFAULT_ENCODING": "tokenizer",
        "MESSAGE_TOKENS": "overhead",
        "PROVIDER_SOURCE": "models",
        "REPLY_TOKENS": "counting",
        "CallableTokenizer": "tokenizer",
        "MessageTokens": "overhead",
        "TokenCounting": "counting",
        "TokenMemo": "memo",
        "Tokenizer": "tokenizer",
        "as_tokenizer": "tokenizer",
        "count_message": "overhead",
        "count_stored_message": "overhead",
        "describe": "models",
        "get_tokenizer": "tokenizer",
        "nearest_model": "models",
    },
)
