"""What kind of file system a path lies on, and what it does not keep of what it promises.

Rule: pure but for one look at the table of mounts, which Linux alone has. Nothing in a repository's order of writes
depends on the answer: it is for telling people. An append and a start ask nothing here.
"""

from __future__ import annotations

import os

from trace_store.files import Disk
from trace_store.frozen import value

TABLE = "/proc/self/mountinfo"
MAXIMUM_TABLE_BYTES = 1 << 24
UNKNOWN = "unknown"


@value
class FileSystem:
    """A kind of file system.

    Attributes:
        name: as the system calls it, such as `ext4` or `fuse.sshfs`; `unknown` where the system does not say.
        locks: whether a lock that one process holds keeps out every other, on whatever machine.
        durable: whether what was synced survives a power cut.
        links: whether a file may have two names, without which a file is put in place in another way.
        known: whether Trace knows the kind; one that it does not know is taken for an ordinary one.
        note: why not, in plain words; empty when there is nothing to say.
        mounted_at: the folder that it is mounted at; empty where the system does not say.
    """

    name: str
    locks: bool = True
    durable: bool = True
    links: bool = True
    known: bool = True
    note: str = ""
    mounted_at: str = ""

    @property
    def sound(self) -> bool:
        """Whether locks exclude and syncs last."""
        return self.locks and self.durable


_KEPT = "locks here do not keep out processes of other machines"
_BEHIND = "it depends on the program behind it whether locks exclude and syncs last"
_SHARED = "locks here do not keep out processes on the other side of the share"
_MEMORY = "it is in memory: all of it is gone when the machine stops"

SOUND = (
    *("bcachefs", "btrfs", "ceph", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "gfs2", "gpfs"),
    *("hfsplus", "jfs", "nilfs2", "ntfs", "ntfs3", "ocfs2", "overlay", "reiserfs", "xfs", "zfs"),
)
"""Those where locks exclude, syncs last, and a file may have two names."""
_WITHOUT_LINKS = ("exfat", "msdos", "vfat")

UNSOUND: dict[str, tuple[bool, bool, bool, str]] = {
    "9p": (False, False, True, _SHARED),
    "afs": (False, True, False, _KEPT),
    "beegfs": (False, True, True, _KEPT),
    "cifs": (False, True, False, _KEPT),
    "coda": (False, True, True, _KEPT),
    "drvfs": (False, True, True, _SHARED),
    "fuse": (False, False, False, _BEHIND),
    "lustre": (False, True, True, "locks exclude only where it is mounted with the option `flock`"),
    "ncpfs": (False, True, False, _KEPT),
    "nfs": (False, True, True, _KEPT),
    "nfs4": (False, True, True, _KEPT),
    "prl_fs": (False, False, False, _SHARED),
    "ramfs": (True, False, True, _MEMORY),
    "smb3": (False, True, False, _KEPT),
    "smbfs": (False, True, False, _KEPT),
    "tmpfs": (True, False, True, _MEMORY),
    "vboxsf": (False, False, False, _SHARED),
    "virtiofs": (False, True, True, _SHARED),
    "vmhgfs": (False, False, False, _SHARED),
}
"""By name: locks, durable, links, and why."""
_NO_BARRIERS = ("barrier=0", "barrier=none", "nobarrier")


class _Mount:
    __slots__ = ("name", "options", "point")

    def __init__(self, point: str, name: str, options: frozenset[str]) -> None:
        self.point = point
        self.name = name
        self.options = options


def kind_of(path: str, *, table: str | None = None) -> FileSystem:
    """Return the kind of file system that a path lies on, or would; it need not exist.

    Args:
        path: a file or folder; links in it are followed.
        table: what the table of mounts says, in the form of Linux's `mountinfo`; None reads that of this process.
    """
    text = _table() if table is None else table
    where = os.path.realpath(path) if table is None else os.path.normpath(path)
    found: _Mount | None = None
    for line in text.splitlines():
        mount = _parse(line)
        if mount is None or not _holds(mount.point, where):
            continue
        if found is None or len(mount.point) >= len(found.point):
            found = mount  # of two at one place the later one covers the earlier
    return FileSystem(UNKNOWN, known=False) if found is None else _judged(found)


def _table() -> str:
    disk = Disk()
    fd = disk.open(TABLE)
    if fd is None:
        return ""
    try:
        # The file says that it is empty, so its size is no use.
        return disk.read_at(fd, 0, MAXIMUM_TABLE_BYTES).decode("utf-8", "surrogateescape")
    finally:
        disk.close(fd)


def _parse(line: str) -> _Mount | None:
    """Return what a line says; None when it is none of the form known."""
    fields = line.split(" ")
    try:
        middle = fields.index("-", 6)
        name, _, *over = fields[middle + 1 :]
    except ValueError:
        return None
    options = fields[5].split(",") + ",".join(over).split(",")
    return _Mount(_plain(fields[4]), name, frozenset(options))


def _plain(text: str) -> str:
    r"""Return a path without the escapes that the table has, such as `\040` for a space."""
    if "\\" not in text:
        return text
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


def _holds(point: str, path: str) -> bool:
    return point == path or path.startswith(point.rstrip("/") + "/")


def _judged(mount: _Mount) -> FileSystem:
    name, options, point = mount.name, mount.options, mount.point
    family = name if name in UNSOUND or name in SOUND else name.partition(".")[0]
    if name == "9p" and "aname=drvfs" in ",".join(options).replace(";", ","):
        name = family = "drvfs"  # a drive of Windows, as WSL 2 has it
    if family == "lustre" and "flock" in options:
        return FileSystem(name, mounted_at=point)
    if family in UNSOUND:
        locks, durable, links, note = UNSOUND[family]
        return FileSystem(name, locks, durable, links, note=note, mounted_at=point)
    if options.intersection(_NO_BARRIERS):
        note = "it is mounted without write barriers, so a sync may leave data in the drive's cache"
        return FileSystem(name, durable=False, note=note, mounted_at=point)
    if family == "overlay" and "volatile" in options:
        note = "it is mounted as volatile, so nothing on it is ever synced"
        return FileSystem(name, durable=False, note=note, mounted_at=point)
    if family in _WITHOUT_LINKS:
        return FileSystem(name, links=False, mounted_at=point)
    return FileSystem(name, known=family in SOUND, mounted_at=point)
