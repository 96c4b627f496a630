"""The journal: the hot end of a repository, where a commit becomes durable with one write and one sync."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal import events as events
    from trace_store.journal import recovery as recovery
    from trace_store.journal import tail as tail

__getattr__ = submodules(__name__)
