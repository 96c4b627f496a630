"""Disks for tests: one counts calls, one fails at a chosen call.

Otherwise both are real disks.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from trace_store.disk.files import CREATE, PRIVATE, READ, READ_ONLY, Disk
from trace_store.errors import StorageError


class RecordingDisk(Disk):
    """Counts files opened, bytes read and written, syncs, and all calls to the disk.

    Attributes:
        calls: all calls that reach the disk.
        opened: files opened or created.
        touched: path look-ups and name changes, plus the names returned by listings.
        read_bytes, written_bytes: the amount of content.
        synced: syncs of files and directories.
    """

    __slots__ = ("calls", "opened", "read_bytes", "synced", "touched", "written_bytes")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset all counts to zero."""
        self.calls = 0
        self.opened = 0
        self.touched = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self.synced = 0

    def counts(self) -> dict[str, int]:
        """Return all counts by name."""
        return {
            "calls": self.calls,
            "opened": self.opened,
            "touched": self.touched,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "synced": self.synced,
        }

    def open(self, path: str, mode: str = READ) -> int | None:
        self._touch()
        self.opened += 1
        return super().open(path, mode)

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        data = super().read_at(fd, offset, size)
        self.calls += 1
        self.read_bytes += len(data)
        return data

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        written = super().write(fd, data, at)
        self.calls += 1
        self.written_bytes += written
        return written

    def sync(self, fd: int) -> None:
        self.calls += 1
        self.synced += 1
        super().sync(fd)

    def sync_directory(self, path: str) -> None:
        self._touch()
        self.synced += 1
        super().sync_directory(path)

    def stat(self, path: str) -> os.stat_result | None:
        self._touch()
        return super().stat(path)

    def exists(self, path: str) -> bool:
        self.calls += 1
        return super().exists(path)

    def names(self, path: str) -> list[str]:
        names = super().names(path)
        self._touch(len(names))
        return names

    def scan(self, path: str) -> tuple[list[str], list[str]]:
        folders, others = super().scan(path)
        self._touch(len(folders) + len(others))
        return folders, others

    def make_directory(self, path: str) -> None:
        self._touch()
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._touch()
        super().rename(source, target)

    def link(self, source: str, target: str) -> bool:
        self._touch()
        return super().link(source, target)

    def remove(self, path: str) -> bool:
        self._touch()
        return super().remove(path)

    def remove_directory(self, path: str) -> bool:
        self._touch()
        return super().remove_directory(path)

    def _touch(self, names: int = 0) -> None:
        self.calls += 1
        self.touched += 1 + names


class FailingDisk(Disk):
    """Calls `fail` at the n-th call that changes the disk; otherwise a normal disk.

    Args:
        at: the number of the call, from 1; 0 never fails.
        fail: raises or ends the process; default: raises a StorageError. If it returns, the call is made.
        partly: whether a failing write still writes half of its bytes.
    """

    __slots__ = ("_at", "_fail", "_partly", "count")

    def __init__(
        self, at: int = 0, fail: Callable[[str], None] | None = None, *, partly: bool = False
    ) -> None:
        self._at = at
        self._fail = fail or _raise
        self._partly = partly
        self.count = 0

    def open(self, path: str, mode: str = READ) -> int | None:
        if mode in (CREATE, PRIVATE):
            self._count("open")
        return super().open(path, mode)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        if self._partly and self.count + 1 == self._at:
            super().write(fd, data[: len(data) // 2], at)
        self._count("write")
        return super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        self._count("sync")
        super().sync(fd)

    def protect(self, fd: int, mode: int = READ_ONLY) -> None:
        self._count("protect")
        super().protect(fd, mode)

    def sync_directory(self, path: str) -> None:
        self._count("sync_directory")
        super().sync_directory(path)

    def make_directory(self, path: str) -> None:
        self._count("make_directory")
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._count("rename")
        super().rename(source, target)

    def link(self, source: str, target: str) -> bool:
        self._count("link")
        return super().link(source, target)

    def remove(self, path: str) -> bool:
        self._count("remove")
        return super().remove(path)

    def remove_directory(self, path: str) -> bool:
        self._count("remove_directory")
        return super().remove_directory(path)

    def _count(self, call: str) -> None:
        self.count += 1
        if self.count == self._at:
            self._fail(call)


def _raise(call: str) -> None:
    raise StorageError(f"injected failure of {call}", errno=5)
