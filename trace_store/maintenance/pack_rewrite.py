"""Write packs again: several as one, or one without some objects.

Rule: a pack that the user's git has in its index is left alone, because replacing it would put the same bytes into
their history twice. Which packs are folded follows their sizes, so that each byte is written again only a few times.

Rule: what stays stands in a durable pack, under its name and with its index, before the pack that it was in goes. So it
may be interrupted anywhere and begun again. Frames are compressed afresh: a frame may have another for its dictionary,
and nothing of what is dropped may stay in one. A pack that cannot be read to its end is left as it is.

Callers hold the lock that seal and pack share.
"""

from __future__ import annotations

import errno
import os

from trace_store import errors
from trace_store.files import read_file
from trace_store.frozen import value
from trace_store.layout import PACK_SUFFIX
from trace_store.maintenance.second_copies import keep_copies
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.open_files import NO_DESCRIPTORS
from trace_store.odb.pack import MAXIMUM_PACK_BYTES
from trace_store.odb.pack_walk import walk_objects
from trace_store.odb.pack_writer import DEFAULT_FRAME_BYTES, SHARED_BYTES, PackWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

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


DEFAULT_LEVEL = 10


@value
class Rewritten:
    """Packs that were written anew.

    Attributes:
        packs: the names of the new packs, which are durable.
        replaced: the names of the packs all of whose other objects stand in the new ones; they can go.
        objects: how many objects stay.
        dropped: how many are left out.
        damaged: the names of packs that cannot be read to their end; nothing of them counts as kept or dropped.
        bytes_before, bytes_after: size of what is replaced, and of what replaces it.
    """

    packs: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    objects: int = 0
    dropped: int = 0
    damaged: tuple[str, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0


def packs_holding(store: Store, drop: Container[ObjectId]) -> list[str]:
    """Return the names of the packs that hold some of these objects, and of those without a sound index."""
    packs = _database(store).packs
    found: list[str] = []
    with store.mutex:
        packs.refresh()
        for name in packs.names():
            packed = packs.get(name)
            try:
                if packed is not None and any(oid in drop for oid in packed.index.in_order()):
                    found.append(name)
            except errors.CorruptIndexError:
                found.append(name)
    return found


def rewrite_packs(
    store: Store,
    names: Iterable[str],
    drop: Container[ObjectId],
    *,
    level: int = DEFAULT_LEVEL,
    progress: Callable[[int, int], None] | None = None,
) -> Rewritten:
    """Write packs anew without some objects, and remove the old ones; returns what was done.

    The new ones are durable; that the old ones are gone is only when whoever calls syncs their folder.

    Args:
        store: where.
        names: of the packs; `packs_holding` returns those that hold any.
        drop: the objects that go.
        level: how hard to compress, 1 to 19.
        progress: told how many objects were gone through, and of how many.

    Raises:
        StorageError: the disk refuses; nothing is lost, and it can be done again.
    """
    done = write_without(store, names, drop, level=level, progress=progress)
    remove_packs(store, list(done.replaced))
    return done


def write_without(
    store: Store,
    names: Iterable[str],
    drop: Container[ObjectId],
    *,
    level: int = DEFAULT_LEVEL,
    progress: Callable[[int, int], None] | None = None,
) -> Rewritten:
    """Write what packs hold besides some objects into new packs, and leave the old ones; as `rewrite_packs`."""
    packs = _database(store).packs
    names = list(names)
    whole = sum(found.index.objects for found in map(packs.get, names) if found is not None)
    writer = PackWriter(
        store.disk,
        store.layout,
        level=level,
        frame_bytes=DEFAULT_FRAME_BYTES,
        shared_bytes=SHARED_BYTES,
    )
    damaged: list[str] = []
    dropped: set[ObjectId] = set()
    seen = 0
    try:
        for name in names:
            # A damaged pack stays; what was copied of it until it showed is there twice then.
            try:
                for oid, data in objects_of(store, name):
                    seen += 1
                    if oid in drop:
                        dropped.add(oid)
                    else:
                        writer.add(oid, data)
                    if progress is not None:
                        progress(seen, whole)
            except (errors.CorruptPackError, errors.CorruptObjectError):
                damaged.append(name)
        new = writer.finish()
    finally:
        writer.abandon()
    keep_copies(store, new)
    replaced = [name for name in names if name not in damaged and name not in new]
    with store.mutex:
        packs.refresh()
    return Rewritten(
        packs=tuple(new),
        replaced=tuple(replaced),
        objects=writer.object_count,
        dropped=len(dropped),
        damaged=tuple(damaged),
        bytes_before=sum(_size(store, name) for name in replaced),
        bytes_after=sum(_size(store, name) for name in new),
    )


def _database(store: Store) -> ObjectDatabase:
    assert isinstance(store.objects, ObjectDatabase)
    return store.objects


def _size(store: Store, name: str) -> int:
    found = store.disk.stat(store.layout.pack_file(name))
    return 0 if found is None else found.st_size
