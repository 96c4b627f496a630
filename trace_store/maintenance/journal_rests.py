"""What stands in a journal behind the frames that count, which a seal that is done with the journal would take along.

Behind damage there may be transactions that were acknowledged: they are kept, for a repair to find.
"""

from __future__ import annotations

from trace_store import journal
from trace_store.maintenance.journal_checks import is_distrusted, rest_of
from trace_store.maintenance.lost_found import keep_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal import JournalFile
    from trace_store.store import Store


def keep_rests(store: Store, files: list[JournalFile]) -> None:
    """Put what stands behind the frames of journals into `lost-found/`, before a seal is done with them.

    A write that did not come to its end was never acknowledged, and zeros are nothing.

    Raises:
        StorageError: the disk refuses.
    """
    for file in files:
        rest = b"" if is_distrusted(store, file) else rest_of(store, file)
        if rest.strip(b"\0") and (
            journal.transactions_in(rest) or not journal.is_cut_off(rest, file.end)
        ):
            keep_bytes(store, f"journal/{file.number}", rest)
