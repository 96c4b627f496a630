"""Contexts: what a model is shown, its size in tokens, and what a provider said it used."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.applying import surely_applies
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.deriving import derive
    from trace_store.context.folding import Fold
    from trace_store.context.folding_history import fold
    from trace_store.context.index_growth import Growth, Moulds
    from trace_store.context.loading import Loader
    from trace_store.context.plain import PlainContext
    from trace_store.context.recent import Recent, new_commits
    from trace_store.context.shown import Shown
    from trace_store.context.streaming import object_stream
    from trace_store.context.tokens import REPLY_TOKENS, get_tokenizer
    from trace_store.context.usage import Usage, model_of, normalise_usage

__all__ = [
    "REPLY_TOKENS",
    "ContextCompiler",
    "Fold",
    "Growth",
    "Loader",
    "Moulds",
    "PlainContext",
    "Recent",
    "Shown",
    "Usage",
    "derive",
    "fold",
    "get_tokenizer",
    "model_of",
    "new_commits",
    "normalise_usage",
    "object_stream",
    "surely_applies",
]

__getattr__ = door(
    __name__,
    {
        "ContextCompiler": "compiler",
        "Fold": "folding",
        "Growth": "index_growth",
        "Loader": "loading",
        "Moulds": "index_growth",
        "PlainContext": "plain",
        "REPLY_TOKENS": "tokens",
        "Recent": "recent",
        "Shown": "shown",
        "Usage": "usage",
        "derive": "deriving",
        "fold": "folding_history",
        "get_tokenizer": "tokens",
        "model_of": "usage",
        "new_commits": "recent",
        "normalise_usage": "usage",
        "object_stream": "streaming",
        "surely_applies": "applying",
    },
)
