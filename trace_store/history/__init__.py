"""History: commits, the log, branches, diff, blame and the moves of HEAD."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.history import bisect as bisect
    from trace_store.history import blame as blame
    from trace_store.history import branch_repair as branch_repair
    from trace_store.history import branch_state as branch_state
    from trace_store.history import branches as branches
    from trace_store.history import commit as commit
    from trace_store.history import diff as diff
    from trace_store.history import draft as draft
    from trace_store.history import edit_text as edit_text
    from trace_store.history import facts as facts
    from trace_store.history import log as log
    from trace_store.history import log_filters as log_filters
    from trace_store.history import lookup as lookup
    from trace_store.history import request_diff as request_diff
    from trace_store.history import reset as reset
    from trace_store.history import retention as retention
    from trace_store.history import status as status
    from trace_store.history import summary as summary
    from trace_store.history import switch as switch
    from trace_store.history import tags as tags
    from trace_store.history import text_diff as text_diff
    from trace_store.history import token_history as token_history
    from trace_store.history import trash as trash
    from trace_store.history import trash_entries as trash_entries
    from trace_store.history import trash_refs as trash_refs
    from trace_store.history import undo as undo
    from trace_store.history import whohas as whohas

__getattr__ = submodules(__name__)
