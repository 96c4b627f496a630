"""Tailing of the journal, across successive journal files.

Rule: it never takes a writer's lock, and uses its own descriptors. While it is open, it keeps a locked file under
`local/followers`, so that a seal leaves the journals in place that it has not read yet.

There are two kinds of events: an emitted event, stored as a passing frame, and a ref move.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import check_author
from trace_store.disk.files import CREATE, WRITE
from trace_store.journal.frames import (
    BEGIN,
    EVENT,
    HEADER_BYTES,
    SKIPPED,
    TRANSACTION,
    VOID,
    encode_event,
    event_section,
    scan,
)
from trace_store.journal.view import journal_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_store.base.oid import ObjectId
    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.journal.frames import Frame

KEPT_JOURNALS = 64
"""Number of sealed journals that a seal leaves in place for followers."""
_BEGIN_BYTES = 512
REF = "ref"
"""The kind of an event for a ref move."""
MAXIMUM_EVENT_BYTES = 64 * 1024
_MAXIMUM_KIND = 64
_KIND_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")


class _Open:
    """One open journal, and the end of the frames read so far."""

    __slots__ = ("at", "begin", "fd", "following", "identity", "number", "path")

    def __init__(
        self, layout: Layout, number: int, fd: int, identity: object, begin: Frame
    ) -> None:
        self.number = number
        self.path = layout.journal_file(number)
        self.following = layout.journal_file(number + 1)
        self.fd = fd
        self.identity = identity
        self.begin = begin
        self.at = begin.end

    def is_not_after(self, other: _Open) -> bool:
        """Return True if this is the other journal, or an earlier one on the same line."""
        return self.begin.line == other.begin.line and self.number <= other.number

    def limit_of(self, other: _Open) -> int | None:
        """Return how many bytes of the other journal count; None if not its successor."""
        if self.begin.closed_line != other.begin.line:
            return None
        return next((size for number, size in self.begin.closes if number == other.number), None)


class JournalTail:
    """Reads events from the journals of a working copy.

    Attributes:
        has_gap: whether the last `read` may have missed ref moves because the next journal was gone; they are then in
            the reflogs.
    """

    def __init__(
        self, disk: Disk, layout: Layout, *, everything: bool, containing: bytes = b""
    ) -> None:
        """Start at the end of the newest journal; with `everything`, at the oldest one.

        Frames that do not contain some bytes are skipped.

        Raises:
            StorageError: the disk failed.
        """
        self._disk = disk
        self._layout = layout
        self._containing = containing
        self._file: _Open | None = None
        self._first: list[JournalEvent] = []
        self._registration = _register(disk, layout)
        self.has_gap = everything
        if everything:
            self._first = self._enter_newest()
        else:
            self._skip_to_end()

    def read(self) -> list[JournalEvent]:
        """Return the events since the last call, in the order of writing.

        Raises:
            StorageError: the disk failed.
        """
        if self._first:
            found, self._first = self._first, []
            return found
        file = self._file
        if file is None:
            return self._enter_newest()
        following = self._following(file)
        if following is not None:
            return self._move_on(file, following)
        found = self._read(file)
        if not found and self._disk.identity(file.path) != file.identity:
            return self._enter_newest()  # removed, by a seal or by something else
        return found

    def close(self) -> None:
        """Close all descriptors."""
        self._close(self._file)
        self._file = None
        if self._registration is not None:
            fd, path = self._registration
            self._registration = None
            self._disk.remove(path)
            self._disk.close(fd)

    def _skip_to_end(self) -> None:
        """Go to the end of the newest journal, without reading earlier ones."""
        for number in sorted(journal_numbers(self._disk, self._layout), reverse=True):
            self._file = self._open(number)
            if self._file is not None:
                self._read(self._file)
                return

    def _enter_newest(self) -> list[JournalEvent]:
        """Go to the newest journal, and return the events of all journals not read so far."""
        numbers = sorted(journal_numbers(self._disk, self._layout))
        files = [file for file in map(self._open, numbers) if file is not None]
        found: list[JournalEvent] = []
        before = self._file
        if before is not None:
            found += self._read(before)
            for file in [each for each in files if each.is_not_after(before)]:
                files.remove(file)
                self._close(file)
            if files:
                self.has_gap = files[0].limit_of(before) is None
        for file, following in zip(files, [*files[1:], None], strict=False):
            limit = None if following is None else following.limit_of(file)
            found += self._read(file, limit)
            if following is not None:
                self._skip_copies(file, following)
                self._close(file)
        if files:
            self._close(before)
            self._file = files[-1]
        return found

    def _move_on(self, file: _Open, following: _Open) -> list[JournalEvent]:
        """Read an ended journal to its end, and continue with the next one."""
        limit = following.limit_of(file)
        if limit is None:
            self._close(following)
            return self._enter_newest()
        found = self._read(file, limit)
        self._skip_copies(file, following)
        self._close(file)
        self._file = following
        return found + self._read(following)

    def _skip_copies(self, file: _Open, following: _Open) -> None:
        """Skip frames that were copied from the previous journal after a failed sync."""
        border = following.limit_of(file)
        if border is None or not following.begin.failed or file.at <= border:
            return
        before = self._disk.read_at(file.fd, border, file.at - border)
        after = self._disk.read_at(following.fd, following.at, len(before))
        at = following.at
        for frame in scan(lambda start, size: after[start : start + size], 0, len(after)):
            if after[: frame.end] != before[: frame.end]:
                break
            following.at = at + frame.end

    def _following(self, file: _Open) -> _Open | None:
        return self._open(file.number + 1) if self._disk.exists(file.following) else None

    def _open(self, number: int) -> _Open | None:
        """Open a journal; None if it is gone or has no begin frame (yet)."""
        fd = self._disk.open(self._layout.journal_file(number))
        if fd is None:
            return None
        size = min(self._disk.size(fd), _BEGIN_BYTES)
        begin = next(scan(lambda at, count: self._disk.read_at(fd, at, count), 0, size), None)
        if begin is None or begin.kind != BEGIN:
            self._disk.close(fd)
            return None
        return _Open(self._layout, number, fd, self._disk.identity(fd), begin)

    def _close(self, file: _Open | None) -> None:
        if file is not None:
            self._disk.close(file.fd)

    def _read(self, file: _Open, limit: int | None = None) -> list[JournalEvent]:
        """Return the events of new frames in a journal, up to a limit."""
        read, fd = self._disk.read_at, file.fd
        if not read(fd, file.at, HEADER_BYTES).strip(b"\0"):
            return []
        size = self._disk.size(fd)
        end = size if limit is None else min(size, limit)
        found: list[JournalEvent] = []
        last: int | None = None
        containing = self._containing
        for frame in scan(
            lambda at, count: read(fd, at, count), file.at, end, containing=containing
        ):
            file.at = frame.end
            if frame.kind == SKIPPED:
                last = None
            elif frame.kind == TRANSACTION:
                last = len(found)
                found += moves_of(frame)
            elif frame.kind == VOID and last is not None:
                found[last:] = [each for each in found[last:] if each.move is None]
                last = None
            elif frame.kind == EVENT:
                start = frame.start + HEADER_BYTES
                event = decode(read(fd, start, frame.end - start))
                if event is not None:
                    found.append(event)
        return found


def is_followed(disk: Disk, layout: Layout) -> bool:
    """Return True if a process follows the journals; removes files of dead followers."""
    for name in disk.names(layout.followers_dir):
        path = os.path.join(layout.followers_dir, name)
        fd = disk.open(path, WRITE)
        if fd is None:
            continue
        try:
            if not disk.lock(fd, blocking=False):
                return True
            disk.remove(path)
        finally:
            disk.close(fd)
    return False


def _register(disk: Disk, layout: Layout) -> tuple[int, str] | None:
    """Create and lock a file for this follower; None if the disk is read-only."""
    try:
        disk.make_directory(layout.followers_dir)
        while True:
            path = os.path.join(layout.followers_dir, f"{os.getpid()}-{os.urandom(6).hex()}")
            fd = disk.open(path, CREATE)
            if fd is None:
                continue
            if disk.lock(fd, blocking=False) and disk.identity(path) == disk.identity(fd):
                return fd, path
            disk.close(fd)  # a seal mistook it for the file of a dead follower
    except errors.StorageError:
        return None


@value
class JournalEvent:
    """One event.

    Attributes:
        kind: a lower-case name; `ref` for a ref move.
        data: the emitted data; for a ref move, its reflog message as `message`.
        moment: its time in milliseconds since the epoch, by the writer's clock.
        author: its author; empty if not given.
        ref: the full name of the ref that moved; empty for other events.
        old: its value before; None if it was absent, and for other events.
        new: its value after; None if it was deleted, and for other events.
    """

    kind: str
    data: Mapping[str, Any]
    moment: int
    author: str = ""
    ref: str = ""
    old: ObjectId | None = None
    new: ObjectId | None = None

    @property
    def move(self) -> tuple[str, bytes | None, bytes | None, int] | None:
        """The identity of a ref move; None for other events."""
        return (self.ref, self.old, self.new, self.moment) if self.kind == REF else None


def encode(event: JournalEvent) -> bytes:
    """Return the passing frame of an event.

    Raises:
        InvalidInputError: the kind is not a lower-case name or is `ref`, the data is not a map that msgpack can hold,
            the author is not valid, or all of it takes more than 64 KiB.
    """
    kind, data = event.kind, event.data
    if not is_kind(kind) or kind == REF:
        raise errors.InvalidInputError(
            "the kind of an event is a name of lower-case letters, digits, '_', '-' and '.', "
            f"and not {REF!r}: {str(kind)[:80]!r}",
            value=kind,
        )
    if not isinstance(data, dict):
        raise errors.InvalidInputError(f"the data of an event is a dict, not {type(data).__name__}")
    if event.author:
        check_author(event.author)
    section = {"author": event.author, "data": data, "kind": kind, "time": event.moment}
    frame = encode_event(section)
    if len(frame) > MAXIMUM_EVENT_BYTES:
        raise errors.InvalidInputError(
            f"an event has at most {MAXIMUM_EVENT_BYTES} bytes, not {len(frame)}"
        )
    return frame


def is_kind(kind: object) -> bool:
    """Return True for a letter followed by lower-case letters, digits, `_`, `-`, `.`."""
    return (
        isinstance(kind, str)
        and 0 < len(kind) <= _MAXIMUM_KIND
        and "a" <= kind[0] <= "z"
        and _KIND_CHARACTERS.issuperset(kind)
    )


def decode(payload: bytes) -> JournalEvent | None:
    """Return the event in a passing frame's payload, or None if it is unreadable."""
    section = event_section(payload)
    if section is None:
        return None
    kind, data, moment = section.get("kind"), section.get("data"), section.get("time")
    if not (isinstance(kind, str) and isinstance(data, dict) and isinstance(moment, int)):
        return None
    if kind == REF or not is_kind(kind):
        return None  # `emit` never writes these, and `ref` would look like a move
    return JournalEvent(kind, data, moment, str(section.get("author", "")))


def moves_of(frame: Frame) -> list[JournalEvent]:
    """Return an event for each ref move of a transaction."""
    data = {"message": frame.message}
    return [
        JournalEvent(REF, data, frame.time, frame.author, move.name, move.old, move.new)
        for move in frame.moves
    ]
