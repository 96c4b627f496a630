"""Contexts: the input of a model, its size in tokens, and provider usage reports."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context import bulk_read as bulk_read
    from trace_store.context import compiler as compiler
    from trace_store.context import content as content
    from trace_store.context import fold as fold
    from trace_store.context import ghost as ghost
    from trace_store.context import index_update as index_update
    from trace_store.context import session_lists as session_lists
    from trace_store.context import snapshots as snapshots
    from trace_store.context import summary as summary
    from trace_store.context import token_column as token_column
    from trace_store.context import tokens as tokens
    from trace_store.context import usage as usage
    from trace_store.context.content import call_line as call_line
    from trace_store.context.content import result_line as result_line
    from trace_store.context.faults import Fault as Fault
    from trace_store.context.repair_steps import RepairedContext as RepairedContext
    from trace_store.context.repair_steps import repair_context as repair_context
    from trace_store.context.tokens.models import nearest_model as nearest_model
    from trace_store.context.tokens.tokenizer import CallableTokenizer as CallableTokenizer
    from trace_store.context.tokens.tokenizer import Tokenizer as Tokenizer
    from trace_store.context.tokens.tokenizer import get_tokenizer as get_tokenizer
    from trace_store.context.usage import Usage as Usage
    from trace_store.context.usage import normalise_usage as normalise_usage

_HOMES = {
    "call_line": "content",
    "CallableTokenizer": "tokens.tokenizer",
    "Fault": "faults",
    "get_tokenizer": "tokens.tokenizer",
    "nearest_model": "tokens.models",
    "normalise_usage": "usage",
    "repair_context": "repair_steps",
    "RepairedContext": "repair_steps",
    "result_line": "content",
    "Tokenizer": "tokens.tokenizer",
    "Usage": "usage",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
