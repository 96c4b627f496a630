"""Contexts: what a model is shown, its size in tokens, and what a provider said it used."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.applying import surely_applies
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.folding import Fold, fold
    from trace_store.context.tokens import REPLY_TOKENS, get_tokenizer
    from trace_store.context.usage import Usage, model_of, normalise_usage

__all__ = [
    "REPLY_TOKENS",
    "ContextCompiler",
    "Fold",
    "Usage",
    "fold",
    "get_tokenizer",
    "model_of",
    "normalise_usage",
    "surely_applies",
]

__getattr__ = door(
    __name__,
    {
        "ContextCompiler": "compiler",
        "Fold": "folding",
        "REPLY_TOKENS": "tokens",
        "Usage": "usage",
        "fold": "folding",
        "get_tokenizer": "tokens",
        "model_of": "usage",
        "normalise_usage": "usage",
        "surely_applies": "applying",
    },
)
