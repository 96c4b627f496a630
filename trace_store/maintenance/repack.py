"""Repack: all packs and loose objects into a few large, well compressed packs.

Invariant: every object is kept, reachable or not. Old files are removed only after their replacement is durable,
and a damaged pack stays.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.maintenance.consolidate import git_index, is_tracked, remove_packs
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.pack_rewrite import DEFAULT_LEVEL, write_packs_without
from trace_store.maintenance.seal import seal
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack import MAXIMUM_PACK_BYTES, MAXIMUM_PACK_RAW_BYTES
from trace_store.odb.pack_writer import DEFAULT_FRAME_BYTES, SHARED_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

_FULL_PARTS = 4, 3
"""A pack is full at three quarters of the maximum size."""


@value
class PackReport:
    """Result of a repack.

    Attributes:
        objects: number of objects in the new packs.
        packs: names of the new packs; empty if there was nothing to do.
        replaced: number of packs removed.
        loose: number of loose objects removed.
        bytes_before, bytes_after: size of the replaced and of the new files.
        kept: names of damaged packs.
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
    """Seal, then combine packs and loose objects into as few packs as possible.

    Full packs with the same settings stay. Memory use is 16 MiB of content, half of it being compressed, a table of
    common content, and about 200 bytes per object.

    Args:
        store: the repository.
        level: zstd compression level, 1 to 19.
        frame_bytes: content per frame; smaller frames read faster and compress less.
        progress: receives objects done and total.
        leave: loose objects to leave alone.
        tracked: include packs in the user's git index, which git then stores twice.

    Raises:
        LockedError: another process has held the maintenance lock for a minute.
        StorageError: the disk refuses; nothing is lost.
    """
    seal(store)
    with brief_lock(store, "trace pack"):
        objects = store.objects
        with store.mutex:
            objects.packs.refresh()
        settings = (level, frame_bytes, SHARED_BYTES)
        names = _oldest_first(store, objects.packs.names())
        names = [name for name in names if not _is_settled(objects, name, settings)]
        if not tracked:
            index = git_index(store.disk, store.layout.root)
            names = [name for name in names if index is not None and not is_tracked(index, name)]
        loose = [oid for oid in objects.loose.iterate() if oid not in leave]
        if not loose and (
            not names or (len(names) == 1 and _has_settings(objects, names[0], settings))
        ):
            return PackReport()
        done = write_packs_without(
            store,
            names,
            objects.purged,
            loose=loose,
            level=level,
            frame_bytes=frame_bytes,
            progress=progress,
        )
        remove_packs(store, list(done.replaced))
        for oid in done.loose:
            objects.loose.remove(oid)
    return PackReport(
        done.objects,
        done.packs,
        len(done.replaced),
        len(done.loose),
        done.bytes_before,
        done.bytes_after,
        done.damaged,
    )


def _has_settings(objects: ObjectDatabase, name: str, settings: tuple[int, int, int]) -> bool:
    packed = objects.packs.get(name)
    return packed is not None and packed.pack.made == settings


def _is_settled(objects: ObjectDatabase, name: str, settings: tuple[int, int, int]) -> bool:
    """Return True if rewriting a pack would gain nothing."""
    packed = objects.packs.get(name)
    if packed is None or packed.pack.made != settings:
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
    stats = ((store.disk.stat(store.layout.pack_file(name)), name) for name in names)
    return [n for _, n in sorted((s.st_mtime_ns, name) for s, name in stats if s is not None)]
