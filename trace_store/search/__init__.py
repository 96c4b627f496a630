"""Full-text search in messages. SQLite is slow to load, so the modules here are loaded late."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.search import query as query

__getattr__ = submodules(__name__)
