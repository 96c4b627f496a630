"""Contexts: what a model is shown, its size in tokens, and what a provider said it used."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.folding import Fold
    from trace_store.context.folding_history import fold
    from trace_store.context.index_growth import Growth
    from trace_store.context.loading import Loader
    from trace_store.context.plain import PlainContext
    from trace_store.context.snapshots import fold_of
    from trace_store.context.streaming import object_stream
    from trace_store.context.tokens import REPLY_TOKENS, get_tokenizer
    from trace_store.context.usage import Usage, model_of, normalise_usage

__all__ = [
    "REPLY_TOKENS",
    "ContextCompiler",
    "Fold",
    "Growth",
    "Loader",
    "PlainContext",
    "Usage",
    "fold",
    "fold_of",
    "get_tokenizer",
    "model_of",
    "normalise_usage",
    "object_stream",
]

__getattr__ = door(
    __name__,
    {
        "ContextCompiler": "compiler",
        "Fold": "folding",
        "Growth": "index_growth",
        "Loader": "loading",
        "PlainContext": "plain",
        "REPLY_TOKENS": "tokens",
        "Usage": "usage",
        "fold": "folding_history",
        "fold_of": "snapshots",
        "get_tokenizer": "tokens",
        "model_of": "usage",
        "normalise_usage": "usage",
        "object_stream": "streaming",
    },
)
