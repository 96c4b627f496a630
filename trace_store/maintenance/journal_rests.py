"""What stands in a journal behind the frames that count, which a seal that is done with the journal would take along.

Behind damage there may be transactions that were acknowledged: they are kept, for a repair to find.
"""

from __future__ import annotations

from trace_store import journal
from trace_store.files import MAXIMUM_READ_BYTES
from trace_store.journal.file import FAILED
from trace_store.journal.frames import END
from trace_store.maintenance.lost_found import keep_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal import JournalFile
    from trace_store.store import Store


def is_distrusted(store: Store, file: JournalFile) -> bool:
    """Tell whether a sync of a journal failed, here or elsewhere: a successor says what of it has effect."""
    return file.failed or file.standing(store.disk) is FAILED


def rest_of(store: Store, file: JournalFile) -> bytes:
    """Return what stands behind the frames of a journal that count; nothing when that is room for more of them."""
    if file.frames and file.frames[-1].kind == END:
        return b""
    size = store.disk.size(file.fd)
    if not file.end < size <= MAXIMUM_READ_BYTES or file.is_free_behind(store.disk):
        return b""
    return store.disk.read_at(file.fd, file.end, size - file.end)


def keep_rests(store: Store, files: list[JournalFile]) -> None:
    """Put what stands behind the frames of journals into `lost-found/`, before a seal is done with them.

    A write that did not come to its end was never acknowledged, and zeros are nothing.

    Raises:
        StorageError: the disk refuses.
    """
    for file in files:
        rest = b"" if is_distrusted(store, file) else rest_of(store, file)
        if rest.strip(b"\0") and (journal.transactions_in(rest) or not journal.is_cut_off(rest)):
            keep_bytes(store, f"journal/{file.number}", rest)
