"""Bringing back journals that were removed before they were sealed.

Rule: whatever removes ignored files, such as `git clean -fdx`, can take a journal from under a process that still
holds it open. Its transactions are written anew into the journal there is now. A ref that went elsewhere meanwhile
stays where it is; the value it would have lost is kept under `refs/trash/recovered/`.
"""

from __future__ import annotations

from trace_store.journal import Frame, Move, encode_transaction
from trace_store.oid import hash_object
from trace_store.refs import TRASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader
    from trace_store.journal import Journal, JournalFile
    from trace_store.oid import ObjectId

RECOVERED = TRASH + "recovered/"


def recover(journal: Journal, refs: RefReader) -> bool:
    """Write the transactions of lost journals into the live one; called under its lock.

    Returns:
        False when the live one is removed meanwhile, so that it has to be done once more.

    Raises:
        StorageError: the disk refuses.
    """
    held = {oid for file in journal.files for oid in file.objects}
    while journal.lost:
        file = journal.lost[0]
        journal.settle(file)
        for frame in list(file.transactions()):
            objects = [
                (oid, data) for oid, data in _objects(journal, file, frame) if oid not in held
            ]
            moves = [kept for move in frame.moves for kept in _kept(journal, refs, move)]
            if not objects and not moves:
                continue
            again = Frame.of_transaction(
                moves, author=frame.author, time=frame.time, message=frame.message
            )
            again.head = frame.head
            data = encode_transaction(
                objects,
                moves,
                author=frame.author,
                time=frame.time,
                message=frame.message,
                head=frame.head,
            )
            if not journal.append(data, again, objects, sync=True):
                return False
            held.update(oid for oid, _ in objects)
        journal.forget(file)
    return True


def _objects(journal: Journal, file: JournalFile, frame: Frame) -> list[tuple[ObjectId, bytes]]:
    found = [(oid, journal.read_from(file, offset, size)) for oid, offset, size in frame.objects]
    return [(oid, data) for oid, data in found if hash_object(data) == oid]


def _kept(journal: Journal, refs: RefReader, move: Move) -> list[Move]:
    """Return what becomes of one lost move."""
    fold = journal.fold.refs.get(move.name)
    if fold is not None and (move.new == fold.value or move.new in fold.passed):
        return []  # another process has brought it back already
    current = refs.read(move.name)
    if move.new == current:
        return []
    if move.old == current:
        return [Move(move.name, current if fold is None else fold.value, move.new)]
    if move.new is None:
        return []
    trash = f"{RECOVERED}{move.name.removeprefix('refs/')}"
    known = refs.read(trash)
    return [] if known == move.new else [Move(trash, known, move.new)]
