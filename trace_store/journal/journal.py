"""The journal of a working copy: locking it and appending to it.

Rule: the highest-numbered journal is the live one. It is written only under the lock of its own file, at the end of its
valid frames, and is never truncated or mapped. Only zeros may follow the frames. A journal is closed by an end frame,
or by the begin frame of its successor, which records how many bytes of the closed journal are valid.

After a failed sync, frames that may be lost follow the begin frame.

Rule: a journal is written to a temporary file, synced, and linked to its final name, so no process ever sees one
without a complete begin frame. The creator of a successor holds the predecessor's lock.
"""

from __future__ import annotations

import errno
import os

from trace_store import errors
from trace_store.base.ident import Randomness
from trace_store.disk.files import create_file
from trace_store.disk.system_calls import SYNC_REPORTS_FAILED_WRITES
from trace_store.journal.file import FAILED, WHOLE
from trace_store.journal.frames import (
    END,
    EVENT,
    LINE_BYTES,
    TRANSACTION,
    VOID,
    Frame,
    encode_begin,
    encode_end,
    encode_transaction,
    encode_void,
    scan,
)
from trace_store.journal.view import MAXIMUM_ATTEMPTS, NUMBERS_END, JournalView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.base.oid import ObjectId
    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.journal.file import JournalFile

ROOM_BYTES = 256 * 1024
"""Maximum number of zeros written at once after a frame."""


class JournalMaker(JournalView):
    """The unsealed journals, and the creation of the next one."""

    def __init__(self, disk: Disk, layout: Layout, randomness: Randomness | None = None) -> None:
        super().__init__(disk, layout)
        self._randomness = randomness or Randomness()
        self._named: tuple[bytes, int] | None = None

    def _create(
        self,
        after: JournalFile | None,
        *,
        line: bytes = b"",
        sync: bool = True,
        moved: tuple[int, bytes] | None = None,
    ) -> bool:
        """Create a journal that limits its predecessor; return True if it was created.

        If another process removes the directory meanwhile, nothing is created, and the caller refreshes and retries.

        Args:
            after: the predecessor, whose lock is held; None without one.
            line: the line to continue. Only the process that just closed the predecessor may pass one; otherwise
                another successor may have been created and removed.
            sync: whether the predecessor must be synced first.
            moved: after a failed sync: how many bytes of the predecessor count, and the frames after them, which are
                copied to the new journal.
        """
        try:
            return self._link_new(after, line or self._randomness.take(LINE_BYTES), sync, moved)
        except errors.StorageError as error:
            if error.errno != errno.ENOENT:
                raise
            return False

    def _link_new(
        self, after: JournalFile | None, line: bytes, sync: bool, moved: tuple[int, bytes] | None
    ) -> bool:
        newest = max(self._highest_seen, self.published.sealed.highest)
        number = 1 + (newest if after is None else after.number)
        path = self._layout.journal_file(number)
        if number >= NUMBERS_END:
            raise errors.StorageError(
                "there are no more journal numbers", path=path, errno=errno.EOVERFLOW
            )
        if after is not None and sync:
            # Durable transactions in the new journal depend on the whole old one.
            try:
                self._disk.sync(after.fd)
            except errors.StorageError:
                self._distrust(after)
                raise
        layout = self._layout
        if not any(map(self._disk.exists, (layout.config_file, layout.kept_config_file))):
            raise errors.StorageError(
                f"there is no repository at {layout.root} any more: it was moved or removed",
                path=layout.root,
                errno=errno.ESTALE,
            )
        self._disk.make_directory(self._layout.journal_dir)
        self._disk.make_directory(self._layout.tmp_dir)
        temporary = os.path.join(self._layout.tmp_dir, f"journal-{number}-{os.urandom(6).hex()}")
        border, frames = moved or (0 if after is None else after.end, b"")
        closed = None if after is None else (after.line, after.number, border)
        data = encode_begin(line, closed, failed=moved is not None) + frames
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

    def _distrust(self, file: JournalFile) -> None:
        """Mark a journal whose sync failed; all writers check this before acknowledging."""
        file.failed = True
        try:
            self._disk.protect(file.fd)
        except errors.StorageError:
            return  # other processes that have it open find out by their own syncs

    def _replace(self, file: JournalFile) -> None:
        """Replace a journal whose sync failed by a successor with copies of its frames.

        Called under the lock, with all frames read. It is unknown which bytes of this file are on disk, and a second
        sync may falsely succeed, so frames that may be lost are written to another file and synced there. The frame
        whose sync just failed in this process is left out, unless a later frame depends on it.

        Raises:
            StorageError: the disk failed again. Then a frame to be left out is voided, if the disk allows it,
                because the old journal stays in use.
        """
        own = file.refused if file.frames and file.frames[-1] is file.refused else None
        kept = [frame for frame in file.frames if frame is not own and frame.kind != END]
        border = file.durable
        if not border and kept:
            border = kept[0].end  # the begin frame was synced before the file got its name
        data = self._disk.read_at(file.fd, border, (kept[-1].end if kept else border) - border)
        # On this read, some frames may be gone, and with them all later ones; their writers will notice.
        whole = [frame.end for frame in scan(lambda at, n: data[at : at + n], 0, len(data))]
        frames = data[: whole[-1] if whole else 0]
        created = False
        try:
            created = self._create(file, sync=False, moved=(border, frames))
        finally:
            if created:
                file.cut(border)
            elif own is not None and own.kind == TRANSACTION:
                self._void(file)
            file.refused = None

    def _void(self, file: JournalFile) -> None:
        """Void the last frame, under its journal's lock.

        Raises:
            StorageError: the disk failed, and the frame may have effect.
        """
        data = encode_void()
        if self._disk.write(file.fd, data, file.end) != len(data):
            raise errors.StorageError("the disk wrote only a part of the frame", path=file.path)
        file.take(Frame(VOID, file.end, file.end + len(data)))

    def _sync_name(self, file: JournalFile) -> None:
        """Sync a journal's name before its first transaction; its creator may have died."""
        if self._named == file.key:
            return
        self._disk.sync_directory(self._layout.journal_dir)
        if not file.frames[0].closes:
            self._disk.sync_directory(self._layout.root)
        self._named = file.key


