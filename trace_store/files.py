"""The one seam to the disk.

Rule: only this module opens, writes, syncs, renames, lists or locks files, and everything above is given a Disk, so
that a test can count the calls or let the n-th one fail. Symbolic links are never followed at the last component and
only regular files are read; an absent file is an answer (None or False), any other failure a StorageError.
"""

from __future__ import annotations

import errno
import os
import stat

from trace_store import errors, system_calls
from trace_store.ident import SystemClock
from trace_store.os_errors import OPENED, failure
from trace_store.system_calls import COMMON_FLAGS

READ, APPEND, WRITE, CREATE, PRIVATE = "read", "append", "write", "create", "create for its owner"

WRITABLE = stat.S_IWUSR
"""The bit of a mode that `Disk.protect` takes away."""
MAXIMUM_READ_BYTES = 1 << 31
SETTLED_MS = 50  # kernels note times every 1 to 10 ms: a later change than this shows
_MILLISECOND, _CLOCK = 1_000_000, SystemClock()
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not wait for its other end
_FLAGS = {
    READ: os.O_RDONLY | COMMON_FLAGS | _NONBLOCK,
    APPEND: os.O_RDWR | os.O_APPEND | COMMON_FLAGS | _NONBLOCK,
    WRITE: os.O_RDWR | COMMON_FLAGS | _NONBLOCK,
    CREATE: os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | COMMON_FLAGS,
}
_FLAGS[PRIVATE] = _FLAGS[CREATE]
_CREATES = (CREATE, PRIVATE)
_DIRECTORY = os.O_RDONLY | COMMON_FLAGS | getattr(os, "O_DIRECTORY", 0)
_LISTS_OPEN = os.listdir in os.supports_fd
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
# Some network and user-space file systems cannot sync a directory; that is not a failed write.
_NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
_HAS_LINKS = hasattr(os, "link") and os.link in os.supports_follow_symlinks
"""Whether the system gives a file, and not what it points to, a second name."""
_NO_LINK = (errno.EEXIST, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


class Disk:
    """Access to files; has no state of its own. Paths are text."""

    __slots__ = ()

    def open(self, path: str, mode: str = READ) -> int | None:
        """Return a descriptor of a regular file.

        None means: absent (READ, APPEND, WRITE), or already there (CREATE, and PRIVATE, which nobody else can read).

        Raises:
            StorageError: the path is a link or no regular file, or the disk refuses.
        """
        try:
            fd = os.open(path, _FLAGS[mode], 0o600 if mode == PRIVATE else 0o666)
        except OSError as error:
            if error.errno in _ABSENT and mode not in _CREATES:
                return None
            if error.errno == errno.EEXIST and mode in _CREATES:
                return None
            what = "create" if mode in _CREATES else "open"
            raise failure(error, what, path) from error
        if mode not in _CREATES and not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise errors.StorageError("not a regular file", path=path, errno=errno.EINVAL)
        OPENED[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Close a descriptor.

        Raises:
            StorageError: the disk reports a late write error.
        """
        path = OPENED.pop(fd, "")
        try:
            os.close(fd)
        except OSError as error:
            raise failure(error, "close", path) from error

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from an offset; fewer only at the end of the file."""
        try:
            data = piece = system_calls.pread(fd, size, offset)
            while piece and len(data) < size:  # a large read may come in pieces
                piece = system_calls.pread(fd, size - len(data), offset + len(data))
                data += piece
            return data
        except OSError as error:
            raise failure(error, "read", fd) from error

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        """Append with one call, or write at an offset of what is open for WRITE; return how many bytes were taken."""
        try:
            return os.write(fd, data) if at is None else system_calls.pwrite(fd, data, at)
        except OSError as error:
            raise failure(error, "write", fd) from error

    def sync(self, fd: int) -> None:
        """Return when the file's content is on stable storage.

        Raises:
            StorageError: it may not be; the descriptor must not be synced again, since a second call can succeed
                falsely.
        """
        try:
            system_calls.sync(fd)
        except OSError as error:
            raise failure(error, "sync", fd) from error

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on stable storage."""
        try:
            system_calls.sync_directory(path)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_SYNC:
                raise failure(error, "sync the names in", path) from error

    def size(self, fd: int) -> int:
        """Return the length of an open file in bytes."""
        return os.fstat(fd).st_size

    def identity(self, target: int | str) -> tuple[int, int] | None:
        """Return (device, inode) of an open file or a path; None when the path is absent."""
        found = self.stat(target) if isinstance(target, str) else os.fstat(target)
        return None if found is None else (found.st_dev, found.st_ino)

    def stat(self, path: str) -> os.stat_result | None:
        """Return what the file system knows of a path, without following links; None when absent."""
        try:
            return os.lstat(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise failure(error, "look at", path) from error

    def protect(self, fd: int) -> None:
        """Take the right to write away from an open file, for all to see."""
        try:
            system_calls.protect(fd)
        except OSError as error:
            raise failure(error, "protect", fd) from error

    def exists(self, path: str) -> bool:
        """Tell whether there is anything at a path; cheaper than `stat` where mostly nothing is."""
        return os.access(path, os.F_OK)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none when it is absent.

        Raises:
            StorageError: it is a link, or the disk refuses.
        """
        try:
            if not _LISTS_OPEN:
                return sorted(os.listdir(path))
            fd = os.open(path, _DIRECTORY)
            try:
                return sorted(os.listdir(fd))
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in _ABSENT and not os.path.islink(path):
                return []
            raise failure(error, "list", path) from error

    def scan(self, path: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of (directories, everything else) in a directory; links count as else."""
        try:
            with os.scandir(path) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno in _ABSENT:
                return [], []
            raise failure(error, "list", path) from error
        found.sort()
        return [n for n, is_dir in found if is_dir], [n for n, is_dir in found if not is_dir]

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents where absent.

        Raises:
            StorageError: something else stands there, such as a link.
        """
        found = self.stat(path)
        if found is None:
            parent = os.path.dirname(path)
            if parent and parent != path:
                self.make_directory(parent)
            try:
                os.mkdir(path)
            except FileExistsError:
                pass
            except OSError as error:
                raise failure(error, "create", path) from error
        elif not stat.S_ISDIR(found.st_mode):
            raise errors.StorageError("not a directory", path=path, errno=errno.ENOTDIR)

    def rename(self, source: str, target: str) -> None:
        """Give a file its name, replacing what has it."""
        try:
            os.replace(source, target)
        except OSError as error:
            raise failure(error, "rename a file to", target) from error

    def link(self, source: str, target: str) -> bool:
        """Give a file a second name; False when that name is taken, or the file system knows no links."""
        if not _HAS_LINKS:
            return False
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_LINK:
                return False
            raise failure(error, "link", target) from error
        return True

    def remove(self, path: str) -> bool:
        """Remove a file; False when it was absent already."""
        try:
            os.unlink(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise failure(error, "remove", path) from error
        return True

    def remove_directory(self, path: str) -> bool:
        """Remove a directory if it is there and empty; False when it was not."""
        try:
            os.rmdir(path)
        except OSError:
            return False
        return True

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        """Take the exclusive lock of an open file; False when it is taken and `blocking` is not asked."""
        try:
            return system_calls.lock(fd, blocking)
        except OSError as error:
            raise failure(error, "lock", fd) from error

    def unlock(self, fd: int) -> None:
        """Release the lock of an open file."""
        try:
            system_calls.unlock(fd)
        except OSError as error:
            raise failure(error, "unlock", fd) from error


def read_file(disk: Disk, path: str, *, limit: int = MAXIMUM_READ_BYTES) -> bytes | None:
    """Return a file's bytes, or None when it is absent.

    Raises:
        StorageError: it is larger than `limit` bytes, a link, or cannot be read.
    """
    fd = disk.open(path)
    if fd is None:
        return None
    try:
        size = disk.size(fd)
        if size > limit:
            raise errors.StorageError(
                f"file of {size} bytes is over the limit of {limit}",
                path=path,
                errno=errno.EFBIG,
            )
        return disk.read_at(fd, 0, size)
    finally:
        disk.close(fd)


def check_folders(disk: Disk, root: str, path: str) -> None:
    """Accept a path below a directory when none of the directories between the two is a link; absent ones are none.

    Whatever opens a file refuses a link in its place, but follows those on the way to it.

    Raises:
        StorageError: one is, or is something else than a directory.
    """
    folders, here = os.path.relpath(os.path.dirname(path), root).split(os.sep), root
    for name in folders:
        here = os.path.join(here, name)
        found = disk.stat(here)
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            raise errors.StorageError(f"not a directory: {here}", path=here, errno=errno.ENOTDIR)


def create_file(
    disk: Disk, path: str, data: bytes = b"", *, durable: bool = True, private: bool = False
) -> bool:
    """Create a file with this content; False when the path is taken.

    Its name is durable only after a sync of the directory. One that is private only its owner can read.
    """
    fd = disk.open(path, PRIVATE if private else CREATE)
    if fd is None:
        return False
    try:
        if data:
            write_all(disk, fd, data)
            if durable:
                disk.sync(fd)
    finally:
        disk.close(fd)
    return True


def stamp(disk: Disk, path: str) -> object:
    """Return what to give `unchanged` later, taken before reading what is there; None when nothing is.

    What was changed a moment ago, or lies where times are whole milliseconds, gets a stamp that fits nothing.
    """
    found = disk.stat(path)
    if found is None:
        return None
    changed = found.st_mtime_ns
    settled = _CLOCK.now() - changed // _MILLISECOND > SETTLED_MS
    return _traits(found) if settled and changed % _MILLISECOND else object()


def unchanged(disk: Disk, path: str, stamp: object) -> bool:
    """Tell whether a file, or the names in a directory, are for certain as they were when the stamp was taken."""
    if stamp is None:
        return not disk.exists(path)
    found = disk.stat(path)
    return found is not None and stamp == _traits(found)


def replace_file(
    disk: Disk,
    path: str,
    data: bytes,
    *,
    durable: bool = True,
    scratch: str = "",
    private: bool = False,
) -> None:
    """Give a path new content at once: a reader, or a crash, sees the old or the new, never a mixture.

    Args:
        disk: where the file is.
        path: the file.
        data: all of its new content.
        durable: whether to return only when it would survive a power cut.
        scratch: a directory of the same file system for the file while it is incomplete; else that of `path`.
        private: whether only its owner can read it.
    """
    folder = os.path.dirname(path)
    disk.make_directory(folder)
    if scratch:
        disk.make_directory(scratch)
    name = f"{os.path.basename(path)}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    temporary = os.path.join(scratch or folder, name)
    create_file(disk, temporary, data, durable=durable, private=private)
    try:
        disk.rename(temporary, path)
    except errors.StorageError:
        disk.remove(temporary)
        raise
    if durable:
        disk.sync_directory(folder)


def make_durable_directory(disk: Disk, path: str) -> None:
    """Create a directory and its parents where absent, and return when the names of those that were are durable.

    Raises:
        StorageError: something else stands there, or the disk refuses.
    """
    parent = os.path.dirname(path)
    is_new = disk.stat(path) is None
    if is_new and parent != path:
        make_durable_directory(disk, parent)
    disk.make_directory(path)
    if is_new:
        disk.sync_directory(parent)


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Append all the bytes, in as many calls as it takes."""
    written = disk.write(fd, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[disk.write(fd, bytes(rest)) :]


def _traits(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev
