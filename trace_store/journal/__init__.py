"""The journal: the hot end of a repository, where a commit becomes durable with one write and one sync."""

from trace_store.doors import door
from trace_store.journal.file import JournalFile
from trace_store.journal.folding import Fold, RefFold
from trace_store.journal.frames import Frame, Move, encode_transaction
from trace_store.journal.journal import Journal
from trace_store.journal.published import Published
from trace_store.journal.view import journal_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal.wreckage import frame_starts, is_cut_off, objects_at, transactions_in

__getattr__ = door(
    __name__,
    {
        "frame_starts": "wreckage",
        "is_cut_off": "wreckage",
        "objects_at": "wreckage",
        "transactions_in": "wreckage",
    },
)

__all__ = [
    "Fold",
    "Frame",
    "Journal",
    "JournalFile",
    "Move",
    "Published",
    "RefFold",
    "encode_transaction",
    "frame_starts",
    "is_cut_off",
    "journal_numbers",
    "objects_at",
    "transactions_in",
]
