"""Recovery of journals that were removed before a seal.

Rule: a command that removes ignored files, such as `git clean -fdx`, can remove a journal that a process still has
open. Its transactions are then written to the current journal. A ref that has moved elsewhere since stays where it is;
the value that would be lost is kept under `refs/trash/recovered/`, each in its own ref.
"""

from __future__ import annotations

from itertools import pairwise

from trace_store import errors
from trace_store.base.oid import ObjectId, digest, hash_object
from trace_store.commit_table.graph import ancestors
from trace_store.contracts.ref_names import RECOVERED, is_ref_name
from trace_store.journal.file import JournalFile
from trace_store.journal.frames import Frame, Move
from trace_store.journal.journal import Journal
from trace_store.objects.codec import links
from trace_store.odb.database import ObjectDatabase
from trace_store.refs.database import RefDatabase
from trace_store.refs.resolution import Lineage

MAXIMUM_ATTEMPTS = 100


def recover(journal: Journal, refs: RefDatabase, objects: ObjectDatabase) -> bool:
    """Copy the transactions of lost journals to the live one; called under its lock.

    Many processes may have the same lost file open, so transactions that another one has already restored are skipped.
    An existing journal may depend on a missing one: its moves then expect unknown values and have no effect. They are
    applied again once the missing journal is restored; otherwise their new values are kept in the trash.

    Returns:
        False if the live journal was removed meanwhile, or another process still writes to a lost one, so that the
        caller must retry.

    Raises:
        StorageError: the disk failed.
    """
    held: set[bytes] = {oid for file in journal.files for oid in file.objects}
    objects.packs.refresh()  # removed packs no longer count, even if this process has them open
    held |= objects.refresh_tombstones()  # what was purged since stays away
    pasts = Pasts(refs.lineage)

    def is_safe(oid: bytes) -> bool:
        # A missing record of seals means that git is removing files; the pack may be next.
        return journal.published.stamp is not None and objects.is_packed(oid)

    while journal.lost:
        file = journal.lost[0]
        if not journal.scan_removed(file):
            return False
        for frame in list(file.transactions()):
            found = _objects(journal, file, frame)
            lacking = {o: d for o, d in found if o not in held and not is_safe(o)}
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
    """Restore journals that were removed while open; takes the lock if there are any.

    Raises:
        StorageError: the disk failed.
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
    raise errors.ConcurrencyError("the journal keeps disappearing")


def _write_again(
    journal: Journal, frame: Frame, moves: list[Move], objects: dict[ObjectId, bytes]
) -> bool:
    again = Frame.of_transaction(moves, frame.author, frame.time, frame.message, frame.head)
    return journal.confirm(journal.append(again, objects, True), again)


def _judged(journal: Journal, refs: RefDatabase, pasts: Pasts, frame: Frame) -> list[Move]:
    """Return the moves to write for the ineffective moves of a frame."""
    for move in frame.moves:
        refs.known.pop(move.name, None)  # this decides on its current value
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
    """Restore objects that were removed because the transactions using them were lost."""
    named = {oid for _, data in found for oid in links(data)}
    named.update(move.new for move in moves if move.new is not None)
    if not all(map(objects.contains, named)):
        objects.quarantine.restore()
        objects.packs.refresh()


def _kept(journal: Journal, refs: RefDatabase, pasts: Pasts, moves: list[Move]) -> list[Move]:
    """Return the moves to write for a frame's lost moves of one ref; the last counts."""
    name, new = moves[0].name, moves[-1].new
    fold = journal.fold.refs.get(name)
    if fold is not None and (new == fold.value or new in fold.passed):
        return []  # another process has already restored it
    current = refs.read(name)
    if new == current and len(moves) < 2:
        return []
    given_up = [move.old for move in moves]
    # A ref is also gone if what git ignores was removed with it, and not the ref by a command of Trace.
    is_swept = current is None and journal.published.stamp is None
    if is_swept or current in (*given_up, new):
        start = current if fold is None else fold.value
        return [Move(name, a, b) for a, b in pairwise([start, *given_up, new]) if a != b]
    if new is None or (current is not None and pasts.precede(new, current)):
        return []
    return rescued(refs, pasts, name, new)


def rescued(refs: RefDatabase, pasts: Pasts, name: str, new: ObjectId) -> list[Move]:
    """Return the move that keeps a value of a moved ref in the trash, if needed.

    If an earlier kept value is a parent of this one, its ref advances. Otherwise the next number is used.
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
    """Cached histories of commits, so that each is walked only once.

    Attributes:
        kept: by ref, the trash ref with its last kept value, and that value; the next one is usually its child.
    """

    __slots__ = ("_known", "_lineage", "kept")

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._known: dict[ObjectId, set[ObjectId]] = {}
        self.kept: dict[str, tuple[str, ObjectId]] = {}

    def precede(self, earlier: ObjectId, later: ObjectId) -> bool:
        """Return True if a commit is equal to or an ancestor of another one."""
        parents = self._lineage.parents
        if earlier == later or earlier in parents(later):
            return True
        past = self._known.get(later)
        if past is None:
            past = self._known[later] = set(ancestors([later], parents))
        return earlier in past


def rescue_name(name: str, number: int = 1) -> str:
    """Return the trash ref for a lost value of a ref; an overlong name is hashed.

    Args:
        name: the ref. For a ref below `refs/trash/recovered/`, the result is the same name with another number.
        number: the number of the value; 1 adds no suffix, 2 adds `.2`.
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


def left_out(refs: RefDatabase) -> dict[str, int]:
    """Return the refs with recovered values, and how many of their commits their branch has not; cheap without any."""
    found: dict[str, int] = {}
    for name, value in refs.iterate(RECOVERED):
        base, _, number = name.rpartition(".")
        branch = "refs/" + (base if number.isdecimal() else name).removeprefix(RECOVERED)
        tip = refs.read(branch)
        if tip is None:
            continue
        past = set(ancestors([tip], refs.lineage.parents))
        count = sum(1 for oid in ancestors([value], refs.lineage.parents) if oid not in past)
        if count:
            found[name] = count
    return found
