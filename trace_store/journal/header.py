"""Creation of journals, whose begin frame limits the predecessor.

The begin frame records how many bytes of the predecessor count. After a failed sync, frames that may be lost follow it.

Rule: a journal is written to a temporary file, synced, and linked to its final name, so no process ever sees one
without a complete begin frame. The creator of a successor holds the predecessor's lock.
"""

from __future__ import annotations

import errno
import os

from trace_store import errors
from trace_store.files import create_file
from trace_store.ident import Randomness
from trace_store.journal.frames import (
    END,
    LINE_BYTES,
    TRANSACTION,
    VOID,
    Frame,
    encode_begin,
    encode_void,
    scan,
)
from trace_store.journal.snapshot import NUMBERS_END, JournalView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk
    from trace_store.journal.file import JournalFile
    from trace_store.layout import Layout


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
