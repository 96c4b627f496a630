"""Bringing back journals that were removed before they were sealed.

Rule: whatever removes ignored files, such as `git clean -fdx`, can take a journal from under a process that still
holds it open. Its transactions are written anew into the journal there is now. A ref that went elsewhere meanwhile
stays where it is; the value it would have lost is kept under `refs/trash/recovered/`, each in a ref of its own.
"""

from __future__ import annotations

from itertools import pairwise

from trace_store import errors
from trace_store.graph import ancestors
from trace_store.journal.frames import Frame, Move
from trace_store.objects.codec import links
from trace_store.oid import digest, hash_object
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import RECOVERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal.file import JournalFile
    from trace_store.journal.journal import Journal
    from trace_store.odb.database import ObjectDatabase
    from trace_store.oid import ObjectId
    from trace_store.refs.database import RefDatabase
    from trace_store.refs.resolution import Lineage

MAXIMUM_ATTEMPTS = 100


def recover(journal: Journal, refs: RefDatabase, objects: ObjectDatabase) -> bool:
    """Write the transactions of lost journals into the live one; called under its lock.

    What others have brought back, and perhaps sealed since, is not written again: each of many processes may hold the
    same file. A journal that is here may rest on one that is not: its moves expect values that nobody knows of, and
    have no effect. They are made again once what they rest on is back; else what they moved refs to is kept aside.

    Returns:
        False when the live one is removed meanwhile, or somebody is at work on a lost one still, so that it has to be
        done once more.

    Raises:
        StorageError: the disk refuses.
    """
    held = {oid for file in journal.files for oid in file.objects}
    objects.packs.refresh()  # those that are gone count no more, though this process may have them open
    pasts = Pasts(refs.lineage)
    while journal.lost:
        file = journal.lost[0]
        if not journal.settle(file):
            return False
        for frame in list(file.transactions()):
            found = _objects(journal, file, frame)
            lacking = {o: d for o, d in found if o not in held and not objects.is_packed(o)}
            moves = _judged(journal, refs, pasts, frame)
            if not lacking and not moves:
                continue
            _keep_named(objects, found, moves)
            if not _write_again(journal, frame, moves, lacking):
                return False
            held.update(lacking)
        journal.forget(file)
    for frame in journal.unsettled:
        moves = _judged(journal, refs, pasts, frame)
        if moves and not _write_again(journal, frame, moves, {}):
            return False
        journal.settled.add(frame)
    return True


def bring_back(journal: Journal, refs: RefDatabase, objects: ObjectDatabase) -> None:
    """Write journals anew that were removed from under this view; takes the lock if there are any.

    Raises:
        StorageError: the disk refuses.
        ConcurrencyError: journals are removed again and again.
    """
    for _ in range(MAXIMUM_ATTEMPTS):
        if not journal.lost:
            return
        journal.lock()
        try:
            recover(journal, refs, objects)
        finally:
            journal.unlock()
    raise errors.ConcurrencyError("the journal goes again and again")


def _write_again(
    journal: Journal, frame: Frame, moves: list[Move], objects: dict[ObjectId, bytes]
) -> bool:
    again = Frame.of_transaction(moves, frame.author, frame.time, frame.message, frame.head)
    return journal.confirm(journal.append(again, objects, True), again)


def _judged(journal: Journal, refs: RefDatabase, pasts: Pasts, frame: Frame) -> list[Move]:
    """Return what becomes of the moves of a frame that have no effect so far."""
    for move in frame.moves:
        refs.known.pop(move.name, None)  # where it stands now is said here
    return [
        kept
        for name in dict.fromkeys(move.name for move in frame.moves)
        for kept in _kept(journal, refs, pasts, [m for m in frame.moves if m.name == name])
    ]


def _objects(journal: Journal, file: JournalFile, frame: Frame) -> list[tuple[ObjectId, bytes]]:
    found = [(oid, journal.read_from(file, offset, size)) for oid, offset, size in frame.objects]
    return [(oid, data) for oid, data in found if hash_object(data) == oid]


def _keep_named(
    objects: ObjectDatabase, found: list[tuple[ObjectId, bytes]], moves: list[Move]
) -> None:
    """Bring back what was removed because nobody saw that a lost transaction named it."""
    named = {oid for _, data in found for oid in links(data)}
    named.update(move.new for move in moves if move.new is not None)
    if not all(map(objects.contains, named)):
        objects.quarantine.restore()
        objects.packs.refresh()


def _kept(journal: Journal, refs: RefDatabase, pasts: Pasts, moves: list[Move]) -> list[Move]:
    """Return what becomes of the lost moves of one ref in one frame, of which only the last value counts."""
    name, new = moves[0].name, moves[-1].new
    fold = journal.fold.refs.get(name)
    if fold is not None and (new == fold.value or new in fold.passed):
        return []  # another process has brought it back already
    current = refs.read(name)
    if new == current and len(moves) < 2:
        return []
    given_up = [move.old for move in moves]
    if current in (*given_up, new):
        start = current if fold is None else fold.value
        return [Move(name, a, b) for a, b in pairwise([start, *given_up, new]) if a != b]
    if new is None or (current is not None and pasts.precede(new, current)):
        return []
    return rescued(refs, pasts, name, new)


def rescued(refs: RefDatabase, pasts: Pasts, name: str, new: ObjectId) -> list[Move]:
    """Return the move that keeps a value of a ref which stands elsewhere; none when something keeps it already.

    What is kept of it before goes on when the value continues it, and else stays: the next number is taken.
    """
    last = pasts.kept.get(name)
    if last is not None and last[1] in refs.lineage.parents(new) and refs.read(last[0]) == last[1]:
        pasts.kept[name] = last[0], new
        return [Move(last[0], last[1], new)]
    number = 1
    while True:
        trash = rescue_name(name, number)
        known = refs.read(trash)
        if known is None or known in refs.lineage.parents(new):
            pasts.kept[name] = trash, new
            return [Move(trash, known, new)]
        if pasts.precede(new, known):
            return []
        number += 1


class Pasts:
    """The pasts of commits; each is walked through once, however many commits are looked for in it.

    Attributes:
        kept: by ref, which other ref keeps what it would have lost, and what that is: the next mostly continues it.
    """

    __slots__ = ("_known", "_lineage", "kept")

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._known: dict[ObjectId, set[ObjectId]] = {}
        self.kept: dict[str, tuple[str, ObjectId]] = {}

    def precede(self, earlier: ObjectId, later: ObjectId) -> bool:
        """Tell whether a commit is the other, or lies in its past."""
        parents = self._lineage.parents
        if earlier == later or earlier in parents(later):
            return True
        past = self._known.get(later)
        if past is None:
            past = self._known[later] = set(ancestors([later], parents))
        return earlier in past


def rescue_name(name: str, number: int = 1) -> str:
    """Return the ref that keeps what another would have lost; a name that would be too long is hashed.

    Args:
        name: the other ref. One that keeps such a value itself is kept beside it, under its own next number.
        number: the first has none, and the second value that has nothing to do with the first ends in `.2`.
    """
    if name.startswith(RECOVERED):
        base = name
        head, _, last = name.rpartition(".")
        if last.isdecimal():
            base = head
    else:
        base = f"{RECOVERED}{name.removeprefix('refs/')}"
    end = f".{number}" if number > 1 else ""
    if is_ref_name(base + end):
        return base + end
    return f"{RECOVERED}{digest(name.encode()).hex()[:40]}{end}"
