"""Folding small packs into a new one, so that their number stays small.

Rule: a pack that the user's git has in its index is left alone, because replacing it would put the same bytes into
their history twice. Which packs are folded follows their sizes, so that each byte is written again only a few times.
"""

from __future__ import annotations

import errno
import os

from trace_store import errors
from trace_store.files import read_file
from trace_store.layout import PACK_SUFFIX
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.open_files import NO_DESCRIPTORS
from trace_store.odb.pack import MAXIMUM_PACK_BYTES
from trace_store.odb.pack_walk import walk_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.files import Disk
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

ALWAYS_FOLD_BYTES = 32 * 1024
"""Packs with up to this much content are folded whatever comes to them: writing them again costs next to nothing."""
MAXIMUM_FOLD_BYTES = MAXIMUM_PACK_BYTES // 2
"""How large, compressed, the packs folded in one seal are together."""
MAXIMUM_GIT_INDEX_BYTES = 256 * 1024 * 1024
_IN_USE = (errno.EACCES, errno.EPERM, errno.EBUSY)
_NAME_TAIL = 32
"""How many characters of a pack's name are looked for: git's index may leave out what names share in front."""


def choose_packs(store: Store, raw_bytes: int) -> tuple[list[str], int]:
    """Return the packs to fold together with `raw_bytes` of new content, oldest first, and the content of all that.

    Those go along that hold no more than what they are folded with, so a byte is written again at most as often as
    the content of the repository doubles.
    """
    limit = max(raw_bytes, ALWAYS_FOLD_BYTES)
    chosen: list[tuple[int, str]] = []
    size = 0
    tracked: bytes | None = None
    for raw, packed, changed, name in sorted(_sizes(store)):
        size += packed
        if raw > limit or size > MAXIMUM_FOLD_BYTES:
            break
        if tracked is None:
            tracked = git_index(store.disk, store.layout.root)
            if tracked is None:
                break
        if is_in(tracked, name) or not _is_sound(store, name):
            continue
        limit += raw
        raw_bytes += raw
        chosen.append((changed, name))
    return [name for _, name in sorted(chosen)], raw_bytes


def _sizes(store: Store) -> Iterator[tuple[int, int, int, str]]:
    """Yield (raw bytes, bytes, time of change, name) of every pack that can be read."""
    assert isinstance(store.objects, ObjectDatabase)
    for name in store.objects.packs.names():
        packed = store.objects.packs.get(name)
        found = store.disk.stat(store.layout.pack_file(name))
        if packed is None or found is None:
            continue
        try:
            raw = sum(place.raw for place in packed.pack.places())
        except (errors.CorruptPackError, errors.StorageError) as error:
            if isinstance(error, errors.StorageError) and error.errno in NO_DESCRIPTORS:
                raise
            continue
        yield raw, found.st_size, found.st_mtime_ns, name


def objects_of(store: Store, name: str) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of all objects of a pack, in the order they were written.

    Raises:
        CorruptPackError: it cannot be read to its end.
        StorageError: the process has no descriptor left.
    """
    assert isinstance(store.objects, ObjectDatabase)
    packed = store.objects.packs.get(name)
    if packed is None:
        raise errors.CorruptPackError(
            f"pack {name[:12]} cannot be read", path=store.layout.pack_file(name)
        )
    count = 0
    try:
        for _, _, objects in walk_objects(packed.pack):
            if isinstance(objects, errors.CorruptObjectError):
                what = f"pack {name[:12]} is damaged: {objects}"
                raise errors.CorruptPackError(what, path=packed.pack.path)
            for oid, _, data in objects:
                count += 1
                yield oid, data
    except errors.StorageError as error:
        if error.errno in NO_DESCRIPTORS:
            raise
        raise errors.CorruptPackError(
            f"pack {name[:12]} cannot be read: {error}", path=packed.pack.path
        ) from error
    if count != packed.pack.object_count:
        raise errors.CorruptPackError(f"pack {name[:12]} lacks objects", path=packed.pack.path)


def remove_packs(store: Store, names: list[str]) -> None:
    """Remove packs all of whose objects are in another, durable one."""
    for name in names:
        remove_if_possible(store.disk, store.layout.kept_pack_file(name))
        if remove_if_possible(store.disk, store.layout.pack_file(name)):
            remove_if_possible(store.disk, store.layout.pack_index_file(name))
    if names:
        assert isinstance(store.objects, ObjectDatabase)
        with store.mutex:
            store.objects.packs.refresh()


def remove_if_possible(disk: Disk, path: str) -> bool:
    """Remove a file that nobody needs any more, and tell whether it is gone.

    On Windows one that is open elsewhere cannot go; the next time it may.
    """
    try:
        disk.remove(path)
    except errors.StorageError as error:
        if error.errno not in _IN_USE:
            raise
        return False
    return True


def is_in(index: bytes, name: str) -> bool:
    """Tell whether an index of git names a pack."""
    return (name[-_NAME_TAIL:] + PACK_SUFFIX).encode() in index


def git_index(disk: Disk, root: str) -> bytes | None:
    """Return the bytes of the index of the git repository around a path; None when it cannot be read, or is huge."""
    folder = os.path.dirname(os.path.abspath(root))
    while True:
        git = os.path.join(folder, ".git")
        if disk.stat(git) is not None:
            break
        parent = os.path.dirname(folder)
        if parent == folder:
            return b""
        folder = parent
    if disk.stat(os.path.join(git, "HEAD")) is None:
        git = _linked(disk, git, folder)
    pieces: list[bytes] = []
    for name in disk.names(os.path.realpath(git)):  # git follows a link there, too
        if name == "index" or name.startswith("sharedindex."):
            try:
                data = read_file(disk, os.path.join(git, name), limit=MAXIMUM_GIT_INDEX_BYTES)
            except errors.StorageError:
                return None
            pieces.append(data or b"")
    return b"".join(pieces)


def _linked(disk: Disk, path: str, folder: str) -> str:
    """Return the git directory that a file `.git` names, as in a linked work tree."""
    try:
        data = read_file(disk, path, limit=4096) or b""
    except errors.StorageError:
        return path
    text = data.decode("utf-8", "surrogateescape").strip()
    return os.path.join(folder, text.removeprefix("gitdir:").strip())


def _is_sound(store: Store, name: str) -> bool:
    try:
        for _ in objects_of(store, name):
            pass
    except (errors.CorruptPackError, errors.CorruptObjectError):
        return False
    return True
