"""The handle of a repository, and how a repository is found."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.creation import create, put_back_settings
    from trace_store.store.discovery import find
    from trace_store.store.handle import Store
    from trace_store.store.presence import look_again
    from trace_store.store.recovery import bring_back, recover
    from trace_store.store.transactions import MemoryTransactions, Transactions
    from trace_store.store.trusting import check_trusted, distrust, trust, trusted
    from trace_store.store.unsealed import Unsealed, unsealed_of

__all__ = [
    "MemoryTransactions",
    "Store",
    "Transactions",
    "Unsealed",
    "bring_back",
    "check_trusted",
    "create",
    "distrust",
    "find",
    "look_again",
    "put_back_settings",
    "recover",
    "trust",
    "trusted",
    "unsealed_of",
]

__getattr__ = door(
    __name__,
    {
        "MemoryTransactions": "transactions",
        "Store": "handle",
        "Transactions": "transactions",
        "Unsealed": "unsealed",
        "bring_back": "recovery",
        "check_trusted": "trusting",
        "create": "creation",
        "distrust": "trusting",
        "find": "discovery",
        "look_again": "presence",
        "put_back_settings": "creation",
        "recover": "recovery",
        "trust": "trusting",
        "trusted": "trusting",
        "unsealed_of": "unsealed",
    },
)
