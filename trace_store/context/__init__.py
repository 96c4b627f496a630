"""Contexts: the input of a model, its size in tokens, and provider usage reports."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context import bulk_read as bulk_read
    from trace_store.context import compiler as compiler
    from trace_store.context import content as content
    from trace_store.context import fold as fold
    from trace_store.context import ghost as ghost
    from trace_store.context import index_update as index_update
    from trace_store.context import snapshots as snapshots
    from trace_store.context import token_column as token_column
    from trace_store.context import tokens as tokens
    from trace_store.context import usage as usage

__getattr__ = submodules(__name__)
