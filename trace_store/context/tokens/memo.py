"""Token counts that were made before, by content id: one append-only file an encoding.

A record has 40 bytes and no header:

    offset  size  field
         0    32  id of the content
        32     4  tokens, unsigned, big-endian
        36     4  CRC-32 of `token counts: ENCODING` and the 36 bytes before, big-endian

Rule: derived and never trusted. The records before the first that does not check are used; a file with such
a record is written anew when there is next something to add. Records may be double. A file that is missing,
damaged, deleted or on a disk that refuses costs counting again, and nothing else.
"""

from __future__ import annotations

import os
import struct
import zlib

from trace_store import errors
from trace_store.files import APPEND, CREATE, Disk, read_file, replace_file

_FIELDS = struct.Struct(">32sII")
_CHECKED_BYTES = _FIELDS.size - 4
_MAXIMUM_COUNT = (1 << 32) - 1
_ATTEMPTS = 100


class TokenMemo:
    """Counts of one encoding, read from the file once, on first use.

    Several processes may append to one file: each batch is one write to the end of it. What others append
    later is not seen; it is counted again.
    """

    def __init__(
        self,
        encoding: str,
        disk: Disk | None = None,
        path: str = "",
        *,
        read_back: bool = True,
    ) -> None:
        """Make a memo.

        Args:
            encoding: whose counts these are.
            disk: without one, the memo remembers for the life of the process only.
            path: the file.
            read_back: False adds to the file without reading it, for a few counts that are surely new: the
                file grows with the store, and what is done for one message must not.
        """
        self.encoding = encoding
        self._disk = disk
        self._path = path
        # Not from 0, where a run of zeros checks; and under another encoding nothing does.
        self._seed = zlib.crc32(b"token counts: " + encoding.encode())
        self._counts: dict[bytes, int] | None = None if read_back else {}
        self._pending: dict[bytes, int] = {}
        self._damaged = False

    def __repr__(self) -> str:
        return f"TokenMemo({self.encoding!r}, path={self._path!r})"

    def __len__(self) -> int:
        return len(self._known())

    def get(self, oid: bytes) -> int | None:
        """Return the count of the content with this id, or None when it was never counted."""
        return self._known().get(oid)

    def put(self, oid: bytes, count: int) -> None:
        """Remember a count; `flush` makes it last."""
        known = self._known()
        if oid not in known and 0 <= count <= _MAXIMUM_COUNT:
            known[bytes(oid)] = count
            self._pending[bytes(oid)] = count

    def flush(self) -> int:
        """Append what is new to the file, with one write, and return how many records that were.

        A disk that refuses is no error: the counts stay in memory, and are tried again by the next flush.
        """
        if self._disk is None or not self._pending:
            return 0
        try:
            if not self._add(self._disk):
                return 0
        except errors.StorageError:
            return 0
        written = len(self._pending)
        self._pending.clear()
        return written

    def _known(self) -> dict[bytes, int]:
        if self._counts is None:
            self._counts = self._read()
        return self._counts

    def _read(self) -> dict[bytes, int]:
        counts: dict[bytes, int] = {}
        try:
            data = read_file(self._disk, self._path) if self._disk is not None else None
        except errors.StorageError:
            # A link, a directory, or over the limit of size: not ours to read, and not to append to.
            self._damaged = True
            return counts
        if not data:
            return counts
        seed, size, checked = self._seed, _FIELDS.size, _CHECKED_BYTES
        whole = len(data) - len(data) % size
        self._damaged = whole != len(data)
        start = 0
        for oid, count, crc in _FIELDS.iter_unpack(memoryview(data)[:whole]):
            if zlib.crc32(data[start : start + checked], seed) != crc:
                self._damaged = True
                break
            counts[oid] = count
            start += size
        return counts

    def _records(self, counts: dict[bytes, int]) -> bytes:
        records = bytearray()
        for oid, count in counts.items():
            checked = _FIELDS.pack(oid, count, 0)[:_CHECKED_BYTES]
            records += checked + zlib.crc32(checked, self._seed).to_bytes(4)
        return bytes(records)

    def _add(self, disk: Disk) -> bool:
        """Write what is new behind the last record, or the whole file where it has a tear; tell whether all of it."""
        for _ in range(_ATTEMPTS):
            try:
                fd = self._open(disk)
            except errors.StorageError:
                self._rewrite(disk)  # a link or a directory has the name; a link is replaced
                return True
            try:
                # Whoever looks without the lock may see another's batch half written, and take it for a tear.
                disk.lock(fd)
                if disk.identity(fd) != disk.identity(self._path):
                    continue  # another process has repaired it
                if self._damaged:
                    self._read()
                if self._damaged or disk.size(fd) % _FIELDS.size:
                    self._rewrite(disk)
                    return True
                data = self._records(self._pending)
                # A short write leaves a torn record, behind which nothing is read; the next flush mends it.
                self._damaged = disk.write(fd, data) != len(data)
                return not self._damaged
            finally:
                disk.close(fd)  # which releases the lock
        raise errors.StorageError("the file of token counts comes and goes", path=self._path)

    def _rewrite(self, disk: Disk) -> None:
        # Read anew: another process may have added to it meanwhile.
        counts = {**self._read(), **self._known()}
        replace_file(disk, self._path, self._records(counts), durable=False)
        self._damaged = False

    def _open(self, disk: Disk) -> int:
        disk.make_directory(os.path.dirname(self._path))  # which refuses a link in its place
        fd = disk.open(self._path, APPEND)
        if fd is None:
            fd = disk.open(self._path, CREATE)
        if fd is None:  # another process was quicker
            fd = disk.open(self._path, APPEND)
        if fd is None:
            raise errors.StorageError("the file of token counts comes and goes", path=self._path)
        return fd
