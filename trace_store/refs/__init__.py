"""Refs: names of objects, stored as tip files, with HEAD and reflogs."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.refs import database as database
    from trace_store.refs import head as head
    from trace_store.refs import reflog as reflog
    from trace_store.refs import rewind_guard as rewind_guard
    from trace_store.refs import summary as summary

__getattr__ = submodules(__name__)
