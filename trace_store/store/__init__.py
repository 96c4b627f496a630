"""The handle of a repository, and the discovery of repositories."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store import branch_view as branch_view
    from trace_store.store import creation as creation
    from trace_store.store import discovery as discovery
    from trace_store.store import follow as follow
    from trace_store.store import memory_disk as memory_disk
    from trace_store.store import recovery as recovery
    from trace_store.store import transactions as transactions
    from trace_store.store import trust as trust
    from trace_store.store import unsealed as unsealed

__getattr__ = submodules(__name__)
