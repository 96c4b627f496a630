"""Reversible ways to shrink a context: trim, suggestions, and summaries."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.compression import budgets as budgets
    from trace_store.compression import compress as compress
    from trace_store.compression import expand as expand
    from trace_store.compression import losses as losses
    from trace_store.compression import selection as selection
    from trace_store.compression import suggest as suggest
    from trace_store.compression import summaries as summaries
    from trace_store.compression import trim as trim
    from trace_store.compression import working as working

__getattr__ = submodules(__name__)
