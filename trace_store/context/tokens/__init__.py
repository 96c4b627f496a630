"""Token counting for models. Most counts are cached, so the modules here are loaded late."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.tokens import models as models
    from trace_store.context.tokens import overhead as overhead
    from trace_store.context.tokens import tokenizer as tokenizer

__getattr__ = submodules(__name__)
