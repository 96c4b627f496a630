"""What is whole of branches that have lost commits.

Rule: this reads alone. Which commits a branch had is known from its reflog where its tip cannot be read any more.
"""

from __future__ import annotations

from trace_store.graph import ancestors
from trace_store.refs.names import BRANCHES
from trace_store.refs.resolving import lineage_of
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.oid import ObjectId
    from trace_store.store import Store


@value
class Gap:
    """A branch with a history that is not whole.

    Attributes:
        ref: its full name.
        tip: its value.
        missing: the newest commit that is not here.
        whole: the newest value of its reflog whose history is whole; None when none is known.
    """

    ref: str
    tip: ObjectId
    missing: ObjectId
    whole: ObjectId | None


def gaps(store: Store) -> list[Gap]:
    """Return the branches that have lost commits, sorted by name; it walks through all histories."""
    found: list[Gap] = []
    for name, tip in list(store.refs.iterate(BRANCHES)):
        missing = first_missing(store, tip)
        if missing is not None:
            found.append(Gap(name, tip, missing, newest_whole(store, name)))
    return found


def first_missing(store: Store, start: ObjectId) -> ObjectId | None:
    """Return the commit nearest to a start that is not here, the start included; None when all are."""
    past = ancestors([start], lineage_of(store.objects).parents)
    return next((oid for oid in past if not store.objects.contains(oid)), None)


def newest_whole(store: Store, name: str) -> ObjectId | None:
    """Return the newest value in the reflog of a branch whose history has no missing commit."""
    values = [each for entry in store.refs.reflog(name) for each in (entry.new, entry.old) if each]
    found = dict.fromkeys(values)
    return next((oid for oid in found if first_missing(store, oid) is None), None)
