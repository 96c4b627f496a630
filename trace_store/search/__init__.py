"""Find messages by what they say. SQLite is slow to load, so what is here is imported when it is asked for."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.search.finding import Hit, SearchFilter, search
    from trace_store.search.index import SearchIndex

__all__ = ["Hit", "SearchFilter", "SearchIndex", "search"]

__getattr__ = door(
    __name__,
    {"Hit": "finding", "SearchFilter": "finding", "search": "finding", "SearchIndex": "index"},
)
