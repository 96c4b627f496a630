"""How a journal begins: with saying how many bytes of its predecessor count, and with what may be lost of that.

Rule: a journal is written aside, synced, and linked into place under its final name, so no process ever sees one that
does not say so from its first byte on. Whoever begins a successor holds the predecessor's lock.
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
    """The unsealed journals, and how another is begun."""

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
        """Make a journal that says where its predecessor ends; tell whether it is there.

        When somebody removes the directory meanwhile nothing is made; whoever asked looks again and asks again.

        Args:
            after: the predecessor, whose lock is held; None when there is no journal.
            line: the line it continues; only who has just closed the predecessor may pass one, because another
                successor may have been made, and removed, else.
            sync: whether the predecessor's content is not durable yet.
            moved: after a failed sync, how many bytes of the predecessor count, and frames that it begins with in the
                place of those beyond.
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
                "no number is left for a journal", path=path, errno=errno.EOVERFLOW
            )
        if after is not None and sync:
            # What is acknowledged as durable in the new journal rests on all of the old one.
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
        """Note that a sync of a journal failed, where every other writer looks before it acknowledges."""
        file.failed = True
        try:
            self._disk.protect(file.fd)
        except errors.StorageError:
            return  # others that have it open learn of it by their own syncs

    def _replace(self, file: JournalFile) -> None:
        """Begin a successor of a journal of which a sync failed, with the frames that may not be on the disk.

        Called under the lock, with all frames read. What the disk holds of this file is unknown, and a second sync may
        succeed falsely, so the frames are written to another file and synced there. The frame for which this process
        has just been refused is left out, unless another has built on it.

        Raises:
            StorageError: the disk refuses that too. A frame that is left out is voided then, if the disk takes that,
                since the others stay as they are.
        """
        own = file.refused if file.frames and file.frames[-1] is file.refused else None
        kept = [frame for frame in file.frames if frame is not own and frame.kind != END]
        border = file.durable
        if not border and kept:
            border = kept[0].end  # what it begins with was synced before anybody saw it
        data = self._disk.read_at(file.fd, border, (kept[-1].end if kept else border) - border)
        # Read once more, they may be gone, and with them what follows; their writers find that out.
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
        """Take all effect from the last frame, under its journal's lock.

        Raises:
            StorageError: the disk refuses, and the frame may have effect.
        """
        data = encode_void()
        if self._disk.write(file.fd, data, file.end) != len(data):
            raise errors.StorageError("the disk took a part of the frame only", path=file.path)
        file.take(Frame(VOID, file.end, file.end + len(data)))

    def _sync_name(self, file: JournalFile) -> None:
        """Make a journal's name durable before its first transaction, since its maker may have been killed."""
        if self._named == file.key:
            return
        self._disk.sync_directory(self._layout.journal_dir)
        if not file.frames[0].closes:
            self._disk.sync_directory(self._layout.root)
        self._named = file.key
