"""One process's view of the journals of a working copy, and the way to append to them.

Rule: the highest-numbered journal is the live one; it is appended to under the lock of its own descriptor only, and
never truncated, preallocated or mapped. A journal is closed by an end frame, or by the begin frame of its successor,
which says how many of its bytes count. Reading takes no lock.
"""

from __future__ import annotations

import errno
import os

from trace_store.errors import ConcurrencyError, StorageError
from trace_store.files import create_file
from trace_store.journal.file import JournalFile, open_journal
from trace_store.journal.folding import Fold
from trace_store.journal.frames import (
    END,
    Frame,
    encode_begin,
    encode_end,
    entries_of,
)
from trace_store.journal.published import Published, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.files import Disk
    from trace_store.layout import Layout
    from trace_store.oid import ObjectId

MAXIMUM_ATTEMPTS = 100


class Journal:
    """The unsealed journals, oldest first, with their objects and the fold of their ref moves."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._process = os.getpid()
        self._highest_seen = 0
        self._highest_sealed = 0
        self._locked: JournalFile | None = None
        self.files: list[JournalFile] = []
        self.lost: list[JournalFile] = []
        """Journals that were removed from the disk before they were sealed; still readable here."""
        self.published = Published()
        self.fold = Fold()
        """What the unsealed journals say of the refs."""
        self.generation = 0
        """Counts the changes of the set of journals."""
        self.locks = 0
        """Counts how often the lock was taken."""

    @property
    def locked(self) -> bool:
        """Whether this view holds the lock, under which it is up to date."""
        return self._locked is not None

    def refresh(self) -> None:
        """Bring the view up to date: what is sealed, which journals there are, and their new frames."""
        if self._process != os.getpid():
            # A forked child shares its parent's descriptors, and with them the parent's lock.
            self.close()
            self._process = os.getpid()
        for _ in range(MAXIMUM_ATTEMPTS):
            published = load(self._disk, self._layout.published_file, self.published)
            self._highest_sealed = max(self._highest_sealed, published.sealed)
            changed = published.sealed != self.published.sealed
            self.published = published
            if not self._match_directory(changed):
                continue
            for file in self.files:
                if not file.closed:
                    self.fold.apply_all(file.scan(self._disk))
            return
        raise ConcurrencyError("the journals keep changing")

    def read(self, oid: bytes) -> bytes | None:
        """Return the bytes stored for an id, unchecked; None when no journal of this view has it."""
        for file in (*self.files, *self.lost):
            place = file.objects.get(oid)
            if place is not None:
                return self._disk.read_at(file.fd, *place)
        return None

    def contains(self, oid: bytes) -> bool:
        """Tell whether a journal of this view has the object."""
        return any(oid in file.objects for file in (*self.files, *self.lost))

    def oids(self) -> Iterator[bytes]:
        """Yield the id of every object in this view; one in two journals comes twice."""
        for file in (*self.files, *self.lost):
            yield from file.objects

    def lock(self) -> None:
        """Take the live journal's lock, with an up-to-date view; make the journal when there is none.

        Raises:
            StorageError: the disk refuses.
        """
        for _ in range(MAXIMUM_ATTEMPTS):
            if not self.files or self._process != os.getpid():
                self.refresh()
            if not self.files:
                self._create(max(self._highest_seen, self.published.sealed) + 1)
                continue
            live = self.files[-1]
            if live.refusal is not None and not live.closed:
                raise StorageError(
                    live.refusal.message, path=self._path(live), errno=live.refusal.errno
                )
            self._disk.lock(live.fd)
            try:
                self.refresh()
                if self.files and self.files[-1] is live:
                    if live.closed or self._disk.size(live.fd) > live.end:
                        self._create(live.number + 1)  # after an end frame, or a damaged tail
                    else:
                        self._settle_predecessors()
                        self._locked = live
                        self.locks += 1
                        return
            finally:
                # A journal that was sealed or replaced meanwhile is closed, and its lock gone with it.
                if self._locked is None and (live in self.files or live in self.lost):
                    self._disk.unlock(live.fd)
        raise ConcurrencyError("the journal keeps changing")

    def unlock(self) -> None:
        """Release the lock."""
        file, self._locked = self._locked, None
        if file is not None:
            self._disk.unlock(file.fd)

    def append(
        self, data: bytes, frame: Frame, objects: Sequence[tuple[ObjectId, bytes]], *, sync: bool
    ) -> bool:
        """Append a transaction frame under the lock.

        Returns:
            False when the journal has been removed meanwhile, so that the frame counts for nothing.

        Raises:
            StorageError: the disk refuses; the frame has no effect.
        """
        file = self._live()
        start = file.end
        if self._disk.write(file.fd, data) != len(data):
            self._create(file.number + 1)
            raise StorageError("the disk took a part of the frame only", path=self._path(file))
        frame.start, frame.end = start, start + len(data)
        entries_of(frame, objects)
        if sync:
            self._sync(file, start)
        else:
            file.unsynced = True
        if self._disk.identity(self._path(file)) != file.identity:
            file.cut(start)
            return False
        file.take(frame)
        self.fold.apply(frame)
        return True

    def sync(self) -> None:
        """Make everything durable that was appended without a sync.

        Raises:
            StorageError: the disk refuses; what was not yet synced may be lost.
        """
        for file in list(self.files):
            if not file.unsynced:
                continue
            file.unsynced = False
            try:
                self._disk.sync(file.fd)
            except StorageError:
                self.lock()
                try:
                    if self._live() is file:
                        self._create(file.number + 1)
                finally:
                    self.unlock()
                raise

    def rotate(self) -> int:
        """Close the live journal when it has content, and return the number of the newest closed one with content.

        Called under the lock, which is of no further use afterwards. Returns 0 when no journal has anything to seal.
        """
        file = self._live()
        if file.has_content():
            data = encode_end()
            start = file.end
            if self._disk.write(file.fd, data) != len(data):
                self._create(file.number + 1)
                raise StorageError("the disk took a part of the frame only", path=self._path(file))
            self._sync(file, start)
            file.take(Frame(END, start, start + len(data)))
            self._create(file.number + 1)
        return max((f.number for f in self.files if f.has_content()), default=0)

    def forget(self, file: JournalFile) -> None:
        """Drop a journal that was removed from the disk, once its frames stand in another one."""
        self.lost.remove(file)
        self._disk.close(file.fd)

    def read_from(self, file: JournalFile, offset: int, size: int) -> bytes:
        """Return bytes of a journal of this view."""
        return self._disk.read_at(file.fd, offset, size)

    def close(self) -> None:
        """Close all descriptors."""
        for file in (*self.files, *self.lost):
            self._disk.close(file.fd)
        self.files, self.lost = [], []
        self.fold = Fold()
        self._locked = None
        self.generation += 1

    def _live(self) -> JournalFile:
        if self._locked is None:
            raise ConcurrencyError("the journal is not locked")
        return self._locked

    def _path(self, file: JournalFile) -> str:
        return self._layout.journal_file(file.number)

    def _sync(self, file: JournalFile, start: int) -> None:
        try:
            self._disk.sync(file.fd)
        except StorageError:
            # What the disk holds of this file is unknown and a second sync may succeed falsely, so nothing is
            # written to it any more: its successor says that it ends before this frame.
            file.cut(start)
            self._create(file.number + 1)
            raise
        file.unsynced = False

    def _create(self, number: int) -> None:
        """Make a journal that says, from its first byte on, where its predecessor ends.

        It is written aside and linked into place, so no process ever sees it without that. When somebody removes
        the directory meanwhile nothing is made; whoever asked looks again and asks again.
        """
        try:
            self._link_new(number)
        except StorageError as error:
            if error.errno != errno.ENOENT:
                raise

    def _link_new(self, number: int) -> None:
        closes = [(self.files[-1].number, self.files[-1].end)] if self.files else []
        path = self._layout.journal_file(number)
        self._disk.make_directory(self._layout.journal_dir)
        self._disk.make_directory(self._layout.tmp_dir)
        temporary = os.path.join(self._layout.tmp_dir, f"journal-{number}-{os.urandom(6).hex()}")
        data = encode_begin(closes)
        create_file(self._disk, temporary, data)
        linked = self._disk.link(temporary, path)
        self._disk.remove(temporary)
        if not linked and self._disk.stat(path) is None:
            create_file(self._disk, path, data)  # a file system without links
        self._disk.sync_directory(self._layout.journal_dir)

    def _settle_predecessors(self) -> None:
        """Wait for writers that hold an older journal; only a removed directory can lead to that."""
        for file in self.files[:-1]:
            if not file.closed:
                self._disk.lock(file.fd)
                self.fold.apply_all(file.scan(self._disk))
                self._disk.unlock(file.fd)
                file.closed = True

    def _match_directory(self, changed: bool) -> bool:
        """Make `files` the unsealed journals on the disk; False when one vanished while it was opened."""
        sealed = self.published.sealed
        numbers = sorted(n for n in journal_numbers(self._disk, self._layout) if n > sealed)
        kept: dict[int, JournalFile] = {}
        for file in self.files:
            if file.number in numbers and self._disk.identity(self._path(file)) == file.identity:
                kept[file.number] = file
            else:
                changed = True
        opened: list[JournalFile] = []
        for number in numbers:
            if number not in kept:
                changed = True
                found = open_journal(self._disk, self._layout.journal_file(number), number)
                if found is None:
                    for other in opened:
                        self._disk.close(other.fd)
                    return False
                opened.append(found)
        if changed:
            self._replace_files(kept, opened)
        return True

    def _replace_files(self, kept: dict[int, JournalFile], opened: list[JournalFile]) -> None:
        for file in self.files:
            if file.number not in kept:
                file.scan(self._disk)
                unsealed = file.number > self._highest_sealed and file.has_content()
                if unsealed or file is self._locked:
                    self.lost.append(file)
                else:
                    self._disk.close(file.fd)
        self.files = sorted((*kept.values(), *opened), key=lambda file: file.number)
        self.generation += 1
        limits: dict[int, int] = {}
        for file in reversed(
            self.files
        ):  # newest first: a journal begins with saying where its predecessor ends
            if file.number in limits:
                file.cut(limits[file.number])
            file.scan(self._disk)
            for frame in file.frames[:1]:
                limits.update(frame.closes)
        self._highest_seen = max([self._highest_seen, *(file.number for file in self.files)])
        self.fold = Fold()
        for file in self.files:
            self.fold.apply_all(file.frames)


def journal_numbers(disk: Disk, layout: Layout) -> list[int]:
    """Return the numbers of the journals on the disk, in no order; other files there are passed over."""
    names = disk.names(layout.journal_dir)
    return [int(n) for n in names if n.isascii() and n.isdecimal() and n[0] != "0" and len(n) < 16]
