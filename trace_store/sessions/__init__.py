"""Agent sessions: listing and titles."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.sessions import listing as listing

__getattr__ = submodules(__name__)
