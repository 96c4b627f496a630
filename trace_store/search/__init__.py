"""Find messages by what they say. SQLite is slow to load, so what is here is imported when it is asked for."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.search import query as query

__getattr__ = submodules(__name__)
