"""Consolidation of small packs into a new one, to keep their number low.

Invariant: a pack in the user's git index is left alone, since replacing it would put the same bytes into git's
history twice. Packs are chosen by size, so that each byte is rewritten only a few times.
"""

from __future__ import annotations

import errno
import os

from trace_store import errors
from trace_store.disk.files import read_file
from trace_store.disk.git import git_dir
from trace_store.disk.layout import PACK_SUFFIX
from trace_store.odb.pack import MAXIMUM_PACK_BYTES, NO_DESCRIPTORS, walk_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.base.oid import ObjectId
    from trace_store.disk.files import Disk
    from trace_store.store.store import Store

ALWAYS_CONSOLIDATE_BYTES = 32 * 1024
"""Packs with up to this much content are always consolidated: rewriting them is nearly free."""
MAXIMUM_CONSOLIDATED_BYTES = MAXIMUM_PACK_BYTES // 2
"""Maximum compressed size of the packs consolidated in one seal."""
MAXIMUM_CONTENT_BYTES = 32 * 1024 * 1024
"""Maximum content of a seal that consolidates packs: what a seal holds in memory grows with its objects."""
MAXIMUM_GIT_INDEX_BYTES = 256 * 1024 * 1024
_IN_USE = (errno.EACCES, errno.EPERM, errno.EBUSY)
_NAME_TAIL = 32
"""Characters of a pack name to look for: git's index may omit a shared prefix."""


def choose_packs(store: Store, raw_bytes: int) -> tuple[list[str], int]:
    """Return packs to consolidate with `raw_bytes` of new content, oldest first, and the uncompressed size of all.

    A pack is included if it is no larger than what it is combined with, so a byte is rewritten at most once per
    doubling of the repository. Packs that a repack wrote are left to the next repack, which knows what is reachable
    in them.
    """
    limit = max(raw_bytes, ALWAYS_CONSOLIDATE_BYTES)
    chosen: list[tuple[int, str]] = []
    size = 0
    tracked: bytes | None = None
    for packed, changed, name in sorted(_sizes(store)):
        size += packed
        # Content is larger than its pack, and measuring it reads the head of each frame.
        if packed > limit or size > MAXIMUM_CONSOLIDATED_BYTES:
            break
        raw = None if _is_repacked(store, name) else _raw_bytes(store, name)
        if raw is None:
            continue
        if raw > limit or raw_bytes + raw > MAXIMUM_CONTENT_BYTES:
            break
        if tracked is None:
            tracked = git_index(store.disk, store.layout.root)
            if tracked is None:
                break
        if is_tracked(tracked, name) or not _is_sound(store, name):
            continue
        limit += raw
        raw_bytes += raw
        chosen.append((changed, name))
    return [name for _, name in sorted(chosen)], raw_bytes


def _sizes(store: Store) -> Iterator[tuple[int, int, str]]:
    """Yield (bytes, mtime, name) of every pack."""
    for name in store.objects.packs.names():
        status = store.disk.stat(store.layout.pack_file(name))
        if status is not None:
            yield status.st_size, status.st_mtime_ns, name


def _is_repacked(store: Store, name: str) -> bool:
    packed = store.objects.packs.get(name)
    return packed is not None and bool(packed.pack.made[2])


def _raw_bytes(store: Store, name: str) -> int | None:
    """Return the size of a pack's content; None if it cannot be read."""
    packed = store.objects.packs.get(name)
    if packed is None:
        return None
    try:
        return sum(place.raw for place in packed.pack.places())
    except (errors.CorruptPackError, errors.StorageError) as error:
        if isinstance(error, errors.StorageError) and error.errno in NO_DESCRIPTORS:
            raise
        return None


def objects_of(store: Store, name: str) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of all objects of a pack, in storage order.

    Raises:
        CorruptPackError: the pack is damaged.
        StorageError: the process has no file descriptors left.
    """
    packed = store.objects.packs.get(name)
    if packed is None:
        raise errors.CorruptPackError(
            f"cannot read pack {name[:12]}", path=store.layout.pack_file(name)
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
            f"cannot read pack {name[:12]}: {error}", path=packed.pack.path
        ) from error
    if count != packed.pack.object_count:
        raise errors.CorruptPackError(f"pack {name[:12]} is missing objects", path=packed.pack.path)


def remove_packs(store: Store, names: list[str]) -> None:
    """Remove packs whose objects are all in another durable pack."""
    for name in names:
        remove_if_possible(store.disk, store.layout.kept_pack_file(name))
        if remove_if_possible(store.disk, store.layout.pack_file(name)):
            remove_if_possible(store.disk, store.layout.pack_index_file(name))
    if names:
        with store.mutex:
            store.objects.packs.refresh()


def remove_if_possible(disk: Disk, path: str) -> bool:
    """Remove an unused file; return False if it is still open.

    On Windows an open file cannot be removed; a later call may succeed.
    """
    try:
        disk.remove(path)
    except errors.StorageError as error:
        if error.errno not in _IN_USE:
            raise
        return False
    return True


def file_size(disk: Disk, path: str) -> int:
    """Return the size of a file in bytes, 0 if it is missing."""
    status = disk.stat(path)
    return 0 if status is None else status.st_size


def is_tracked(index: bytes, name: str) -> bool:
    """Return True if a git index names a pack."""
    return (name[-_NAME_TAIL:] + PACK_SUFFIX).encode() in index


def git_index(disk: Disk, root: str) -> bytes | None:
    """Return the git index of the surrounding work tree.

    None if unreadable or too large, b"" without git.
    """
    try:
        git = git_dir(disk, os.path.abspath(root))
        if git is None:
            return b""
        folder = os.path.realpath(git)  # git follows a symbolic link here, too
        names = [n for n in disk.names(folder) if n == "index" or n.startswith("sharedindex.")]
        paths = [os.path.join(folder, name) for name in names]
        pieces = [read_file(disk, path, limit=MAXIMUM_GIT_INDEX_BYTES) or b"" for path in paths]
    except errors.StorageError:
        return None
    return b"".join(pieces)


def _is_sound(store: Store, name: str) -> bool:
    try:
        for _ in objects_of(store, name):
            pass
    except (errors.CorruptPackError, errors.CorruptObjectError):
        return False
    return True
