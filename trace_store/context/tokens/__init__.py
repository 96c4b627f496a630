"""Tokens: how much a context weighs, for which model, and how far to trust the number.

Most counts are known: what counts is imported when it is first asked for.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.tokens import memo as memo
    from trace_store.context.tokens import models as models
    from trace_store.context.tokens import overhead as overhead
    from trace_store.context.tokens import tokenizer as tokenizer

__getattr__ = submodules(__name__)
