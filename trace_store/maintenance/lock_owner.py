"""Owners of file locks, shown to users who wait.

A long operation leaves a file `<lock>.holder`:

    pid 4711
    host forge
    command trace pack
    since 1795353681000

Rule: for display only. A lock is free when the system grants it, never because its owner looks dead. Without a valid
file of a running process, Linux's lock table is read.
"""

from __future__ import annotations

import os
import sys

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import SystemClock
from trace_store.disk.files import Disk, read_file, read_unsized, replace_file

SUFFIX = ".holder"
LOCKS = "/proc/locks"
_MAXIMUM_BYTES = 4096
_MAXIMUM_PROC_BYTES = 1 << 22
_PIDS = range(1, 1 << 31)


@value
class LockOwner:
    """A process that holds a lock.

    Attributes:
        pid: its process id; 0 if unknown.
        host: its machine.
        command: what it runs.
        since: when it took the lock, in milliseconds; None if unknown.
        here: whether it runs on this machine.
    """

    pid: int = 0
    host: str = ""
    command: str = ""
    since: int | None = None
    here: bool = True

    def __str__(self) -> str:
        """Return a text such as `trace pack (pid 4711, 40 s)`."""
        if not self.pid:
            return "another process"
        details = [f"pid {self.pid}"]
        if not self.here:
            details.append(f"on {self.host}")
        if self.since is not None:
            details.append(_duration(SystemClock().now() - self.since))
        return f"{self.command or 'a process'} ({', '.join(details)})"


UNKNOWN = LockOwner()


def write_owner(disk: Disk, path: str, command: str, scratch: str) -> None:
    """Write the owner's file beside a lock; called by the owner.

    Errors are ignored: the operation does not depend on it.

    Args:
        disk: writes the file.
        path: the lock.
        command: what the owner runs, such as `trace pack`.
        scratch: the folder for the temporary file.
    """
    since = SystemClock().now()
    text = f"pid {os.getpid()}\nhost {_host()}\ncommand {command}\nsince {since}\n"
    try:
        replace_file(disk, path + SUFFIX, text.encode(), durable=False, scratch=scratch)
    except errors.StorageError:
        return


def remove_owner(disk: Disk, path: str) -> None:
    """Remove the owner's file before the lock is released."""
    try:
        disk.remove(path + SUFFIX)
    except errors.StorageError:
        return


def owner_of(disk: Disk, path: str) -> LockOwner:
    """Return the owner of a file's lock; `UNKNOWN` if it cannot be determined."""
    try:
        noted = _parse(read_file(disk, path + SUFFIX, limit=_MAXIMUM_BYTES) or b"")
        if noted is not None and not (noted.here and not is_alive(noted.pid)):
            return noted
        return _from_lock_table(disk, path)
    except errors.StorageError:
        return UNKNOWN


def _parse(data: bytes) -> LockOwner | None:
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, _, text = line.partition(" ")
        fields[name] = text
    try:
        pid, since = int(fields["pid"]), int(fields["since"])
    except (KeyError, ValueError):
        return None
    host = fields.get("host", "")
    if pid not in _PIDS:
        return None
    return LockOwner(pid, host, fields.get("command", ""), since, host == _host())


def _from_lock_table(disk: Disk, path: str) -> LockOwner:
    """Look the lock up in Linux's table of all locks."""
    stat = disk.stat(path)
    table = _read_proc(disk, LOCKS)
    if stat is None or not table:
        return UNKNOWN
    place = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    for line in table.splitlines():
        fields = line.split()
        # A process that waits for the lock has "->" as its second field.
        if place in fields and fields[1] == "FLOCK":
            pid = int(fields[fields.index(place) - 1])
            if pid > 0:
                return LockOwner(pid, _host(), _command_of(disk, pid))
    return UNKNOWN


def _command_of(disk: Disk, pid: int) -> str:
    """Return the program of a process, without its arguments, which may be private."""
    words = [word for word in _read_proc(disk, f"/proc/{pid}/cmdline").split("\0") if word]
    if not words:
        return ""
    name = os.path.basename(words[0])
    if name.startswith("python") and len(words) > 1 and not words[1].startswith("-"):
        name = os.path.basename(words[1])  # the script; after an option, the next word may be code
    return name[:60]


def _read_proc(disk: Disk, path: str) -> str:
    return read_unsized(disk, path, _MAXIMUM_PROC_BYTES).decode("utf-8", "replace")


def is_alive(pid: int) -> bool:
    """Return True if a process of this machine runs, or if unknown."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


def _duration(milliseconds: int) -> str:
    seconds = max(0, milliseconds // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
