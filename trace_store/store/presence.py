"""Looking again whether what a transaction names is here, since something may have been removed meanwhile.

Rule: whoever removes objects closes the live journal and does it under the journal's lock. So while a writer finds the
same journals, all that it saw is here still, and it does not look. Otherwise it looks for each object that it names,
under the lock, and what was removed is brought back before the frame is written.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.codec import links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.journal import Journal, Move
    from trace_store.odb import ObjectDatabase
    from trace_store.oid import ObjectId


def look_again(
    objects: ObjectDatabase,
    journal: Journal,
    given: Mapping[ObjectId, bytes],
    moves: list[Move],
) -> None:
    """Make sure that what a transaction names is here, under the journal's lock.

    Args:
        objects: where.
        journal: whose generation it was that something was seen under.
        given: the objects of the transaction.
        moves: its ref moves.

    Raises:
        ConcurrencyError: an object was removed meanwhile, for good.
    """
    objects.packs.refresh()  # those that are gone count no more, though this process has them open
    named = {move.new: None for move in moves}
    for data in given.values():
        named.update(dict.fromkeys(links(data)))
    stood = {
        move.old for move in moves
    }  # a ref keeps what it has, and what it lacks it lacked before
    wanted = [oid for oid in named if oid is not None and oid not in given and oid not in stood]
    wanted += objects.relied_on
    objects.relied_on.clear()
    wanted = [oid for oid in wanted if oid not in objects.purged]
    if not all(map(objects.contains, wanted)):
        objects.quarantine.bring_back()
        objects.packs.refresh()
        for oid in wanted:
            if not objects.contains(oid):
                raise errors.ConcurrencyError(
                    f"object {oid} is named, and was removed meanwhile", oid=oid
                )
    objects.looked_at = journal.generation
