"""File system types, and which guarantees they break.

Rule: pure, except for reading Linux's mount table. The answer is only reported to people; it never changes how a
repository is written, and neither start-up nor append asks for it.
"""

from __future__ import annotations

import os

from trace_store.base.frozen import value
from trace_store.disk.files import Disk, read_unsized

TABLE = "/proc/self/mountinfo"
MAXIMUM_TABLE_BYTES = 1 << 24
UNKNOWN = "unknown"


@value
class FileSystem:
    """A file system type.

    Attributes:
        name: the system's name, such as `ext4` or `fuse.sshfs`; `unknown` if it cannot be determined.
        locks: whether a file lock excludes all processes on all machines.
        durable: whether synced data survives a power cut.
        note: why a guarantee is broken; empty if none is.
    """

    name: str
    locks: bool = True
    durable: bool = True
    note: str = ""


_KEPT = "file locks here do not exclude processes on other machines"
_BEHIND = "whether locks and syncs work depends on the program behind it"
_SHARED = "file locks here do not exclude processes on the other side of the share"
_MEMORY = "it is in memory and is lost when the machine stops"

UNSOUND: dict[str, tuple[bool, bool, str]] = {
    "9p": (False, False, _SHARED),
    "afs": (False, True, _KEPT),
    "beegfs": (False, True, _KEPT),
    "cifs": (False, True, _KEPT),
    "coda": (False, True, _KEPT),
    "drvfs": (False, True, _SHARED),
    "fuse": (False, False, _BEHIND),
    "lustre": (False, True, "file locks work only if it is mounted with the option `flock`"),
    "ncpfs": (False, True, _KEPT),
    "nfs": (False, True, _KEPT),
    "nfs4": (False, True, _KEPT),
    "prl_fs": (False, False, _SHARED),
    "ramfs": (True, False, _MEMORY),
    "smb3": (False, True, _KEPT),
    "smbfs": (False, True, _KEPT),
    "tmpfs": (True, False, _MEMORY),
    "vboxsf": (False, False, _SHARED),
    "virtiofs": (False, True, _SHARED),
    "vmhgfs": (False, False, _SHARED),
}
"""By name: locks, durable, note. Any other file system is assumed to be sound."""
_NO_BARRIERS = ("barrier=0", "barrier=none", "nobarrier")


class _Mount:
    __slots__ = ("name", "options", "point")

    def __init__(self, point: str, name: str, options: frozenset[str]) -> None:
        self.point = point
        self.name = name
        self.options = options


def kind_of(path: str, *, table: str | None = None) -> FileSystem:
    """Return the type of file system that holds a path; the path need not exist.

    Args:
        path: a file or folder; symbolic links are followed.
        table: text in the format of Linux's `mountinfo`; None reads this process's table.
    """
    if table is None:
        data = read_unsized(Disk(), TABLE, MAXIMUM_TABLE_BYTES)
        text, where = data.decode("utf-8", "surrogateescape"), os.path.realpath(path)
    else:
        text, where = table, os.path.normpath(path)
    best: _Mount | None = None
    for line in text.splitlines():
        mount = _parse(line)
        if mount is None or not _contains(mount.point, where):
            continue
        if best is None or len(mount.point) >= len(best.point):
            best = mount  # a later mount on the same point hides the earlier one
    return FileSystem(UNKNOWN) if best is None else _classify(best)


def _parse(line: str) -> _Mount | None:
    """Return the mount in a line, or None if the line is malformed."""
    fields = line.split(" ")
    try:
        middle = fields.index("-", 6)
        name, _, *over = fields[middle + 1 :]
    except ValueError:
        return None
    options = fields[5].split(",") + ",".join(over).split(",")
    return _Mount(_unescape(fields[4]), name, frozenset(options))


def _unescape(text: str) -> str:
    r"""Unescape a path of the mount table, such as `\040` for a space."""
    if "\\" not in text:
        return text
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


def _contains(point: str, path: str) -> bool:
    return point == path or path.startswith(point.rstrip("/") + "/")


def _classify(mount: _Mount) -> FileSystem:
    name, options = mount.name, mount.options
    family = name.partition(".")[0]
    if name == "9p" and "aname=drvfs" in ",".join(options).replace(";", ","):
        name = family = "drvfs"  # a Windows drive under WSL 2
    if family == "lustre" and "flock" in options:
        return FileSystem(name)
    if family in UNSOUND:
        return FileSystem(name, *UNSOUND[family])
    if options.intersection(_NO_BARRIERS):
        note = "it is mounted without write barriers, so synced data may stay in the drive's cache"
        return FileSystem(name, durable=False, note=note)
    if family == "overlay" and "volatile" in options:
        note = "it is mounted as volatile, so nothing is ever synced"
        return FileSystem(name, durable=False, note=note)
    return FileSystem(name)
