"""One process's view of the journals of a working copy.

Rule: reading takes no lock. A number alone does not identify a journal, because numbers restart after ignored files are
removed. A journal is identified by its line and number. The line is a random id, continued only by a successor that the
same process creates when it closes the journal.

Rule: the first move of a ref in the journals sets its base. A later move takes effect only if it expects the current
value of the fold. The moves of one frame take effect together or not at all. Files under `refs/` are not read.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.journal.file import JournalFile, open_journal
from trace_store.journal.frames import TRANSACTION, VOID, Frame
from trace_store.journal.published import Published, Sealed, load, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.contracts.protocols import LockWaiter
    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout

    Objects = Mapping[ObjectId, bytes]

MAXIMUM_ATTEMPTS = 100
NUMBERS_END = 1 << 63
MAXIMUM_SEALED_FILES = 8
"""How many sealed journals stay open."""
_GAP_BYTES, _SPAN_BYTES = 4096, 1 << 20
"""Objects with at most this between them are read together, until they are about so many bytes."""


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
        """The number of the live journal, and the path of its successor."""
        self._locked: JournalFile | None = None
        self._busy: JournalFile | None = None
        self.files: list[JournalFile] = []
        self.lost: list[JournalFile] = []
        """Journals that were removed from disk, and whose content may be in no pack; still readable here."""
        self._sealed_files: list[JournalFile] = []
        """The last sealed journals, kept open: `git clean -x` may remove the pack with their content, too."""
        self.covered: dict[int, tuple[object, bytes]] = {}
        """Sealed journals still on disk: stamp and line by number.

        They are not kept open, so another file may get the inode of a removed one; but its size and time differ."""
        self.published = Published()
        self.fold = RefsFold()
        """The refs according to the unsealed journals."""
        self.settled: set[Frame] = set()
        """Ineffective frames whose new ref values this process has made sure to keep."""
        self.generation = 0
        """Incremented when the set of journals changes, or the fold starts again."""
        self.lock_waiter: LockWaiter | None = None
        """Waits for the lock and reports its owner; None waits without a report."""
        self.locks = 0
        """Number of times that the lock was taken."""

    @property
    def folder(self) -> str:
        """The directory of the journals."""
        return self._layout.journal_dir

    @property
    def unsettled(self) -> list[Frame]:
        """Frames without effect because they depend on a missing journal."""
        return [frame for frame in self.fold.refused if frame not in self.settled]

    @property
    def needs_recovery(self) -> bool:
        """Whether a removed journal, or frames that depend on one, must be restored."""
        return bool(self.lost or (self.fold.refused and self.unsettled))

    @property
    def locked(self) -> bool:
        """Whether this view holds the lock, under which it is up to date."""
        return self._locked is not None

    def refresh(self) -> None:
        """Update the view: sealed journals, existing journals, and their new frames.

        Raises:
            ClosedError: the handle is closed.
            StorageError: the disk failed.
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
                if published.stamp is None:
                    # The record of seals was removed, and perhaps the packs.
                    for file in self._sealed_files:
                        file.scan(self._disk)
                    self.lost = self._sealed_files + self.lost
                    self._sealed_files = []
            if not self._is_unchanged() and not self._match_directory():
                continue
            # Oldest last, so that no frame is missing that a newer journal depends on.
            for file in reversed(self.files):
                if not file.closed:
                    self._scan(file)
            return
        raise errors.ConcurrencyError("the journals keep changing")

    def force_refresh(self) -> None:
        """Make the next refresh list the directory, because journals may have been sealed."""
        self._matched = False

    def read(self, oid: bytes) -> bytes | None:
        """Return the bytes stored for an id, unchecked; None if it is in no journal.

        Raises:
            ClosedError: the handle is closed.
        """
        self._check_open()
        for file in (*self.files, *self.lost):
            place = file.place(oid)
            if place is not None:
                return self._disk.read_at(file.fd, *place)
        return None

    def read_many(self, oids: Sequence[bytes], limit: int) -> tuple[int, dict[bytes, bytes]]:
        """Return a number of ids, and the bytes stored for those of them that are in a journal, unchecked.

        They are the first ids: all, or as many as have about `limit` bytes. Objects that lie close to each other are
        read together.

        Raises:
            ClosedError: the handle is closed.
        """
        self._check_open()
        files = (*self.files, *self.lost)
        wanted: dict[JournalFile, list[tuple[int, int, bytes]]] = {}
        count = 0
        for oid in oids if files else ():
            if limit <= 0:
                break
            count += 1
            for file in files:
                placed = file.objects.get(oid)
                if placed is not None:
                    wanted.setdefault(file, []).append((placed[1], placed[2], oid))
                    limit -= placed[2]
                    break
        found: dict[bytes, bytes] = {}
        for file, places in wanted.items():
            for start, end, inside in _spans(sorted(places)):
                data = self._disk.read_at(file.fd, start, end - start)
                for offset, size, oid in inside:
                    found[oid] = data[offset - start : offset - start + size]
        return (count if files else len(oids)), found

    def contains(self, oid: bytes) -> bool:
        """Return True if a journal of this view has the object.

        Raises:
            ClosedError: the handle is closed.
        """
        self._check_open()
        for file in self.files:
            if oid in file.objects:
                return True
        return bool(self.lost) and any(oid in file.objects for file in self.lost)

    def without_stored(self, objects: Objects) -> Objects:
        """Return the objects that are in no journal of this view; called under the lock."""
        for file in (*self.files, *self.lost):
            held = file.objects
            if not held.keys().isdisjoint(objects):
                objects = {oid: data for oid, data in objects.items() if oid not in held}
        return objects

    def oids(self) -> Iterator[bytes]:
        """Yield the id of every object in this view, including duplicates."""
        for file in (*self.files, *self.lost):
            yield from file.objects

    def with_prefix(self, prefix: bytes) -> list[bytes]:
        """Return the ids of objects in this view that start with some bytes, including duplicates."""
        return [
            oid
            for file in (*self.files, *self.lost)
            for oid in file.objects
            if oid.startswith(prefix)
        ]

    def read_from(self, file: JournalFile, offset: int, size: int) -> bytes:
        """Return bytes of a journal of this view."""
        return self._disk.read_at(file.fd, offset, size)

    def shut(self) -> None:
        """Close all descriptors permanently; later reads raise ClosedError."""
        self.close()
        self._shut = True

    def close(self) -> None:
        """Close all descriptors; the next refresh reopens the journals."""
        for file in (*self.files, *self.lost, *self._sealed_files):
            self._disk.close(file.fd)
        self.files, self.lost, self._sealed_files = [], [], []
        self.covered = {}
        self.fold = RefsFold()
        self._locked = self._busy = None
        self._matched = False
        self.generation += 1

    def _check_open(self) -> None:
        if self._shut:
            raise errors.ClosedError("the repository is closed")

    def _scan(self, file: JournalFile) -> list[Frame]:
        """Read and fold the new frames of a journal, and return them."""
        found = file.scan(self._disk)
        if found and (file is not self.files[-1] or any(frame.kind == VOID for frame in found)):
            self._fold_again()  # the frames precede or void frames that were already folded
        else:
            self.fold.apply_all(found)
        return found

    def _fold_again(self) -> None:
        self.generation += 1
        self.fold = RefsFold()
        for file in self.files:
            self.fold.apply_all(file.frames)

    def _is_unchanged(self) -> bool:
        """Return True if the set of journals is unchanged, without listing the directory.

        A seal first ends the live journal, by an end frame or a successor.
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
        """Set `files` to the unsealed journals on disk; False if they changed meanwhile."""
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
            if file is not None and file.identity == identity:  # known
                if self.published.covers(*file.key):
                    covered[number] = (stamp_of(self._disk, file.path), file.line)
                else:
                    kept[number] = file
                continue
            before = self.covered.get(number)  # sealed when it was last seen
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
        if not all(map(self._is_sealed, gone)) and self.has_new_seals():
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
        """Open a journal unless it is sealed; False if it is gone."""
        file = open_journal(self._disk, self._layout.journal_file(number), number)
        if file is None:
            return False
        if number <= self.published.sealed.highest:  # no journal with a higher number is sealed
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

    def has_new_seals(self) -> bool:
        """Return True if a journal may have been sealed since `published` was read."""
        return load(self._disk, self._layout, self.published) is not self.published

    def _is_sealed(self, file: JournalFile) -> bool:
        """Return True if this process has ever seen it sealed, also if the record of seals was removed since."""
        return self._sealed.covers(file.line, file.number)

    def _replace_files(self, kept: dict[int, JournalFile], opened: list[JournalFile]) -> None:
        for file in self.files:
            if file.number not in kept:
                file.scan(self._disk)
                unsealed = not self._is_sealed(file) and file.has_content()
                # The other branch would release the lock that this process holds.
                if unsealed or file is self._locked:
                    self.lost.append(file)
                else:
                    self._disk.unlock(file.fd)  # this process may just have waited for it
                    file.forget()
                    self._sealed_files.append(file)
        while len(self._sealed_files) > MAXIMUM_SEALED_FILES:
            self._disk.close(self._sealed_files.pop(0).fd)
        self.files = sorted((*kept.values(), *opened), key=lambda file: file.number)
        successors: dict[int, JournalFile] = {}
        for file in reversed(self.files):  # newest first, because each one limits its predecessor
            successor = successors.get(file.number)
            if successor is not None:
                successor.limit(file, self._disk)
            file.scan(self._disk)
            for frame in file.frames[
                :1
            ]:  # the begin frame names the journals that this one follows
                successors.update((number, file) for number, _ in frame.closes)
        self.settled.intersection_update(self.fold.refused)
        self._highest_seen = max([self._highest_seen, *(file.number for file in self.files)])
        self._fold_again()


def _spans(
    places: Sequence[tuple[int, int, bytes]],
) -> Iterator[tuple[int, int, list[tuple[int, int, bytes]]]]:
    """Yield (start, end, places) of stretches of a file that hold some of its places (offset, size, id), in order."""
    inside: list[tuple[int, int, bytes]] = []
    start = end = 0
    for place in places:
        offset, size, _ = place
        if inside and (offset - end > _GAP_BYTES or end - start > _SPAN_BYTES):
            yield start, end, inside
            inside = []
        if not inside:
            start = offset
        inside.append(place)
        end = max(end, offset + size)
    if inside:
        yield start, end, inside


def journal_numbers(disk: Disk, layout: Layout) -> list[int]:
    """Return the numbers of the journals on disk, unsorted; other files are ignored."""
    names = disk.names(layout.journal_dir)
    numbers = [int(n) for n in names if n.isascii() and n.isdecimal() and n[0] != "0"]
    return [number for number in numbers if number < NUMBERS_END]


class RefState:
    """The state of one ref in the journals.

    Attributes:
        value: its value after all effective moves; None if deleted.
        passed: all earlier values, including the base.
    """

    __slots__ = ("passed", "value")

    def __init__(self, value: ObjectId | None) -> None:
        self.value = value
        self.passed: set[ObjectId | None] = set()


class RefsFold:
    """The fold of frames: the refs, and which frames took effect.

    Attributes:
        refs: the state of each ref that was moved.
        frames: the frames that took effect, in order.
        refused: the other frames, in order: they expect values from a journal that is missing.
    """

    __slots__ = ("frames", "refs", "refused")

    def __init__(self) -> None:
        self.refs: dict[str, RefState] = {}
        self.frames: list[Frame] = []
        self.refused: list[Frame] = []

    def apply(self, frame: Frame) -> bool:
        """Apply a frame's moves; return True if they took effect."""
        if frame.kind != TRANSACTION or frame.voided or not frame.moves:
            return False
        reached: dict[str, ObjectId | None] = {}  # by earlier moves of this frame
        for move in frame.moves:
            state = self.refs.get(move.name)
            before = move.old if state is None else state.value  # the first move sets the base
            if reached.get(move.name, before) != move.old:
                self.refused.append(frame)
                return False
            reached[move.name] = move.new
        for move in frame.moves:
            state = self.refs.get(move.name)
            if state is None:
                state = self.refs[move.name] = RefState(move.old)
            state.passed.add(move.old)
            state.value = move.new
        self.frames.append(frame)
        return True

    def apply_all(self, frames: Iterable[Frame]) -> None:
        """Apply frames in order."""
        refs, effective = self.refs, self.frames
        for frame in frames:
            moves = frame.moves
            state = refs.get(moves[0].name) if len(moves) == 1 else None
            if state is None or frame.voided or frame.kind != TRANSACTION:
                self.apply(frame)
            # Inlined from `apply`, since appends to one branch are frequent.
            elif state.value == moves[0].old:
                state.passed.add(state.value)
                state.value = moves[0].new
                effective.append(frame)
            else:
                self.refused.append(frame)
