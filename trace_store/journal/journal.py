"""The journal of a working copy: the view of it, and the way to append to it.

Rule: the highest-numbered journal is the live one; it is written to under the lock of its own descriptor only, where
its valid frames end, and never truncated or mapped. Zeros may follow them, and nothing else. A journal is closed by an
end frame, or by the begin frame of its successor, which says how many of its bytes count.
"""

from __future__ import annotations

import errno
import os

from trace_store import errors
from trace_store.journal.file import FAILED, WHOLE
from trace_store.journal.frames import (
    END,
    EVENT,
    TRANSACTION,
    Frame,
    encode_end,
    encode_transaction,
)
from trace_store.journal.header import JournalMaker
from trace_store.journal.snapshot import MAXIMUM_ATTEMPTS
from trace_store.system_calls import FAILED_WRITES_SHOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.journal.file import JournalFile
    from trace_store.oid import ObjectId

ROOM_BYTES = 256 * 1024
"""At most so many zeros are written at a time behind a frame."""


class Journal(JournalMaker):
    """The unsealed journals, and the lock under which transactions are appended to the live one."""

    def lock(self) -> None:
        """Take the live journal's lock, with an up-to-date view; make the journal when there is none.

        Raises:
            StorageError: the disk refuses.
        """
        busy, self._busy = self._busy, None
        for _ in range(MAXIMUM_ATTEMPTS):
            if busy is not None and self._process == os.getpid():
                self._await(busy)
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
                        # After an end frame or a damaged tail, or where none begins: what has no begin frame counts for
                        # nothing, as it is left where a file system has no links, and its maker was killed.
                        self._create(live)
                        continue
                if len(self.files) > 1:
                    busy = self._settle_predecessors()
                    if busy is not None:
                        continue
                self._locked = live
                self.locks += 1
                return
            finally:
                # A journal that was sealed or replaced meanwhile is closed, and its lock gone with it.
                if self._locked is None and (live in self.files or live in self.lost):
                    self._disk.unlock(live.fd)
        raise errors.ConcurrencyError("the journal keeps changing")

    def _wait_for(self, live: JournalFile) -> None:
        """Wait for a lock that another process holds, and report who that is."""
        if self.patience is None:
            self._disk.lock(live.fd)
        else:
            self.patience.lock(self._disk, live.fd, live.path)

    def unlock(self) -> None:
        """Release the lock."""
        file, self._locked = self._locked, None
        if file is not None:
            self._disk.unlock(file.fd)

    def append(self, frame: Frame, objects: Mapping[ObjectId, bytes], sync: bool) -> JournalFile:
        """Write a transaction with its objects, under the lock, and return where it stands.

        Others see it from then on. Whether it lasts is for `conclude` to say, which has to be called next; `sync` is
        what that will be asked for.

        Raises:
            InvalidInputError: it is too large, or its text is not valid UTF-8.
            StorageError: the disk refuses; the frame has no effect.
        """
        file = self._locked or self._live()
        if len(file.frames) == 1:
            self._sync_name(file)
        data = encode_transaction(frame, objects)
        self._put(file, data, sync)
        frame.place(file.end, len(data), objects)
        file.take(frame)
        self.fold.apply(frame)
        return file

    def emit(self, data: bytes) -> None:
        """Write the bytes of a passing frame, without a sync; takes the lock unless this process has it.

        A frame that is written to a journal which somebody has removed is lost; the next one finds where to go.

        Raises:
            StorageError: the disk refuses.
        """
        if self._locked is not None:
            self._pass(self._locked, data)
            return
        self.lock()
        try:
            file = self._live()
            self._pass(file, data)
        finally:
            self.unlock()
        standing = file.standing(self._disk)
        if standing is not WHOLE:
            file.failed = file.failed or standing is FAILED
            self._matched = False

    def conclude(self, file: JournalFile, frame: Frame, sync: bool) -> bool:
        """Release the lock, and return when a transaction is as durable as asked.

        Returns:
            False when the journal has been removed meanwhile. Then the frame is voided, so that nobody who holds the
            journal too brings it back; but where others have built on it, or one of them was quicker, it is or will be
            brought back (`has_effect`).

        Raises:
            StorageError: a sync failed; the frame has no effect, but when the disk refuses to take it back as well.
        """
        if not sync or FAILED_WRITES_SHOW:
            self.unlock()  # others write meanwhile, and one flush of the device serves several
        if not sync:
            file.unsynced = True
        return self.confirm(file, frame, sync)

    def confirm(self, file: JournalFile, frame: Frame, sync: bool = True) -> bool:
        """Make a transaction durable as `conclude` does, but keep the lock; it is lost when that fails."""
        if sync:
            try:
                self._disk.sync(file.fd)
            except errors.StorageError as failure:
                return self._rescue(file, frame, failure)
        standing = file.standing(self._disk)
        if standing is WHOLE:
            if sync:
                file.durable = frame.end  # a sync covers what others have written before
                file.unsynced = False
            return True
        if standing is FAILED:
            error = errors.StorageError(
                "a sync by another process failed", path=file.path, errno=errno.EIO
            )
            return self._rescue(file, frame, error)
        self._matched = False
        if frame.kind == TRANSACTION:
            self._void_if_last(file, frame)
        self._fold_again()  # without the frame: another journal may have been found to be the live one meanwhile
        return False

    def has_effect(self, frame: Frame) -> bool:
        """Tell, under the lock, whether the moves of a frame that was written to a removed journal have been made."""
        refs = self.fold.refs
        for move in frame.moves:
            fold = refs.get(move.name)
            if fold is None or (fold.value != move.new and move.new not in fold.passed):
                return False
        return bool(frame.moves)

    def sync(self) -> None:
        """Make everything durable that was appended without a sync.

        Raises:
            StorageError: the disk refuses; what was not yet synced may be lost.
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
                self.lock()  # begins a successor, and writes the frames anew
                self.unlock()
                raise

    def rotate(self) -> list[tuple[bytes, int]]:
        """Close the live journal when it has content, and return the keys of the journals to seal.

        Called under the lock, which is of no further use afterwards. Returns none when no journal has anything to seal.

        Raises:
            StorageError: a sync of it failed; it goes on under another number.
        """
        closed = self.files[:-1]
        if self._live().has_content():
            self.renew()
            closed = self.files
        while closed and not closed[-1].has_content():
            closed = closed[:-1]
        return [other.key for other in closed]

    def renew(self) -> None:
        """Close the live journal, under the lock, so that each writer meets another one before it writes.

        Raises:
            StorageError: a sync of it failed; it goes on under another number.
        """
        file = self.close_live()
        if file is not None:
            self.continue_line(file)

    def close_live(self) -> JournalFile | None:
        """Close the live journal under its lock, and keep the lock: whoever waits for it looks at everything anew.

        Returns:
            It, for `continue_line`; None when it has been removed, and has to be brought back first.

        Raises:
            StorageError: the disk refuses.
        """
        file = self._live()
        data = encode_end()
        end = Frame(END, file.end, file.end + len(data))
        self._put(file, data)
        file.take(end)
        return file if self.confirm(file, end) else None

    def continue_line(self, file: JournalFile) -> None:
        """Begin the successor of the journal that this process has just closed, still under its lock."""
        self._create(file, line=file.line, sync=False)

    def settle(self, file: JournalFile) -> bool:
        """Read, under the live journal's lock, what writers left on a journal that was removed.

        Returns:
            False when one is at work on it still, which the next `lock` waits for first: under another lock nobody
            may, since that writer can have this journal for live and the live one for removed.
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
        """Drop a journal that was removed from the disk, once its frames stand in another one."""
        self.lost.remove(file)
        self._disk.close(file.fd)

    def _is_current(self, live: JournalFile) -> bool:
        """Tell, under the lock of a journal, whether it is the live one still, with all that others have written.

        What is sealed or removed meanwhile without a change here is met at the next look, or after the append.
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

    def _put(self, file: JournalFile, data: bytes, ahead: bool = False) -> None:
        """Write a frame where the valid ones end.

        With `ahead`, zeros are written behind it where there are none, as many as the file has bytes, within bounds:
        a sync is cheaper where the file does not grow. A process that writes once leaves none.

        Raises:
            StorageError: the disk took a part only; a successor says that it has no effect.
        """
        end = file.end + len(data)
        if ahead and file.written and end > file.room:
            data += bytes(min(file.end, ROOM_BYTES))
        reached = file.end + self._disk.write(file.fd, data, file.end)
        if reached < end:
            self._create(file)
            raise errors.StorageError("the disk took a part of the frame only", path=file.path)
        if reached > file.room:
            file.room = reached
        file.written = True

    def _pass(self, file: JournalFile, data: bytes) -> None:
        self._put(file, data)
        file.take(Frame(EVENT, file.end, file.end + len(data)))

    def _rescue(self, file: JournalFile, frame: Frame, error: errors.StorageError) -> bool:
        """Find out what becomes of a frame when a sync of its journal has failed.

        Whoever comes first writes the frames anew into a successor. Where this one is among them it is durable.

        Raises:
            StorageError: it is not.
        """
        self._distrust(file)
        file.refused = frame
        self.unlock()
        for _ in range(MAXIMUM_ATTEMPTS):
            try:
                self.lock()
                if any(
                    frame.says_as(other) for each in self.files for other in each.transactions()
                ):
                    return True
                if file not in self.lost or self._void_if_last(file, frame, blocking=False):
                    break
            finally:
                self.unlock()
        raise error

    def _void_if_last(self, file: JournalFile, frame: Frame, *, blocking: bool = True) -> bool:
        """Take all effect from a frame of a journal that was removed, when nobody has built on it.

        Returns:
            False when another is at work on it, and it must not be waited for.
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

    def _settle_predecessors(self) -> JournalFile | None:
        """Close older journals that writers may still have for the live one; only a removed directory can lead to that.

        Numbers begin anew there, so two journals may be begun at once, neither of which is the other's successor.
        Whoever took the lower for the live one finds the end frame, and looks again.

        Returns:
            The one that has to be waited for, which must not be done under the live one's lock: who has that may
            hold this one for the live one, and wait for that, which it knows to be removed.
        """
        for file in self.files[:-1]:
            if not file.closed:
                if not self._disk.lock(file.fd, blocking=False):
                    return file
                try:
                    self._scan(file)
                    self._end(file)
                finally:
                    self._disk.unlock(file.fd)
                file.closed = True
                if not file.limited:
                    self._disk.sync(file.fd)  # its successor knew nothing of it, so nobody has
        return None

    def _await(self, file: JournalFile) -> None:
        """Return when nobody writes to an older journal, with a look at what there is then."""
        self._disk.lock(file.fd)
        self._disk.unlock(file.fd)
        self._matched = False
        self.refresh()

    def _end(self, file: JournalFile) -> None:
        """Append an end frame to a journal, under its lock, where it has none and takes one."""
        if file.closed or file.limited or file.failed or file.refusal is not None:
            return
        if file.is_free_behind(self._disk):
            data = encode_end()
            self._put(file, data)
            file.take(Frame(END, file.end, file.end + len(data)))
