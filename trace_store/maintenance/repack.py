"""Packing: all packs and loose objects become a few large, well compressed packs.

Rule: every object is kept, reachable or not. What is replaced is removed only after its replacement is durable, and
a pack that cannot be read to its end stays as it is.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.maintenance.consolidate import git_index, is_in, objects_of, remove_packs
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import keep_copies
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack import MAXIMUM_PACK_BYTES, MAXIMUM_PACK_RAW_BYTES
from trace_store.odb.pack_writer import DEFAULT_FRAME_BYTES, SHARED_BYTES, PackWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

DEFAULT_LEVEL = 10
"""Beyond it, packing takes half as long again for a hundredth less, and then several times as long."""
_FULL_PARTS = 4, 3
"""A pack is full when it has three quarters of what one may have."""


@value
class PackReport:
    """What packing did.

    Attributes:
        objects: how many stand in the new packs.
        packs: the names of the new packs; none when there was nothing to do.
        replaced: how many packs went.
        loose: how many loose objects went.
        bytes_before, bytes_after: size of what was replaced, and of what replaced it.
        kept: the names of packs that could not be read to their end.
    """

    objects: int = 0
    packs: tuple[str, ...] = ()
    replaced: int = 0
    loose: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    kept: tuple[str, ...] = ()


def pack(
    store: Store,
    *,
    level: int = DEFAULT_LEVEL,
    frame_bytes: int = DEFAULT_FRAME_BYTES,
    progress: Callable[[int, int], None] | None = None,
    leave: Container[ObjectId] = frozenset(),
    tracked: bool = True,
) -> PackReport:
    """Seal, then fold all packs and loose objects into as few packs as they fit.

    Packs that are full, and made as this would make them, stay as they are. Memory holds 16 MiB of content, of
    which half is being compressed, what is needed to find what it has in common, and some two hundred bytes an object.

    Args:
        store: what to pack.
        level: how hard to compress, 1 to 19.
        frame_bytes: how much content to put into a frame: with less, an object is read sooner, and packs are larger.
        progress: told how many objects were gone through, and of how many.
        leave: loose objects that stay as they are.
        tracked: whether packs that are in the index of the user's git are folded too; it would have the same bytes
            twice in its history then.

    Raises:
        LockedError: another process has been sealing or packing for a minute.
        StorageError: the disk refuses; nothing is lost.
    """
    if not isinstance(store.objects, ObjectDatabase):
        return PackReport()
    seal(store)
    with brief_lock(store, "trace pack"):
        objects = store.objects
        with store.mutex:
            objects.packs.refresh()
        made = (level, frame_bytes, SHARED_BYTES)
        names = _oldest_first(store, objects.packs.names())
        names = [name for name in names if not _is_settled(objects, name, made)]
        if not tracked:
            index = git_index(store.disk, store.layout.root)
            names = [name for name in names if index is not None and not is_in(index, name)]
        loose = [oid for oid in objects.loose.iterate() if oid not in leave]
        if not loose and (not names or (len(names) == 1 and _is_made(objects, names[0], made))):
            return PackReport()
        writer = PackWriter(
            store.disk,
            store.layout,
            level=level,
            frame_bytes=frame_bytes,
            shared_bytes=SHARED_BYTES,
        )
        return _rewrite(store, objects, names, loose, writer, progress)


def _rewrite(
    store: Store,
    objects: ObjectDatabase,
    names: list[str],
    loose: list[ObjectId],
    writer: PackWriter,
    progress: Callable[[int, int], None] | None,
) -> PackReport:
    written = seen = 0
    purged = objects.purged
    whole = len(loose) + sum(
        found.index.objects for found in map(objects.packs.get, names) if found
    )
    kept: list[str] = []
    packed: list[ObjectId] = []
    try:
        for name in names:
            try:
                for oid, data in objects_of(store, name):
                    if oid not in purged:
                        written += writer.add(oid, data)
                    seen += 1
                    if progress is not None:
                        progress(seen, whole)
            except (errors.CorruptPackError, errors.CorruptObjectError):
                kept.append(name)
        for oid in loose:
            try:
                content = objects.loose.read(oid)
            except errors.CorruptObjectError:
                continue
            if content is not None and oid not in purged:
                written += writer.add(oid, content)
                packed.append(oid)
        new = writer.finish()
    finally:
        writer.abandon()
    keep_copies(store, new)
    gone = [name for name in names if name not in kept and name not in new]
    before = sum(_size(store, store.layout.pack_file(name)) for name in gone)
    before += sum(_size(store, store.layout.loose_file(oid.hex())) for oid in packed)
    after = sum(_size(store, store.layout.pack_file(name)) for name in new)
    remove_packs(store, gone)
    for oid in packed:
        objects.loose.remove(oid)
    with store.mutex:
        objects.packs.refresh()
    return PackReport(written, tuple(new), len(gone), len(packed), before, after, tuple(kept))


def _is_made(objects: ObjectDatabase, name: str, made: tuple[int, int, int]) -> bool:
    packed = objects.packs.get(name)
    return packed is not None and packed.pack.made == made


def _is_settled(objects: ObjectDatabase, name: str, made: tuple[int, int, int]) -> bool:
    """Tell whether nothing is won by writing a pack again."""
    packed = objects.packs.get(name)
    if packed is None or packed.pack.made != made:
        return False
    whole, part = _FULL_PARTS
    if packed.pack.size * whole >= MAXIMUM_PACK_BYTES * part:
        return True
    try:
        content = sum(place.raw for place in packed.pack.places())
    except errors.CorruptPackError:
        return False
    return content * whole >= MAXIMUM_PACK_RAW_BYTES * part


def _oldest_first(store: Store, names: list[str]) -> list[str]:
    found = ((store.disk.stat(store.layout.pack_file(name)), name) for name in names)
    return [n for _, n in sorted((s.st_mtime_ns, name) for s, name in found if s is not None)]


def _size(store: Store, path: str) -> int:
    found = store.disk.stat(path)
    return 0 if found is None else found.st_size
