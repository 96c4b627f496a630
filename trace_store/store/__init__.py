"""The handle of a repository, and how a repository is found."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.creation import create
    from trace_store.store.discovery import find
    from trace_store.store.handle import Store
    from trace_store.store.recovery import bring_back, recover
    from trace_store.store.unsealed import Unsealed

__all__ = ["Store", "Unsealed", "bring_back", "create", "find", "recover"]

__getattr__ = door(
    __name__,
    {
        "Store": "handle",
        "Unsealed": "unsealed",
        "bring_back": "recovery",
        "create": "creation",
        "find": "discovery",
        "recover": "recovery",
    },
)
