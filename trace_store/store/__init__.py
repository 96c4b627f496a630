"""The handle of a repository, and how a repository is found."""

from trace_store.store.discovery import find
from trace_store.store.handle import Store
from trace_store.store.unsealed import Unsealed

__all__ = ["Store", "Unsealed", "find"]
