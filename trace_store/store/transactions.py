"""Transactions: objects and ref updates that become durable together.

A process that removes objects first closes the live journal, under the journal's lock. So if the journals are the same
as before, nothing was removed and a writer rechecks nothing. Otherwise it looks up each object that it names, under the
lock, and restores removed ones before it writes the frame.

One transaction is one frame of the journal, written under its lock with the current refs. `advance` is the fast path
for moving one branch; it writes the same frame as `transact`.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors, refs, store
from trace_store.commit_table.graph import ancestors
from trace_store.contracts import BATCH, DURABLE, RefEdit, Transaction
from trace_store.contracts.ref_names import joins_by_merge
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES
from trace_store.journal.frames import Frame, Move
from trace_store.objects.codec import links
from trace_store.refs.resolution import merged_tips

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from trace_store.base.oid import ObjectId
    from trace_store.contracts.protocols import RefReader
    from trace_store.journal.journal import Journal
    from trace_store.odb.database import ObjectDatabase
    from trace_store.refs.database import RefDatabase

    T = TypeVar("T")
    Build = Callable[[RefReader], Transaction | None]
    Objects = Sequence[tuple[ObjectId, bytes]]
    Make = Callable[[ObjectId | None], tuple[ObjectId, Objects]]


def look_again(
    objects: ObjectDatabase,
    journal: Journal,
    given: Mapping[ObjectId, bytes],
    moves: list[Move],
) -> None:
    """Check that all objects that a transaction refers to exist, under the lock.

    Args:
        objects: the object database.
        journal: the journal whose generation was checked.
        given: the objects of the transaction.
        moves: its ref moves.

    Raises:
        ConcurrencyError: an object was permanently removed meanwhile.
    """
    objects.packs.refresh()  # removed packs no longer count, even if this process has them open
    named = {move.new: None for move in moves}
    for data in given.values():
        named.update(dict.fromkeys(links(data)))
    stood = {
        move.old for move in moves
    }  # the old value's objects are kept by the ref, or were missing before
    wanted = [oid for oid in named if oid is not None and oid not in given and oid not in stood]
    wanted += objects.required
    objects.required.clear()
    wanted = [oid for oid in wanted if oid not in objects.purged]
    if not all(map(objects.contains, wanted)):
        objects.quarantine.restore()
        objects.packs.refresh()
        for oid in wanted:
            if not objects.contains(oid):
                raise errors.ConcurrencyError(
                    f"object {oid} is needed, but was removed meanwhile", oid=oid
                )
    objects.checked_generation = journal.generation


MAXIMUM_ATTEMPTS = 100
BATCH_FRAMES = 64
"""Maximum number of transactions per sync in `batch`."""
NEAR = 64
"""Maximum number of unsealed commits to walk, to check that the newest sealed one exists."""
WORTH_LOOKING_UP_BYTES = 4096
"""Smaller objects are not looked up in packs before an append; a seal drops duplicates."""


class Transactions:
    """The transactions of a repository. Callers hold the store's mutex.

    Attributes:
        wrote: whether anything was written.
    """

    __slots__ = ("_begun", "_generation", "_journal", "_objects", "_refs", "_unsynced", "wrote")

    def __init__(self, journal: Journal, refs: RefDatabase, objects: ObjectDatabase) -> None:
        self._journal = journal
        self._refs = refs
        self._objects = objects
        self._begun: set[str] = set()
        self._unsynced = 0
        self.wrote = False
        self._generation = -1

    def transact(self, build: Build, author: str, durability: str) -> Transaction | None:
        """Write the transaction that `build` returns; see `Store.transact`."""
        return self._transact(build, author, durability, None)

    def _transact(
        self, build: Build, author: str, durability: str, built: tuple[Transaction, Frame] | None
    ) -> Transaction | None:
        """Write the result of `build`, unless an earlier `built` transaction was restored."""
        journal = self._journal
        for _ in range(MAXIMUM_ATTEMPTS):
            journal.lock()
            try:
                if journal.needs_recovery and not store.recovery.recover(
                    journal, self._refs, self._objects
                ):
                    continue
                if built is not None and (
                    journal.has_effect(built[1]) or self._is_sealed(built[1])
                ):
                    return built[0]
                transaction = build(self._refs)
                if transaction is None:
                    return None
                moves = self._refs.plan_moves(transaction.edits)
                objects = self._new(transaction.objects, moves)
                if not objects and not moves:
                    return transaction
                head = self._refs.head_target() if moves else None
                message = self._said(transaction)
                frame = self._append(objects, moves, author, message, head, durability)
                if frame is None:
                    return transaction
                built = transaction, frame
            finally:
                journal.unlock()
        raise again_and_again(journal)

    def advance(
        self,
        ref: str,
        make: Make,
        author: str,
        message: str,
        head: str | ObjectId | None,
        durability: str,
    ) -> None:
        """Advance a branch to the commit that `make` returns; see `Store.advance`."""
        journal = self._journal
        built = None
        journal.lock()
        try:
            tip = None if journal.needs_recovery else self._refs.journal_tip(ref)
            if tip is not None:
                if ref not in self._begun:
                    self._begin(ref, tip)
                oid, objects = make(tip)
                if oid != tip:
                    if head is None:
                        head = self._refs.head_target()
                    moves = [Move(ref, tip, oid)]
                    frame = self._append(
                        self._new(objects, moves), moves, author, message, head, durability
                    )
                    if frame is None:
                        return
                    built = Transaction(objects, (), message), frame
        finally:
            journal.unlock()

        def begin(tip: ObjectId | None) -> tuple[ObjectId, Objects]:
            self._begin(ref, tip)
            return make(tip)

        self._transact(advancing(ref, begin, message), author, durability, built)

    def _begin(self, ref: str, tip: ObjectId | None) -> None:
        """Check a branch before this process's first commit on it; errors as in `_check_past`."""
        if ref not in self._begun:
            self._check_past(ref, tip)
            self._begun.add(ref)

    def _check_past(self, ref: str, tip: ObjectId | None) -> None:
        """Check that commits can be added to a branch.

        Raises:
            RefLostError: its files were removed.
            BrokenHistoryError: an unsealed commit is missing, or the newest sealed one.
        """
        refs = self._refs
        if tip is None:
            if ref not in refs.known and refs.rewind_guard.is_gone(ref):
                raise errors.RefLostError(
                    f"the files of {ref} are gone, and git does not have them", ref=ref
                )
            return
        in_journal = self._journal.contains

        def unsealed(oid: ObjectId) -> Sequence[ObjectId]:
            return refs.lineage.parents(oid) if in_journal(oid) else ()

        for oid in islice(ancestors([tip], unsealed), NEAR):
            if not (in_journal(oid) or self._objects.contains(oid)):
                raise errors.BrokenHistoryError(
                    f"the history of {ref} is incomplete: commit {oid} is missing", ref=ref, oid=oid
                )

    def rotate(self) -> list[tuple[bytes, int]]:
        """Close the live journal and return the keys of the journals to seal; see `Store.rotate`."""
        journal = self._journal
        for _ in range(MAXIMUM_ATTEMPTS):
            journal.lock()
            try:
                if not journal.needs_recovery or store.recovery.recover(
                    journal, self._refs, self._objects
                ):
                    return journal.rotate()
            finally:
                journal.unlock()
        raise again_and_again(journal)

    def alone(self, do: Callable[[], T]) -> T:
        """Run a function while nobody writes; see `Store.alone`."""
        journal = self._journal
        for _ in range(MAXIMUM_ATTEMPTS):
            journal.lock()
            try:
                if journal.needs_recovery and not store.recovery.recover(
                    journal, self._refs, self._objects
                ):
                    continue
                file = journal.close_live()
                if file is None or not journal.locked:
                    continue  # the journal was removed meanwhile
                try:
                    return do()
                finally:
                    journal.continue_line(file)
            finally:
                journal.unlock()
        raise again_and_again(journal)

    def sync(self, *, there: bool) -> None:
        """Sync unsynced transactions; with `there`, also restore a lost journal."""
        journal = self._journal
        if self.wrote and there and not journal.locked:
            journal.refresh()
            if journal.lost:
                store.recovery.bring_back(journal, self._refs, self._objects)
        if self._unsynced:
            self._unsynced = 0
            journal.sync()

    def _said(self, transaction: Transaction) -> str:
        """Return the reflog message of a transaction, including the tips that it joins."""
        found: list[str] = []
        for edit in transaction.edits:
            tips = self._refs.tips(edit.name) if joins_by_merge(edit.name) else ()
            if len(tips) > 1 and edit.new is not None:
                made = dict(transaction.objects)
                taken = merged_tips(edit.new, tips, made, self._refs.lineage)
                found += [tip.short() for tip in taken]
        if not found:
            return transaction.message
        return refs.reflog.join_message(found, transaction.message)

    def _append(
        self,
        objects: Mapping[ObjectId, bytes],
        moves: list[Move],
        author: str,
        message: str,
        head: str | ObjectId | None,
        durability: str,
    ) -> Frame | None:
        """Write a transaction and release the lock; return its frame if it was lost."""
        sync = durability == DURABLE
        journal = self._journal
        on = head if isinstance(head, str) else ""
        frame = Frame.of_transaction(moves, author, self._refs.times.now(), message, on)
        file = journal.append(frame, objects, sync)
        try:
            if not journal.conclude(file, frame, sync):
                return frame
        except errors.StorageError:
            if not self._is_sealed(frame):
                raise
        self.wrote = True
        known = self._refs.known
        for move in moves:
            if move.new is None:
                known.pop(move.name, None)
            else:
                known[move.name] = move.new
        if durability == BATCH:
            self._unsynced += 1
            if self._unsynced >= BATCH_FRAMES:
                self.sync(there=False)
        return None

    def _is_sealed(self, frame: Frame) -> bool:
        """Return True if another process sealed a transaction before it was synced here."""
        self._objects.packs.refresh()
        if frame.objects:
            return all(self._objects.is_packed(oid) for oid, _, _ in frame.objects)
        return all(self._refs.read(move.name) == move.new for move in frame.moves)

    def _new(self, objects: Objects, moves: list[Move]) -> Mapping[ObjectId, bytes]:
        """Return objects that are not in the journal or, if large, in a pack; each once."""
        given = dict(objects)
        longest = 0
        for data in given.values():
            if len(data) > longest:
                longest = len(data)
        if longest > MAXIMUM_OBJECT_BYTES:
            raise errors.InvalidInputError(
                f"an object has at most {MAXIMUM_OBJECT_BYTES} bytes, not {longest}"
            )
        # A purge closes the journal, so writers refresh before they write to the next one.
        if self._generation != self._journal.generation:
            self._generation = self._journal.generation
            self._objects.refresh_tombstones()
        if self._objects.purged or self._objects.purged_texts:
            self._objects.check_not_purged(given)
        if self._objects.checked_generation != self._journal.generation:
            look_again(self._objects, self._journal, given, moves)
        found = self._journal.without_stored(given)
        if longest < WORTH_LOOKING_UP_BYTES or self._journal.published.stamp is None:
            return found  # a missing record of seals means that git may be removing packs
        # A loose file may have been written without a sync, and a damaged copy does not count.
        is_packed = self._objects.is_packed
        return {
            oid: data
            for oid, data in found.items()
            if len(data) < WORTH_LOOKING_UP_BYTES or not is_packed(oid)
        }


def advancing(ref: str, make: Make, message: str) -> Callable[[RefReader], Transaction]:
    """Return a function that builds the transaction to advance a branch."""

    def build(view: RefReader) -> Transaction:
        tip = view.read(ref)
        oid, objects = make(tip)
        return Transaction(objects, [RefEdit(ref, oid, tip)], message)

    return build


def again_and_again(journal: Journal) -> errors.StorageError:
    """Return the error for a journal that is removed again after each retry."""
    return errors.StorageError("the journal keeps disappearing", path=journal.folder)
