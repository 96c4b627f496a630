"""One process's view of the journals of a working copy.

Rule: reading takes no lock. A number alone names no journal, since numbers begin anew where everything ignored is
removed: a journal is known by its line, a random id that only the successor which its closer makes takes over, and its
number.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.journal.file import JournalFile, open_journal
from trace_store.journal.frames import VOID
from trace_store.journal.published import Published, load, stamp_of
from trace_store.journal.ref_moves import RefMoves
from trace_store.journal.sealed_ranges import Sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trace_store.contracts import Patience
    from trace_store.files import Disk
    from trace_store.journal.frames import Frame
    from trace_store.layout import Layout
    from trace_store.oid import ObjectId

    Objects = Mapping[ObjectId, bytes]

MAXIMUM_ATTEMPTS = 100
NUMBERS_END = 1 << 63


class JournalView:
    """The unsealed journals, oldest first, with their objects and the fold of their ref moves."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._process = os.getpid()
        self._highest_seen = 0
        self._sealed = Sealed()
        self._shut = False
        self._matched = False
        self._next = (0, "")
        self._locked: JournalFile | None = None
        self._busy: JournalFile | None = None
        self.files: list[JournalFile] = []
        self.lost: list[JournalFile] = []
        """Journals that were removed from the disk before they were sealed; still readable here."""
        self.covered: dict[int, tuple[object, bytes]] = {}
        """Sealed journals still on the disk: by number, the file's stamp, and of which line.

        They are not held open, so another file may get the identity of one that is gone; but no other is as long, and
        as old."""
        self.published = Published()
        self.fold = RefMoves()
        """What the unsealed journals say of the refs."""
        self.settled: set[Frame] = set()
        """Frames without effect of which this process has seen to it that what they moved refs to is kept."""
        self.generation = 0
        """Counts the changes of the set of journals."""
        self.patience: Patience | None = None
        """Told for whom this process waits; None when there is nobody to tell."""
        self.locks = 0
        """Counts how often the lock was taken."""

    @property
    def folder(self) -> str:
        """The directory of the journals."""
        return self._layout.journal_dir

    @property
    def unsettled(self) -> list[Frame]:
        """Frames that rest on a journal that is not here, so that their moves have no effect."""
        return [frame for frame in self.fold.refused if frame not in self.settled]

    @property
    def lacks(self) -> bool:
        """Whether something was removed, so that what it said, or what rests on it, has to be brought back."""
        return bool(self.lost or (self.fold.refused and self.unsettled))

    @property
    def locked(self) -> bool:
        """Whether this view holds the lock, under which it is up to date."""
        return self._locked is not None

    def refresh(self) -> None:
        """Bring the view up to date: what is sealed, which journals there are, and their new frames.

        Raises:
            ClosedError: the handle is closed.
            StorageError: the disk refuses.
        """
        self._check_open()
        if self._process != os.getpid():
            # A forked child shares its parent's descriptors, and with them the parent's lock.
            self.close()
            self._process = os.getpid()
        for _ in range(MAXIMUM_ATTEMPTS):
            published = load(self._disk, self._layout, self.published)
            if published is not self.published:
                self._matched = False
                self.published = published
                self._sealed.add_all(published.sealed)
            if not self._is_settled() and not self._match_directory():
                continue
            for file in reversed(self.files):  # what a newer one rests on stands in the older ones
                if not file.closed:
                    self._scan(file)
            return
        raise errors.ConcurrencyError("the journals keep changing")

    def doubt(self) -> None:
        """Let whoever takes the lock next look at everything anew: what this view holds may have been sealed."""
        self._matched = False

    def read(self, oid: bytes) -> bytes | None:
        """Return the bytes stored for an id, unchecked; None when no journal of this view has it.

        Raises:
            ClosedError: the handle is closed.
        """
        self._check_open()
        for file in (*self.files, *self.lost):
            place = file.place(oid)
            if place is not None:
                return self._disk.read_at(file.fd, *place)
        return None

    def contains(self, oid: bytes) -> bool:
        """Tell whether a journal of this view has the object.

        Raises:
            ClosedError: the handle is closed.
        """
        self._check_open()
        for file in self.files:
            if oid in file.objects:
                return True
        return bool(self.lost) and any(oid in file.objects for file in self.lost)

    def lacking(self, objects: Objects) -> Objects:
        """Return those of some objects that no journal of this view has; called under the lock."""
        for file in (*self.files, *self.lost):
            held = file.objects
            if not held.keys().isdisjoint(objects):
                objects = {oid: data for oid, data in objects.items() if oid not in held}
        return objects

    def oids(self) -> Iterator[bytes]:
        """Yield the id of every object in this view; one in two journals comes twice."""
        for file in (*self.files, *self.lost):
            yield from file.objects

    def read_from(self, file: JournalFile, offset: int, size: int) -> bytes:
        """Return bytes of a journal of this view."""
        return self._disk.read_at(file.fd, offset, size)

    def shut(self) -> None:
        """Close all descriptors for good: reading raises ClosedError afterwards."""
        self.close()
        self._shut = True

    def close(self) -> None:
        """Close all descriptors; the next refresh opens what there is."""
        for file in (*self.files, *self.lost):
            self._disk.close(file.fd)
        self.files, self.lost = [], []
        self.covered = {}
        self.fold = RefMoves()
        self._locked = self._busy = None
        self._matched = False
        self.generation += 1

    def _check_open(self) -> None:
        if self._shut:
            raise errors.ClosedError("the repository is closed")

    def _scan(self, file: JournalFile) -> list[Frame]:
        """Read what was added to a journal, fold it, and return it."""
        found = file.scan(self._disk)
        if found and (file is not self.files[-1] or any(frame.kind == VOID for frame in found)):
            self._fold_again()  # it comes before, or takes back, what was folded already
        else:
            self.fold.apply_all(found)
        return found

    def _fold_again(self) -> None:
        self.generation += 1
        self.fold = RefMoves()
        for file in self.files:
            self.fold.apply_all(file.frames)

    def _is_settled(self) -> bool:
        """Tell whether a listing would say nothing new: known journals are in place, and the live one has no successor.

        Nothing is sealed without an end frame in the live journal, or a successor that ends it.
        """
        if not self._matched or not self.files or self.files[-1].closed:
            return False
        for file in self.files:
            if self._disk.identity(file.path) != file.identity:
                return False
        return not self._disk.exists(self._successor(self.files[-1]))

    def _successor(self, live: JournalFile) -> str:
        """Return the path of the journal that follows the live one."""
        if self._next[0] != live.number:
            self._next = (live.number, self._layout.journal_file(live.number + 1))
        return self._next[1]

    def _match_directory(self) -> bool:
        """Make `files` the unsealed journals on the disk; False when one vanished, or was sealed, meanwhile."""
        known = {file.number: file for file in self.files}
        covered: dict[int, tuple[object, bytes]] = {}
        kept: dict[int, JournalFile] = {}
        opened: list[JournalFile] = []
        for number in sorted(journal_numbers(self._disk, self._layout)):
            identity = self._disk.identity(self._layout.journal_file(number))
            file = known.get(number)
            if identity is None:
                self._drop(opened)
                return False
            if file is not None and file.identity == identity:
                if self.published.covers(*file.key):
                    covered[number] = (stamp_of(self._disk, file.path), file.line)
                else:
                    kept[number] = file
                continue
            before = self.covered.get(number)
            if (
                before is not None
                and before[0] == stamp_of(self._disk, self._layout.journal_file(number))
                and self.published.covers(before[1], number)
            ):
                covered[number] = before
            elif not self._open(number, opened, covered):
                self._drop(opened)
                return False
        gone = [file for file in self.files if file.number not in kept]
        if not all(map(self._is_sealed, gone)) and self.is_published_anew():
            self._drop(opened)
            return False
        self.covered = covered
        if gone or opened:
            self._replace_files(kept, opened)
        self._matched = True
        return True

    def _open(
        self,
        number: int,
        opened: list[JournalFile],
        covered: dict[int, tuple[object, bytes]],
    ) -> bool:
        """Open a journal, but leave one that is sealed alone; False when it is not there any more."""
        file = open_journal(self._disk, self._layout.journal_file(number), number)
        if file is None:
            return False
        if number <= self.published.sealed.highest:
            line = file.begin(self._disk)
            if self.published.covers(line, number):
                covered[number] = (stamp_of(self._disk, file.path), line)
                self._disk.close(file.fd)
                return True
        opened.append(file)
        return True

    def _drop(self, opened: list[JournalFile]) -> None:
        for file in opened:
            self._disk.close(file.fd)

    def is_published_anew(self) -> bool:
        """Tell whether a journal may have been sealed, and removed, since `published` was read."""
        return load(self._disk, self._layout, self.published) is not self.published

    def _is_sealed(self, file: JournalFile) -> bool:
        return self._sealed.covers(file.line, file.number)

    def _replace_files(self, kept: dict[int, JournalFile], opened: list[JournalFile]) -> None:
        for file in self.files:
            if file.number not in kept:
                file.scan(self._disk)
                unsealed = not self._is_sealed(file) and file.has_content()
                if unsealed or file is self._locked:
                    self.lost.append(file)
                else:
                    self._disk.close(file.fd)
        self.files = sorted((*kept.values(), *opened), key=lambda file: file.number)
        successors: dict[int, JournalFile] = {}
        for file in reversed(self.files):  # newest first: it says where its predecessor ends
            successor = successors.get(file.number)
            if successor is not None:
                successor.limit(file, self._disk)
            file.scan(self._disk)
            for frame in file.frames[:1]:
                successors.update((number, file) for number, _ in frame.closes)
        self.settled.intersection_update(self.fold.refused)
        self._highest_seen = max([self._highest_seen, *(file.number for file in self.files)])
        self._fold_again()


def journal_numbers(disk: Disk, layout: Layout) -> list[int]:
    """Return the numbers of the journals on the disk, in no order; other files there are passed over."""
    names = disk.names(layout.journal_dir)
    numbers = [int(n) for n in names if n.isascii() and n.isdecimal() and n[0] != "0"]
    return [number for number in numbers if number < NUMBERS_END]
