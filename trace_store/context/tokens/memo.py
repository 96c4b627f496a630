"""The token cache: counts by content id, in one append-only file per encoding.

A record has 40 bytes; there is no header:

    offset  size  field
         0    32  id of the content
        32     4  tokens, unsigned, big-endian
        36     4  CRC-32 of `token counts: ENCODING` and the 36 bytes before, big-endian

Derived data. Records before the first invalid one are used, and a file with an invalid record is rewritten on the next
addition. Duplicates are allowed. If the file is missing, damaged or not writable, content is counted again.
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
    """Token counts in one encoding, read from the file on first use.

    Several processes may append to a file; each batch is one write. Later additions of others are not noticed.
    """

    def __init__(
        self,
        encoding: str,
        disk: Disk | None = None,
        path: str = "",
        *,
        read_back: bool = True,
    ) -> None:
        """Create a cache.

        Args:
            encoding: the encoding of the counts.
            disk: None keeps the counts only in memory.
            path: the file.
            read_back: False appends without reading the file, for a few new counts: the file grows with the store, but
                the cost of one message must not.
        """
        self.encoding = encoding
        self._disk = disk
        self._path = path
        # A seed other than 0, so that a run of zeros is invalid, and different for each encoding.
        self._seed = zlib.crc32(b"token counts: " + encoding.encode())
        self._counts: dict[bytes, int] | None = None if read_back else {}
        self._pending: dict[bytes, int] = {}
        self._damaged = False

    def __repr__(self) -> str:
        return f"TokenMemo({self.encoding!r}, path={self._path!r})"

    def __len__(self) -> int:
        return len(self._load_counts())

    def get(self, oid: bytes) -> int | None:
        """Return the count of the content with this id, or None."""
        return self._load_counts().get(oid)

    def put(self, oid: bytes, count: int) -> None:
        """Add a count; `flush` saves it."""
        known = self._load_counts()
        if oid not in known and 0 <= count <= _MAXIMUM_COUNT:
            known[bytes(oid)] = count
            self._pending[bytes(oid)] = count

    def flush(self) -> int:
        """Append new counts to the file with one write; return their number.

        Disk errors are ignored: the counts stay in memory until the next flush.
        """
        if self._disk is None or not self._pending:
            return 0
        try:
            if not self._append(self._disk):
                return 0
        except errors.StorageError:
            return 0
        written = len(self._pending)
        self._pending.clear()
        return written

    def _load_counts(self) -> dict[bytes, int]:
        if self._counts is None:
            self._counts = self._read()
        return self._counts

    def _read(self) -> dict[bytes, int]:
        counts: dict[bytes, int] = {}
        try:
            data = read_file(self._disk, self._path) if self._disk is not None else None
        except errors.StorageError:
            # A link, a directory or too large: neither read it nor append to it.
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

    def _append(self, disk: Disk) -> bool:
        """Append new counts, or rewrite a damaged file; return True if all were written."""
        for _ in range(_ATTEMPTS):
            try:
                fd = self._open(disk)
            except errors.StorageError:
                self._rewrite(disk)  # replaces a link
                return True
            try:
                # Without the lock, an incomplete batch of another process would look like damage.
                disk.lock(fd)
                if disk.identity(fd) != disk.identity(self._path):
                    continue  # another process has replaced it
                if self._damaged:
                    self._read()
                if self._damaged or disk.size(fd) % _FIELDS.size:
                    self._rewrite(disk)
                    return True
                data = self._records(self._pending)
                # A short write leaves a torn record, which the next flush repairs.
                self._damaged = disk.write(fd, data) != len(data)
                return not self._damaged
            finally:
                disk.close(fd)  # which releases the lock
        raise errors.StorageError("the file of token counts keeps changing", path=self._path)

    def _rewrite(self, disk: Disk) -> None:
        # Read again, since another process may have added counts.
        counts = {**self._read(), **self._load_counts()}
        replace_file(disk, self._path, self._records(counts), durable=False)
        self._damaged = False

    def _open(self, disk: Disk) -> int:
        disk.make_directory(os.path.dirname(self._path))  # refuses a link
        fd = disk.open(self._path, APPEND)
        if fd is None:
            fd = disk.open(self._path, CREATE)
        if fd is None:  # another process has created it
            fd = disk.open(self._path, APPEND)
        if fd is None:
            raise errors.StorageError("the file of token counts keeps changing", path=self._path)
        return fd
