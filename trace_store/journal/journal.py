"""The journal of a working copy: the view of it, and the way to append to it.

Rule: the highest-numbered journal is the live one; it is written to under the lock of its own descriptor only, where
its valid frames end, and never truncated or mapped. Zeros may follow them, and nothing else. A journal is closed by an
end frame, or by the begin frame of its successor, which says how many of its bytes count.
"""

from __future__ import annotations

import errno
import os

from trace_store.errors import ConcurrencyError, StorageError
from trace_store.files import create_file
from trace_store.ident import Randomness
from trace_store.journal.frames import (
    END,
    LINE_BYTES,
    TRANSACTION,
    VOID,
    Frame,
    encode_begin,
    encode_end,
    encode_transaction,
    encode_void,
)
from trace_store.journal.view import MAXIMUM_ATTEMPTS, NUMBERS_END, JournalView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.files import Disk
    from trace_store.journal.file import JournalFile
    from trace_store.journal.frames import Move
    from trace_store.layout import Layout
    from trace_store.oid import ObjectId


ROOM_BYTES = 256 * 1024
"""At most so many zeros are written at a time behind a frame."""


class Journal(JournalView):
    """The unsealed journals, and the lock under which transactions are appended to the live one."""

    def __init__(self, disk: Disk, layout: Layout, randomness: Randomness | None = None) -> None:
        super().__init__(disk, layout)
        self._randomness = randomness or Randomness()
        self._named: tuple[bytes, int] | None = None

    def lock(self) -> None:
        """Take the live journal's lock, with an up-to-date view; make the journal when there is none.

        Raises:
            StorageError: the disk refuses.
        """
        for _ in range(MAXIMUM_ATTEMPTS):
            if not self.files or self._process != os.getpid():
                self.refresh()
            if not self.files:
                self._create(None)
                continue
            live = self.files[-1]
            if live.refusal is not None and not live.closed:
                raise StorageError(live.refusal.message, path=live.path, errno=live.refusal.errno)
            self._disk.lock(live.fd)
            try:
                if not self._is_unchanged(live):
                    self.refresh()
                    if not self.files or self.files[-1] is not live:
                        continue
                    if live.closed or live.failed or not live.is_free_behind(self._disk):
                        self._create(live)  # after an end frame, a failed sync or a damaged tail
                        continue
                if len(self.files) > 1:
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
        self,
        objects: Sequence[tuple[ObjectId, bytes]],
        moves: list[Move],
        *,
        author: str,
        time: int,
        message: str,
        head: str,
        sync: bool,
    ) -> bool:
        """Append a transaction under the lock; the fields are those of a `Frame`.

        Returns:
            False when the journal has been removed meanwhile; the frame is voided then, so that nobody who holds the
            journal too brings it back, and the lock is released.

        Raises:
            InvalidInputError: it is too large, or its text is not valid UTF-8.
            StorageError: the disk refuses; the frame has no effect.
        """
        file = self._live()
        if len(file.frames) == 1:
            self._sync_name(file)
        data = encode_transaction(
            objects, moves, author=author, time=time, message=message, head=head
        )
        self._put(file, data, ahead=sync)
        frame = Frame.of_transaction(moves, author=author, time=time, message=message, head=head)
        frame.place(file.end, len(data), objects)
        if sync:
            self._sync(file, frame)
        else:
            file.unsynced = True
        file.take(frame)
        if self._disk.identity(file.path) != file.identity:
            self._matched = False
            self._void(file)
            self.unlock()
            return False
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
                file.failed = True
                self.unlock()
                self.lock()  # begins a successor
                self.unlock()
                raise

    def rotate(self) -> list[tuple[bytes, int]]:
        """Close the live journal when it has content, and return the keys of the journals to seal.

        Called under the lock, which is of no further use afterwards. Returns none when no journal has anything to seal.
        """
        file = self._live()
        closed = self.files[:-1]
        if file.has_content():
            data = encode_end()
            end = Frame(END, file.end, file.end + len(data))
            self._put(file, data)
            self._sync(file, end)
            file.take(end)
            self._create(file, line=file.line, sync=False)
            closed = self.files
        while closed and not closed[-1].has_content():
            closed = closed[:-1]
        return [other.key for other in closed]

    def settle(self, file: JournalFile) -> None:
        """Wait for a writer that is still at work on a journal that was removed, and read what it left."""
        self._disk.lock(file.fd)
        try:
            file.scan(self._disk)
        finally:
            self._disk.unlock(file.fd)

    def forget(self, file: JournalFile) -> None:
        """Drop a journal that was removed from the disk, once its frames stand in another one."""
        self.lost.remove(file)
        self._disk.close(file.fd)

    def _is_unchanged(self, live: JournalFile) -> bool:
        """Tell, under the lock of a journal, whether it is the live one still and ends where this view says.

        What is sealed or removed meanwhile without a change here is met at the next look, or after the append.
        """
        return (
            self._matched
            and live.room >= live.end
            and not live.closed
            and not live.failed
            and live.ends_here(self._disk)
            and not self._disk.exists(self._successor(live))
        )

    def _live(self) -> JournalFile:
        if self._locked is None:
            raise ConcurrencyError("the journal is not locked")
        return self._locked

    def _put(self, file: JournalFile, data: bytes, *, ahead: bool = False) -> None:
        """Write a frame where the valid ones end.

        With `ahead`, zeros are written behind it where there are none, as many as the file has bytes, within bounds:
        a sync is cheaper where the file does not grow. A process that writes once leaves none.

        Raises:
            StorageError: the disk took a part only; a successor says that it has no effect.
        """
        end = file.end + len(data)
        if ahead and file.written and end > file.room:
            data += bytes(min(file.end, ROOM_BYTES))
        taken = self._disk.write(file.fd, data, file.end)
        if file.end + taken < end:
            self._create(file)
            raise StorageError("the disk took a part of the frame only", path=file.path)
        file.room = max(file.room, file.end + taken)
        file.written = True

    def _sync(self, file: JournalFile, frame: Frame) -> None:
        """Make a frame durable that was written but is not taken yet."""
        try:
            self._disk.sync(file.fd)
        except StorageError:
            # What the disk holds of this file is unknown and a second sync may succeed falsely, so nothing is
            # written to it any more: its successor says that it ends before this frame. Without a successor others
            # go on after the frame, so it must not be cut; it is voided if the disk takes that.
            file.failed = True
            created = False
            try:
                created = self._create(file)
            finally:
                if created:
                    file.cut(frame.start)
                else:
                    file.take(frame)
                    if frame.kind == TRANSACTION:
                        self._void(file)
            raise
        file.unsynced = False

    def _void(self, file: JournalFile) -> None:
        """Take all effect from the last frame, under its journal's lock.

        Raises:
            StorageError: the disk refuses, and the frame may have effect.
        """
        data = encode_void()
        if self._disk.write(file.fd, data, file.end) != len(data):
            raise StorageError("the disk took a part of the frame only", path=file.path)
        file.take(Frame(VOID, file.end, file.end + len(data)))

    def _sync_name(self, file: JournalFile) -> None:
        """Make a journal's name durable before its first transaction, since its maker may have been killed."""
        if self._named == file.key:
            return
        self._disk.sync_directory(self._layout.journal_dir)
        if not file.frames[0].closes:
            self._disk.sync_directory(self._layout.root)
        self._named = file.key

    def _create(self, after: JournalFile | None, *, line: bytes = b"", sync: bool = True) -> bool:
        """Make a journal that says, from its first byte on, where its predecessor ends; tell whether it is there.

        It is written aside and linked into place, so no process ever sees it without that. When somebody removes
        the directory meanwhile nothing is made; whoever asked looks again and asks again.

        Args:
            after: the predecessor, whose lock is held; None when there is no journal.
            line: the line it continues; only who has just closed the predecessor may pass one, because another
                successor may have been made, and removed, else.
            sync: whether the predecessor's content is not durable yet.
        """
        try:
            return self._link_new(after, line or self._randomness.take(LINE_BYTES), sync)
        except StorageError as error:
            if error.errno != errno.ENOENT:
                raise
            return False

    def _link_new(self, after: JournalFile | None, line: bytes, sync: bool) -> bool:
        sealed = self.published.sealed.values()
        number = 1 + (after.number if after else max([self._highest_seen, *sealed]))
        path = self._layout.journal_file(number)
        if number >= NUMBERS_END:
            raise StorageError("no number is left for a journal", path=path, errno=errno.EOVERFLOW)
        if after is not None and sync and not after.failed:
            # What is acknowledged as durable in the new journal rests on all of the old one.
            try:
                self._disk.sync(after.fd)
            except StorageError:
                after.failed = True
                raise
        self._disk.make_directory(self._layout.journal_dir)
        self._disk.make_directory(self._layout.tmp_dir)
        temporary = os.path.join(self._layout.tmp_dir, f"journal-{number}-{os.urandom(6).hex()}")
        data = encode_begin([] if after is None else [(after.number, after.end)], line)
        create_file(self._disk, temporary, data)
        linked = self._disk.link(temporary, path)
        self._disk.remove(temporary)
        if not linked and self._disk.stat(path) is None:
            linked = create_file(self._disk, path, data)  # a file system without links
        self._disk.sync_directory(self._layout.journal_dir)
        if after is None:
            self._disk.sync_directory(self._layout.root)  # the directory may be new
        if linked:
            self._named = (line, number)
        return linked

    def _settle_predecessors(self) -> None:
        """Wait for writers that hold an older journal; only a removed directory can lead to that."""
        for file in self.files[:-1]:
            if not file.closed:
                self._disk.lock(file.fd)
                try:
                    self._scan(file)
                finally:
                    self._disk.unlock(file.fd)
                file.closed = True
                if not file.limited:
                    self._disk.sync(file.fd)  # its successor knew nothing of it, so nobody has