class Journal(JournalMaker):
    """The unsealed journals, and the lock under which transactions are appended to the live one."""

    def lock(self) -> None:
        """Take the live journal's lock and refresh; create a journal if there is none.

        Raises:
            StorageError: the disk failed.
        """
        busy, self._busy = self._busy, None
        for _ in range(MAXIMUM_ATTEMPTS):
            if busy is not None and self._process == os.getpid():
                self._wait_and_refresh(busy)
            busy = None
            if not self.files or self._process != os.getpid():
                self.refresh()
            if not self.files:
                self._create(None)
                continue
            live = self.files[-1]
            if live.refusal is not None and not live.closed and not live.failed:
                raise errors.StorageError(
                    live.refusal.message, path=live.path, errno=live.refusal.errno
                )
            if not self._disk.lock(live.fd, blocking=False):
                self._wait_for(live)
            try:
                if not self._is_current(live):
                    self.refresh()
                    if not self.files or self.files[-1] is not live:
                        continue
                    if live.failed:
                        self._replace(live)
                        continue
                    if live.closed or not live.frames or not live.is_free_behind(self._disk):
                        # Nothing can be appended: the journal is closed, its tail is damaged, or it has no begin
                        # frame, because its creator was killed on a file system without links.
                        self._create(live)
                        continue
                if len(self.files) > 1:
                    busy = self._close_predecessors()
                    if busy is not None:
                        continue
                self._locked = live
                self.locks += 1
                return
            finally:
                # If the journal was sealed or replaced meanwhile, closing its file has released the lock.
                if self._locked is None and (live in self.files or live in self.lost):
                    self._disk.unlock(live.fd)
        raise errors.ConcurrencyError("the journal keeps changing")

    def _wait_for(self, live: JournalFile) -> None:
        """Take the lock when another process releases it; `lock_waiter` may report the owner."""
        if self.lock_waiter is None:
            self._disk.lock(live.fd)
        else:
            self.lock_waiter.lock(self._disk, live.fd, live.path)

    def unlock(self) -> None:
        """Release the lock."""
        file, self._locked = self._locked, None
        if file is not None:
            self._disk.unlock(file.fd)

    def append(self, frame: Frame, objects: Mapping[ObjectId, bytes], sync: bool) -> JournalFile:
        """Append a transaction with its objects, under the lock; return its journal.

        Other processes see the transaction at once. The caller must then call `conclude`, with the same `sync`, to
        learn whether it is durable.

        Raises:
            InvalidInputError: the transaction is too large, or its text is not valid UTF-8.
            StorageError: the disk failed; the frame has no effect.
        """
        file = self._locked or self._live()
        if len(file.frames) == 1:
            self._sync_name(file)
        data = encode_transaction(frame, objects)
        self._write_frame(file, data, sync)
        frame.place(file.end, len(data), objects)
        file.take(frame)
        self.fold.apply(frame)
        return file

    def emit(self, data: bytes) -> None:
        """Append event frames without a sync; take the lock unless it is already held.

        A frame written to a removed journal is lost; the next one goes to the new journal.

        Raises:
            StorageError: the disk failed.
        """
        if self._locked is not None:
            self._append_event(self._locked, data)
            return
        self.lock()
        try:
            file = self._live()
            self._append_event(file, data)
        finally:
            self.unlock()
        status = file.status(self._disk)
        if status is not WHOLE:
            file.failed = file.failed or status is FAILED
            self._matched = False

    def conclude(self, file: JournalFile, frame: Frame, sync: bool) -> bool:
        """Release the lock; with `sync`, wait until the transaction is durable.

        Returns:
            False if the journal was removed meanwhile. If the frame is the last one, it is then voided, so that no
            other process recovers it. Otherwise it may be recovered; call `has_effect` to find out.

        Raises:
            StorageError: a sync failed; the frame has no effect, unless voiding it failed too.
        """
        if not sync or SYNC_REPORTS_FAILED_WRITES:
            self.unlock()  # others can write meanwhile, and one device flush serves several writers
        if not sync:
            file.unsynced = True
        return self.confirm(file, frame, sync)

    def confirm(self, file: JournalFile, frame: Frame, sync: bool = True) -> bool:
        """Like `conclude`, but keep the lock unless it fails."""
        if sync:
            try:
                self._disk.sync(file.fd)
            except errors.StorageError as failure:
                return self._resolve_failed_sync(file, frame, failure)
        status = file.status(self._disk)
        if status is WHOLE:
            if sync:
                file.durable = frame.end  # a sync also covers earlier writes of other processes
                file.unsynced = False
            return True
        if status is FAILED:
            error = errors.StorageError(
                "a sync by another process failed", path=file.path, errno=errno.EIO
            )
            return self._resolve_failed_sync(file, frame, error)
        self._matched = False
        if frame.kind == TRANSACTION:
            self._void_if_last(file, frame)
        self._fold_again()  # the frame may be voided, and another journal may be live
        return False

    def has_effect(self, frame: Frame) -> bool:
        """Return True if the moves of a frame from a removed journal were recovered."""
        refs = self.fold.refs
        for move in frame.moves:
            fold = refs.get(move.name)
            if fold is None or (fold.value != move.new and move.new not in fold.passed):
                return False
        return bool(frame.moves)

    def sync(self) -> None:
        """Sync all transactions that were appended without a sync.

        Raises:
            StorageError: the disk failed; unsynced transactions may be lost.
        """
        for file in list(self.files):
            if not file.unsynced:
                continue
            file.unsynced = False
            end = file.end
            try:
                self._disk.sync(file.fd)
                file.durable = end
            except errors.StorageError:
                self._distrust(file)
                self.unlock()
                self.lock()  # creates a successor with copies of the frames
                self.unlock()
                raise

    def rotate(self) -> list[tuple[bytes, int]]:
        """Close the live journal if it has content; return the keys of journals to seal.

        Called under the lock of the journal that is closed; a later append needs the lock of the new one. The list is
        empty if there is nothing to seal.

        Raises:
            StorageError: a sync failed; the frames were copied to a successor, if the disk allowed it.
        """
        closed = self.files[:-1]
        if self._live().has_content():
            self.renew()
            closed = self.files
        while closed and not closed[-1].has_content():
            closed = closed[:-1]
        return [other.key for other in closed]

    def renew(self) -> None:
        """Close the live journal, under the lock, so that all writers switch to a new one.

        Raises:
            StorageError: a sync failed; the frames were copied to a successor, if the disk allowed it.
        """
        file = self.close_live()
        if file is not None:
            self.continue_line(file)

    def close_live(self) -> JournalFile | None:
        """Append an end frame to the live journal, and keep its lock.

        A process that gets the lock later reads the end frame, and refreshes.

        Returns:
            The journal, for `continue_line`; None if it was removed and must be recovered first.

        Raises:
            StorageError: the disk failed.
        """
        file = self._live()
        data = encode_end()
        end = Frame(END, file.end, file.end + len(data))
        self._write_frame(file, data)
        file.take(end)
        return file if self.confirm(file, end) else None

    def continue_line(self, file: JournalFile) -> None:
        """Create the successor of the journal that was just closed, still under its lock."""
        self._create(file, line=file.line, sync=False)

    def scan_removed(self, file: JournalFile) -> bool:
        """Read the last frames of a removed journal, under the live journal's lock.

        Returns:
            False if another process holds the lock of the removed journal. Waiting here could deadlock, because that
            process may use it as its live journal and wait for ours. So the next `lock` first waits for that process.
        """
        if not self._disk.lock(file.fd, blocking=False):
            self._busy = file
            return False
        try:
            file.scan(self._disk)
        finally:
            self._disk.unlock(file.fd)
        return True

    def forget(self, file: JournalFile) -> None:
        """Drop a removed journal after its frames were copied to another one."""
        self.lost.remove(file)
        self._disk.close(file.fd)

    def _is_current(self, live: JournalFile) -> bool:
        """Return True if the locked journal is still the live one, and read new frames.

        Seals and removals that do not show here are detected on the next refresh, or after the append.
        """
        disk = self._disk
        if not self._matched or not live.frames or live.closed or live.failed:
            return False
        if disk.exists(self._successor(live)):
            return False
        if not live.ends_here(disk):
            self._scan(live)
            if not live.at_end:
                return False
        return live.room >= live.end or live.is_free_behind(disk)

    def _live(self) -> JournalFile:
        if self._locked is None:
            raise errors.ConcurrencyError("the journal is not locked")
        return self._locked

    def _write_frame(self, file: JournalFile, data: bytes, preallocate: bool = False) -> None:
        """Write a frame after the valid ones.

        With `preallocate`, zeros are written after the frame, because a sync is cheaper if the file does not grow.
        Their number is the size of the file, at most `ROOM_BYTES`. The first frame that a process writes gets none.

        Raises:
            StorageError: only a part was written; a successor was created that excludes that part.
        """
        end = file.end + len(data)
        if preallocate and file.written and end > file.room:
            data += bytes(min(file.end, ROOM_BYTES))
        reached = file.end + self._disk.write(file.fd, data, file.end)
        if reached < end:
            self._create(file)
            raise errors.StorageError("the disk wrote only a part of the frame", path=file.path)
        if reached > file.room:
            file.room = reached
        file.written = True

    def _append_event(self, file: JournalFile, data: bytes) -> None:
        self._write_frame(file, data)
        file.take(Frame(EVENT, file.end, file.end + len(data)))

    def _resolve_failed_sync(
        self, file: JournalFile, frame: Frame, error: errors.StorageError
    ) -> bool:
        """Determine the outcome of a frame after a failed sync of its journal.

        The first process to notice copies the frames to a successor. If this frame is among them, it is durable.

        Returns:
            True: the frame is durable.

        Raises:
            StorageError: the frame is not durable.
        """
        self._distrust(file)
        file.refused = frame
        self.unlock()
        for _ in range(MAXIMUM_ATTEMPTS):
            try:
                self.lock()
                if any(
                    frame.has_same_content(other)
                    for each in self.files
                    for other in each.transactions()
                ):
                    return True
                if file not in self.lost or self._void_if_last(file, frame, blocking=False):
                    break
            finally:
                self.unlock()
        raise error

    def _void_if_last(self, file: JournalFile, frame: Frame, *, blocking: bool = True) -> bool:
        """Void a frame of a removed journal, unless later frames depend on it.

        Returns:
            False if another process has the lock and `blocking` is not set.
        """
        held = self._locked is file
        if not held and not self._disk.lock(file.fd, blocking=blocking):
            self._busy = file
            return False
        try:
            file.scan(self._disk)
            if file.frames[-1] is frame:
                self._void(file)
        finally:
            self._disk.unlock(file.fd)
            if held:
                self._locked = None
        return True

    def _close_predecessors(self) -> JournalFile | None:
        """Close older journals that some writers may still consider live.

        This happens only after the directory was removed. Numbers restart then, so two journals may be created at the
        same time, neither the other's successor. A writer that uses the lower one finds the end frame and refreshes.

        Returns:
            A journal that is locked by another process; None if all are closed. Waiting for that process under our
            lock could deadlock, because it may use its journal as the live one and wait for ours.
        """
        for file in self.files[:-1]:
            if not file.closed:
                if not self._disk.lock(file.fd, blocking=False):
                    return file
                try:
                    self._scan(file)
                    self._append_end(file)
                finally:
                    self._disk.unlock(file.fd)
                file.closed = True
                if not file.limited:
                    # A journal is synced when its successor is created, but this one has none.
                    self._disk.sync(file.fd)
        return None

    def _wait_and_refresh(self, file: JournalFile) -> None:
        """Wait until another process unlocks a journal, and refresh."""
        self._disk.lock(file.fd)
        self._disk.unlock(file.fd)
        self._matched = False
        self.refresh()

    def _append_end(self, file: JournalFile) -> None:
        """Append a missing end frame to a writable journal, under its lock."""
        if file.closed or file.limited or file.failed or file.refusal is not None:
            return
        if file.is_free_behind(self._disk):
            data = encode_end()
            self._write_frame(file, data)
            file.take(Frame(END, file.end, file.end + len(data)))
