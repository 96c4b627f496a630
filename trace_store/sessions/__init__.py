"""Sessions of agents: which there are, what each is called, and where it is."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.sessions import listing as listing
    from trace_store.sessions import titles as titles

__getattr__ = submodules(__name__)
