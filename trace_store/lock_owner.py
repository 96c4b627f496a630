"""Who holds a lock, for people who wait for it.

    pid 4711
    host forge
    command trace pack
    since 1795353681000

Rule: what is read here is told and never acted upon; a lock is free when the system gives it, not before, however long
it has been held. Who works for long leaves a file beside the lock; where there is none, Linux is asked.
"""

from __future__ import annotations

import os
from errno import EPERM

from trace_store import errors
from trace_store.files import Disk, read_file, replace_file
from trace_store.frozen import value
from trace_store.ident import SystemClock

SUFFIX = ".holder"
LOCKS = "/proc/locks"
_MAXIMUM_BYTES = 4096
_MAXIMUM_TABLE_BYTES = 1 << 22


@value
class Holder:
    """A process that holds a lock.

    Attributes:
        pid: its number; 0 when nothing is known.
        host: the machine that it runs on.
        command: what it does.
        since: when it took the lock, in milliseconds; None when that is not known.
        here: whether it runs on this machine.
    """

    pid: int = 0
    host: str = ""
    command: str = ""
    since: int | None = None
    here: bool = True

    def __str__(self) -> str:
        """Return such as `trace pack (pid 4711, 40 s)`."""
        if not self.pid:
            return "another process"
        told = [f"pid {self.pid}"]
        if not self.here:
            told.append(f"on {self.host}")
        if self.since is not None:
            told.append(_duration(SystemClock().now() - self.since))
        return f"{self.command or 'a process'} ({', '.join(told)})"


UNKNOWN = Holder()


def note_holder(disk: Disk, path: str, command: str, scratch: str) -> None:
    """Leave word beside a lock of who has it; called by who does.

    A disk that refuses is no reason not to work.
    """
    since = SystemClock().now()
    text = f"pid {os.getpid()}\nhost {_host()}\ncommand {command}\nsince {since}\n"
    try:
        replace_file(disk, path + SUFFIX, text.encode(), durable=False, scratch=scratch)
    except errors.StorageError:
        return


def forget_holder(disk: Disk, path: str) -> None:
    """Take the word away before the lock is released."""
    try:
        disk.remove(path + SUFFIX)
    except errors.StorageError:
        return


def holder_of(disk: Disk, path: str) -> Holder:
    """Return who holds the lock of a file, as far as can be found out; `UNKNOWN` when it cannot."""
    try:
        noted = _parse(read_file(disk, path + SUFFIX, limit=_MAXIMUM_BYTES) or b"")
        if noted is not None and not (noted.here and _is_gone(noted.pid)):
            return noted
        return _told_by_system(disk, path)
    except errors.StorageError:
        return UNKNOWN


def _parse(data: bytes) -> Holder | None:
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, _, text = line.partition(" ")
        fields[name] = text
    try:
        pid, since = int(fields["pid"]), int(fields["since"])
    except (KeyError, ValueError):
        return None
    host = fields.get("host", "")
    if pid <= 0:
        return None
    return Holder(pid, host, fields.get("command", ""), since, host == _host())


def _told_by_system(disk: Disk, path: str) -> Holder:
    """Look the lock up in Linux's table of all locks."""
    found = disk.stat(path)
    table = _special(disk, LOCKS)
    if found is None or not table:
        return UNKNOWN
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in table.splitlines():
        fields = line.split()
        if "->" not in fields and place in fields and fields[1] == "FLOCK":
            pid = int(fields[fields.index(place) - 1])
            if pid > 0:
                return Holder(pid, _host(), _command_of(disk, pid))
    return UNKNOWN


def _command_of(disk: Disk, pid: int) -> str:
    """Return what a process runs, without its arguments: they may be nobody's business."""
    words = [word for word in _special(disk, f"/proc/{pid}/cmdline").split("\0") if word]
    names = [os.path.basename(word) for word in words]
    if len(names) > 1 and names[0].startswith("python"):
        plain = [name for name in names[1:] if not name.startswith("-")]
        names = plain or names[:1]
    if names[:1] in (["trace"], ["trace-store"]) and len(names) > 1:
        return f"trace {names[1]}"
    return names[0][:60] if names else ""


def _special(disk: Disk, path: str) -> str:
    """Return what a file of the system says, whose size is no use; empty when there is none."""
    fd = disk.open(path)
    if fd is None:
        return ""
    try:
        return disk.read_at(fd, 0, _MAXIMUM_TABLE_BYTES).decode("utf-8", "replace")
    finally:
        disk.close(fd)


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno != EPERM
    return False


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


def _duration(milliseconds: int) -> str:
    seconds = max(0, milliseconds // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
