"""Writing packs anew without some of their objects: what removal from packs is, whoever asks for it.

Rule: what stays stands in a durable pack, under its name and with its index, before the pack that it was in goes. So it
may be interrupted anywhere and begun again. Frames are compressed afresh: a frame may have another for its dictionary,
and nothing of what is dropped may stay in one. A pack that cannot be read to its end is left as it is.

Callers hold the lock that seal and pack share.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.maintenance.consolidate import objects_of, remove_packs
from trace_store.maintenance.second_copies import keep_copies
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack_writer import DEFAULT_FRAME_BYTES, SHARED_BYTES, PackWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

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
