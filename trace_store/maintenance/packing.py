"""Packing: all packs and loose objects become a few large, well compressed packs.

Rule: every object is kept, reachable or not. What is replaced is removed only after its replacement is durable, and
a pack that cannot be read to its end stays as it is.
"""

from __future__ import annotations

from trace_store.errors import CorruptObjectError, CorruptPackError
from trace_store.maintenance.folding import objects_of, remove_packs
from trace_store.maintenance.locking import OperationLock
from trace_store.maintenance.sealing import seal
from trace_store.odb import ObjectDatabase, PackWriter
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.oid import ObjectId
    from trace_store.store import Store

DEFAULT_LEVEL = 12


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


def pack(store: Store, *, level: int = DEFAULT_LEVEL) -> PackReport:
    """Seal, then fold all packs and loose objects into as few packs as they fit.

    Raises:
        LockedError: another process has been sealing or packing for a minute.
        StorageError: the disk refuses; nothing is lost.
    """
    if not isinstance(store.objects, ObjectDatabase):
        return PackReport()
    seal(store)
    with OperationLock(store):
        objects = store.objects
        with store.mutex:
            objects.packs.refresh()
        names = _oldest_first(store, objects.packs.names())
        loose = list(objects.loose.iterate())
        if len(names) < 2 and not loose:
            return PackReport()
        return _rewrite(store, objects, names, loose, level)


def _rewrite(
    store: Store, objects: ObjectDatabase, names: list[str], loose: list[ObjectId], level: int
) -> PackReport:
    writer = PackWriter(store.disk, store.layout, level=level)
    written = 0
    kept: list[str] = []
    packed: list[ObjectId] = []
    try:
        for name in names:
            try:
                for oid, data in objects_of(store, name):
                    written += writer.add(oid, data)
            except (CorruptPackError, CorruptObjectError):
                kept.append(name)
        for oid in loose:
            try:
                content = objects.loose.read(oid)
            except CorruptObjectError:
                continue
            if content is not None:
                written += writer.add(oid, content)
                packed.append(oid)
        new = writer.finish()
    finally:
        writer.abandon()
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


def _oldest_first(store: Store, names: list[str]) -> list[str]:
    found = ((store.disk.stat(store.layout.pack_file(name)), name) for name in names)
    return [n for _, n in sorted((s.st_mtime_ns, name) for s, name in found if s is not None)]


def _size(store: Store, path: str) -> int:
    found = store.disk.stat(path)
    return 0 if found is None else found.st_size
