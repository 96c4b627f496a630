"""The handle of a repository, and the discovery of repositories."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store import author as author
    from trace_store.store import branch_view as branch_view
    from trace_store.store import creation as creation
    from trace_store.store import discovery as discovery
    from trace_store.store import follow as follow
    from trace_store.store import memory_disk as memory_disk
    from trace_store.store import recovery as recovery
    from trace_store.store import reflogs as reflogs
    from trace_store.store import thread_lookup as thread_lookup
    from trace_store.store import transactions as transactions
    from trace_store.store import trust as trust
    from trace_store.store import unsealed as unsealed
    from trace_store.store.author import author_of as author_of
    from trace_store.store.author import set_user_name as set_user_name
    from trace_store.store.author import user_name as user_name
    from trace_store.store.prices import Price as Price
    from trace_store.store.prices import price_of as price_of
    from trace_store.store.prices import read_prices as read_prices
    from trace_store.store.prices import set_price as set_price
    from trace_store.store.trust import Trust as Trust

_HOMES = {
    "author_of": "author",
    "Price": "prices",
    "price_of": "prices",
    "read_prices": "prices",
    "set_price": "prices",
    "set_user_name": "author",
    "Trust": "trust",
    "user_name": "author",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
