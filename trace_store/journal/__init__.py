"""The journal: the write-ahead log that makes a commit durable with one sync."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal import recovery as recovery
    from trace_store.journal import tail as tail

__getattr__ = submodules(__name__)
