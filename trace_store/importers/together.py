"""The transactions of an import, which become durable together.

Rule: what an import has written is a valid beginning after each of its transactions, whoever is killed; all of it is
durable before anything is remembered of the file, and before the import returns.
"""

from __future__ import annotations

from collections.abc import Mapping

from trace_store.contracts import BATCH, DURABLE, Transaction
from trace_store.odb import ObjectDatabase, admit
from trace_store.oid import ObjectId
from trace_store.store import Store

AUTHOR = "import"
"""Of the reflogs."""


def together(store: Store, transaction: Transaction) -> None:
    """Write a transaction that shares its sync with those behind it; errors as in `Store.transact`."""
    durability = BATCH if store.durability == DURABLE else store.durability
    store.transact(lambda _: transaction, author=AUTHOR, durability=durability)


def kept_of(store: Store, objects: Mapping[ObjectId, bytes]) -> list[tuple[ObjectId, bytes]]:
    """Return those of some objects that may be stored: what was purged is not stored again, and stays named.

    Raises:
        PurgedError: a commit itself says a text that was purged.
        StorageError: the disk refuses a tombstone.
    """
    if not isinstance(store.objects, ObjectDatabase):
        return list(objects.items())
    return list(admit(store.objects, objects).items())


def make_durable(store: Store) -> None:
    """Make durable what was written together, where the store is to be durable; errors as in `Store.sync`."""
    if store.local and store.durability == DURABLE:
        store.sync()
