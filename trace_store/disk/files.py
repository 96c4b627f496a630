"""The only access to the disk.

Rule: only this module opens, writes, syncs, renames, lists or locks files. All other modules are given a Disk, so that
tests can count calls or inject failures. Symbolic links are never followed in the last component and only regular files
are read. An absent file is a return value (None or False); any other failure is a StorageError.
"""

from __future__ import annotations

import errno
import os
import stat

from trace_store import errors
from trace_store.base.ident import SystemClock
from trace_store.disk import system_calls
from trace_store.disk.system_calls import COMMON_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READ, APPEND, WRITE = "read", "append", "write"
CREATE, PRIVATE, PROGRAM = "create", "create for its owner", "create a program"

WRITABLE = stat.S_IWUSR
"""The mode bit that `Disk.protect` clears."""
READ_ONLY = 0o444
MAXIMUM_READ_BYTES = 1 << 31
SETTLED_MS = 50  # file times have a resolution of 1 to 10 ms, so any later change is visible
_MILLISECOND, _CLOCK = 1_000_000, SystemClock()
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not block
_FLAGS = {
    READ: os.O_RDONLY | COMMON_FLAGS | _NONBLOCK,
    APPEND: os.O_RDWR | os.O_APPEND | COMMON_FLAGS | _NONBLOCK,
    WRITE: os.O_RDWR | COMMON_FLAGS | _NONBLOCK,
    CREATE: os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | COMMON_FLAGS,
}
_FLAGS[PRIVATE] = _FLAGS[PROGRAM] = _FLAGS[CREATE]
_CREATES = (CREATE, PRIVATE, PROGRAM)
_MODES = {PRIVATE: 0o600, PROGRAM: 0o777}
_DIRECTORY = os.O_RDONLY | COMMON_FLAGS | getattr(os, "O_DIRECTORY", 0)
_LISTS_OPEN = os.listdir in os.supports_fd
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
# Some network and FUSE file systems cannot sync a directory. The write itself has not failed.
_NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
_HAS_LINKS = hasattr(os, "link") and os.link in os.supports_follow_symlinks
"""Whether `os.link` can link a symbolic link itself instead of its target."""
_NO_LINK = (errno.EEXIST, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
TAKEN = ".taken"
"""Suffix of the lines of a log that a process uses."""
OPENED: dict[int, str] = {}
"""Path of each open descriptor."""
_REPOSITORY = f"{os.sep}.trace{os.sep}"


class Disk:
    """File operations, without state. Paths are str."""

    __slots__ = ()

    has_paths = True
    """Whether other programs can use its paths."""
    can_write = True
    """Whether it accepts changes."""

    def open(self, path: str, mode: str = READ) -> int | None:
        """Open a regular file and return its descriptor.

        Returns None if the file is absent (READ, APPEND, WRITE) or exists already (CREATE, PRIVATE, PROGRAM). PRIVATE
        creates a file that only its owner can read, PROGRAM one that can be executed.

        Raises:
            StorageError: the path is a link or not a regular file, or the system refuses.
        """
        try:
            fd = os.open(path, _FLAGS[mode], _MODES.get(mode, 0o666))
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
            StorageError: the system reports a late write error.
        """
        path = OPENED.pop(fd, "")
        try:
            os.close(fd)
        except OSError as error:
            raise failure(error, "close", path) from error

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at an offset; fewer only at the end of the file."""
        try:
            data = piece = system_calls.pread(fd, size, offset)
            while piece and len(data) < size:  # one call may return fewer bytes than asked
                piece = system_calls.pread(fd, size - len(data), offset + len(data))
                data += piece
            return data
        except OSError as error:
            raise failure(error, "read", fd) from error

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        """Append with one call, or write at an offset (WRITE mode).

        Returns the number of bytes written.
        """
        try:
            return os.write(fd, data) if at is None else system_calls.pwrite(fd, data, at)
        except OSError as error:
            raise failure(error, "write", fd) from error

    def sync(self, fd: int) -> None:
        """Sync the file's content to stable storage.

        Raises:
            StorageError: the sync failed. Do not retry on this descriptor: a second sync can falsely succeed.
        """
        try:
            system_calls.sync(fd)
        except OSError as error:
            raise failure(error, "sync", fd) from error

    def sync_directory(self, path: str) -> None:
        """Sync the names in a directory to stable storage."""
        try:
            system_calls.sync_directory(path)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_SYNC:
                raise failure(error, "sync directory", path) from error

    def size(self, fd: int) -> int:
        """Return the length of an open file in bytes."""
        return os.fstat(fd).st_size

    def identity(self, target: int | str) -> tuple[int, int] | None:
        """Return (device, inode) of an open file or a path; None if absent."""
        result = self.stat(target) if isinstance(target, str) else os.fstat(target)
        return None if result is None else (result.st_dev, result.st_ino)

    def stat(self, path: str) -> os.stat_result | None:
        """Return the stat result of a path, without following links; None if absent."""
        try:
            return os.lstat(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise failure(error, "stat", path) from error

    def protect(self, fd: int, mode: int = READ_ONLY) -> None:
        """Set the permission bits of an open file, by default read-only for everybody."""
        try:
            system_calls.protect(fd, mode)
        except OSError as error:
            raise failure(error, "protect", fd) from error

    def exists(self, path: str) -> bool:
        """Return True if the path exists; cheaper than `stat` if it usually does not."""
        return os.access(path, os.F_OK)

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty if it is absent.

        Raises:
            StorageError: it is a link, or the system refuses.
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
        """Return the sorted names of (directories, other entries); links count as other."""
        try:
            with os.scandir(path) as entries:
                items = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno in _ABSENT:
                return [], []
            raise failure(error, "list", path) from error
        items.sort()
        return [n for n, is_dir in items if is_dir], [n for n, is_dir in items if not is_dir]

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if absent.

        Raises:
            StorageError: the path exists but is not a directory.
        """
        result = self.stat(path)
        if result is None:
            parent = os.path.dirname(path)
            if parent and parent != path:
                self.make_directory(parent)
            try:
                os.mkdir(path)
            except FileExistsError:
                pass
            except OSError as error:
                raise failure(error, "create", path) from error
        elif not stat.S_ISDIR(result.st_mode):
            raise errors.StorageError("not a directory", path=path, errno=errno.ENOTDIR)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target."""
        try:
            os.replace(source, target)
        except OSError as error:
            raise failure(error, "rename a file to", target) from error

    def link(self, source: str, target: str) -> bool:
        """Create a hard link; False if the name exists or links are not supported."""
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
        """Remove a file; False if it was absent."""
        try:
            os.unlink(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise failure(error, "remove", path) from error
        return True

    def remove_directory(self, path: str) -> bool:
        """Remove a directory if it is empty; return whether it was removed."""
        try:
            os.rmdir(path)
        except OSError:
            return False
        return True

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        """Lock an open file exclusively; False if not `blocking` and already locked."""
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
    """Return a file's bytes, or None if it is absent.

    Raises:
        StorageError: it is larger than `limit` bytes, a link, or unreadable.
    """
    fd = disk.open(path)
    if fd is None:
        return None
    try:
        size = disk.size(fd)
        if size > limit:
            raise errors.StorageError(
                f"the file has {size} bytes, over the limit of {limit}",
                path=path,
                errno=errno.EFBIG,
            )
        return disk.read_at(fd, 0, size)
    finally:
        disk.close(fd)


def read_unsized(disk: Disk, path: str, limit: int) -> bytes:
    """Return the first bytes of a file that reports no size, as those in /proc; b"" if it is absent."""
    fd = disk.open(path)
    if fd is None:
        return b""
    try:
        return disk.read_at(fd, 0, limit)
    finally:
        disk.close(fd)


def files_below(disk: Disk, folder: str) -> Iterator[str]:
    """Yield the paths of all files below a folder in a fixed order; links are not followed."""
    pending = [folder]
    while pending:
        current = pending.pop()
        folders, files = disk.scan(current)
        pending += [os.path.join(current, name) for name in reversed(folders)]
        yield from [os.path.join(current, name) for name in files]


def check_folders(disk: Disk, root: str, path: str) -> None:
    """Check that no folder between `root` and `path` is a symbolic link.

    Opening a file refuses a link in the last component only. Absent folders are fine.

    Raises:
        StorageError: a folder is a link or not a directory.
    """
    folders, folder = os.path.relpath(os.path.dirname(path), root).split(os.sep), root
    for name in folders:
        folder = os.path.join(folder, name)
        result = disk.stat(folder)
        if result is None:
            return
        if not stat.S_ISDIR(result.st_mode):
            raise errors.StorageError(
                f"not a directory: {folder}", path=folder, errno=errno.ENOTDIR
            )


def create_file(
    disk: Disk, path: str, data: bytes = b"", *, durable: bool = True, mode: str = CREATE
) -> bool:
    """Create a file with this content; False if it exists already.

    The name itself is durable only after the directory is synced. `mode` is CREATE, PRIVATE or PROGRAM.
    """
    fd = disk.open(path, mode)
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
    """Return a stamp for `unchanged`, taken before reading; None if absent.

    If the file changed a moment ago, or the file system has only coarse times, the stamp never matches.
    """
    result = disk.stat(path)
    if result is None:
        return None
    changed = result.st_mtime_ns
    is_settled = _CLOCK.now() - changed // _MILLISECOND > SETTLED_MS
    return _stat_key(result) if is_settled and changed % _MILLISECOND else object()


def unchanged(disk: Disk, path: str, stamp: object) -> bool:
    """Return True if a file, or the names in a directory, surely did not change."""
    if stamp is None:
        return not disk.exists(path)
    result = disk.stat(path)
    return result is not None and stamp == _stat_key(result)


def replace_file(
    disk: Disk,
    path: str,
    data: bytes,
    *,
    durable: bool = True,
    scratch: str = "",
    private: bool = False,
    mode: int | None = None,
) -> None:
    """Replace a file's content atomically.

    Args:
        disk: the disk.
        path: the file.
        data: its new content.
        durable: whether to sync before returning.
        scratch: a directory on the same file system for the temporary file; default: the folder of `path`.
        private: whether only the owner can read the file.
        mode: its permission bits; None: those of a new file.
    """
    folder = os.path.dirname(path)
    disk.make_directory(folder)
    if scratch:
        disk.make_directory(scratch)
    name = f"{os.path.basename(path)}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    temporary = os.path.join(scratch or folder, name)
    create_file(disk, temporary, data, durable=durable, mode=PRIVATE if private else CREATE)
    try:
        if mode is not None:
            _set_mode(disk, temporary, mode)
        disk.rename(temporary, path)
    except errors.StorageError:
        disk.remove(temporary)
        raise
    if durable:
        disk.sync_directory(folder)


def _set_mode(disk: Disk, path: str, mode: int) -> None:
    fd = disk.open(path, WRITE)
    if fd is not None:
        try:
            disk.protect(fd, mode)
        finally:
            disk.close(fd)


def append_line(disk: Disk, path: str, data: bytes) -> None:
    """Append to a file with one call; create it, for its owner only, if it is absent.

    Raises:
        StorageError: the disk refuses, or not all of it was written.
    """
    fd = disk.open(path, APPEND)
    if fd is None:
        disk.make_directory(os.path.dirname(path))
        fd = disk.open(path, PRIVATE)
        if fd is None:  # another process was faster
            fd = disk.open(path, APPEND)
    if fd is None:
        raise errors.StorageError(f"cannot open {display_path(path)}", path=path)
    try:
        if disk.write(fd, data) != len(data):
            raise errors.StorageError(f"the disk is full: {display_path(path)}", path=path)
    finally:
        disk.close(fd)


def take_lines(disk: Disk, path: str, act: Callable[[list[str]], object]) -> None:
    """Let `act` use the lines of a log that others append to, oldest first, and then remove them.

    If a process was killed while it used lines, they come first. Only one process may do this at a time.

    Raises:
        StorageError: a file cannot be read or changed.
    """
    taken = path + TAKEN
    for rest in (taken, path):
        if not disk.exists(rest):
            continue
        if rest == path:
            disk.rename(path, taken)
        done = 0
        while len(data := read_file(disk, taken) or b"") > done:  # another process may still write
            act(data[done:].decode("utf-8", "replace").splitlines())
            done = len(data)
        disk.remove(taken)


def make_durable_directory(disk: Disk, path: str) -> None:
    """Create a directory and its parents if absent, and sync their names.

    Raises:
        StorageError: the path exists but is not a directory, or the system refuses.
    """
    parent = os.path.dirname(path)
    is_new = disk.stat(path) is None
    if is_new and parent != path:
        make_durable_directory(disk, parent)
    disk.make_directory(path)
    if is_new:
        disk.sync_directory(parent)


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Append all bytes, with as many calls as needed."""
    written = disk.write(fd, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[disk.write(fd, bytes(rest)) :]


def _stat_key(result: os.stat_result) -> tuple[int, ...]:
    return result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns, result.st_dev


def failure(error: OSError, operation: str, target: str | int) -> errors.StorageError:
    """Return a StorageError for an OSError.

    Args:
        error: the system's error.
        operation: the failed operation, as a verb.
        target: the file: its path or descriptor.
    """
    path = OPENED.get(target, "") if isinstance(target, int) else target
    return errors.StorageError(
        f"cannot {operation} {display_path(path) or 'a file'}: {error.strerror or error}",
        path=path,
        operation=operation,
        errno=error.errno,
    )


def display_path(path: str) -> str:
    """Return a path for messages; in a repository, relative to the folder of `.trace`."""
    place = f"{path}{os.sep}".rfind(_REPOSITORY)
    return path if place < 0 else path[place + 1 :]
