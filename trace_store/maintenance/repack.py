"""Repack: all packs and loose objects into a few large, well compressed packs.

Invariant: every object is kept, reachable or not. Old files are removed only after their replacement is durable,
and a damaged pack stays.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.maintenance.consolidate import (
    file_size,
    git_index,
    is_tracked,
    objects_of,
    remove_packs,
)
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.reachability_memory import KnownReachable, load_known, save_known
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import keep_copies
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.index_scan import ids_in_several
from trace_store.odb.pack import (
    MAXIMUM_PACK_BYTES,
    MAXIMUM_PACK_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
)
from trace_store.odb.pack_writer import DEFAULT_FRAME_BYTES, SHARED_BYTES, PackWriter
from trace_store.store.store import Store

DEFAULT_LEVEL = 10
"""Higher levels take half as long again for one percent, then several times as long."""


@value
class RewriteReport:
    """Result of a rewrite.

    Attributes:
        packs: names of the new, durable packs.
        replaced: names of packs that can be removed.
        loose: loose objects that can be removed.
        added: those of them that are in the new packs, since no other pack had them.
        objects: number of objects in the new packs.
        damaged: names of damaged packs, which are not counted.
        bytes_before, bytes_after: size of the replaced and of the new files.
    """

    packs: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    loose: tuple[ObjectId, ...] = ()
    added: tuple[ObjectId, ...] = ()
    objects: int = 0
    damaged: tuple[str, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0


def packs_holding(store: Store, drop: Container[bytes]) -> list[str]:
    """Return packs that hold any of these objects, or lack a sound index."""
    packs = store.objects.packs
    holding: list[str] = []
    with store.mutex:
        packs.refresh()
        for name in packs.names():
            packed = packs.get(name)
            try:
                if packed is not None and any(oid in drop for oid in packed.index.in_order()):
                    holding.append(name)
            except errors.CorruptIndexError:
                holding.append(name)
    return holding


def rewrite_packs(store: Store, names: Iterable[str], drop: Container[bytes]) -> RewriteReport:
    """Rewrite packs without some objects and remove the old ones.

    The new packs are durable; the caller syncs the folder to make the removal durable.

    Args:
        store: the repository.
        names: packs to rewrite, as `packs_holding` returns them.
        drop: objects to leave out.

    Raises:
        StorageError: a write failed; nothing is lost, and the rewrite can be repeated.
    """
    done = write_packs_without(store, names, drop)
    remove_packs(store, list(done.replaced))
    return done


def write_packs_without(
    store: Store,
    names: Iterable[str],
    drop: Container[bytes],
    *,
    loose: Sequence[ObjectId] = (),
    level: int = DEFAULT_LEVEL,
    frame_bytes: int = DEFAULT_FRAME_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> RewriteReport:
    """Write new packs without some objects and leave the old ones.

    Args:
        store: the repository.
        names: packs to rewrite.
        drop: objects to leave out.
        loose: loose objects to write as well.
        level: zstd compression level, 1 to 19.
        frame_bytes: content per frame.
        progress: receives objects done and total.

    Raises:
        StorageError: a write failed; nothing is lost, and the rewrite can be repeated.
    """
    database = store.objects
    packs, names = database.packs, list(names)
    whole = sum(packed.index.objects for packed in map(packs.get, names) if packed is not None)
    whole += len(loose)
    writer = PackWriter(
        store.disk, store.layout, level=level, frame_bytes=frame_bytes, shared_bytes=SHARED_BYTES
    )
    damaged: list[str] = []
    copied: list[ObjectId] = []
    added: list[ObjectId] = []
    seen = 0
    opened = [packed for packed in map(packs.get, names) if packed is not None]
    # An index may be wrong, so that an object is left out only after it was written.
    copies = dict.fromkeys(ids_in_several([packed.index for packed in opened]), False)
    try:
        for name in names:
            # A damaged pack stays; objects copied before the damage are then duplicates.
            try:
                for oid, data in objects_of(store, name):
                    seen += 1
                    if oid not in drop and not copies.get(oid):
                        writer.add(oid, data)
                        if oid in copies:
                            copies[oid] = True
                    if progress is not None:
                        progress(seen, whole)
            except (errors.CorruptPackError, errors.CorruptObjectError):
                damaged.append(name)
        for oid in loose:
            seen += 1
            if progress is not None:
                progress(seen, whole)
            try:
                content = database.loose.read(oid)
            except errors.CorruptObjectError:
                continue
            if content is not None and oid not in drop:
                if not database.is_packed(oid):
                    writer.add(oid, content)
                    added.append(oid)
                copied.append(oid)
        new = writer.finish()
    finally:
        writer.discard()
    keep_copies(store, new)  # in case `git clean`, for example, removes the packs
    replaced = [name for name in names if name not in damaged and name not in new]
    with store.mutex:
        packs.refresh()
    layout = store.layout
    old = [*map(layout.pack_file, replaced), *(layout.loose_file(oid.hex()) for oid in copied)]
    return RewriteReport(
        packs=tuple(new),
        replaced=tuple(replaced),
        loose=tuple(copied),
        added=tuple(added),
        objects=writer.object_count,
        damaged=tuple(damaged),
        bytes_before=sum(file_size(store.disk, path) for path in old),
        bytes_after=sum(file_size(store.disk, layout.pack_file(name)) for name in new),
    )


def known_after(
    store: Store, known: KnownReachable, names: Iterable[str], done: RewriteReport
) -> KnownReachable:
    """Return what is known to be reachable after a rewrite of packs, before the old ones are removed."""
    names = [*names]
    if known.packs.isdisjoint(names):
        return known
    packs = store.objects.packs
    unknown = [name for name in names if name not in known.packs]
    sources = [packed for packed in map(packs.get, unknown) if packed is not None]
    ids = {oid for packed in sources for oid in packed.index.in_order()}.union(done.added)
    copies = known.among(packs, ids)
    is_sound = len(sources) == len(unknown) and all(packed.index.verify() for packed in sources)
    if copies is None or not is_sound:
        return KnownReachable(left=known.left)
    return known.after_rewrite(done.replaced, done.packs, ids - copies)


_FULL_PARTS = 4, 3
"""A pack is full at three quarters of the maximum size, content, or number of objects."""
PROGRESSION = 2
"""A pack stays if it is this many times as large as all smaller ones together."""


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
    level: int | None = None,
    frame_bytes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    leave: Container[ObjectId] = frozenset(),
    tracked: bool = True,
) -> PackReport:
    """Seal, then combine packs and loose objects, as `Maintenance.pack` describes it.

    Memory use is 16 MiB of content, half of it being compressed, a table of common content, and about 300 bytes per
    object of one pack.

    Args:
        store: the repository.
        level: zstd compression level. If given, packs that a repack wrote with another level are written again.
        frame_bytes: content per frame; the same.
        progress: receives objects done and total.
        leave: loose objects to leave alone.
        tracked: include packs in the user's git index, which git then stores twice.
    """
    seal(store)
    with brief_lock(store, "trace pack"):
        objects = store.objects
        with store.mutex:
            objects.packs.refresh()
        loose = [oid for oid in objects.loose.iterate() if oid not in leave]
        names = _to_combine(store, (level, frame_bytes), tracked, len(loose))
        if not names and not loose:
            return PackReport()
        done = write_packs_without(
            store,
            names,
            objects.purged,
            loose=loose,
            level=level or DEFAULT_LEVEL,
            frame_bytes=frame_bytes or DEFAULT_FRAME_BYTES,
            progress=progress,
        )
        save_known(store, known_after(store, load_known(store), names, done))
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


Settings: TypeAlias = tuple[int | None, int | None]
"""The wanted level and content per frame; None if any will do."""


def _to_combine(store: Store, settings: Settings, tracked: bool, loose: int) -> list[str]:
    """Return the packs to combine, oldest first.

    All with other settings, and as many of the smallest others as it takes that each remaining one is PROGRESSION times
    as large as all that is smaller. So a byte is written again only when the content has multiplied.
    """
    objects = store.objects
    names = [name for name in objects.packs.names() if not _is_settled(objects, name, settings)]
    if not tracked:
        index = git_index(store.disk, store.layout.root)
        names = [name for name in names if index is not None and not is_tracked(index, name)]
    sizes = {name: file_size(store.disk, store.layout.pack_file(name)) for name in names}
    made = sorted((n for n in names if _has_settings(objects, n, settings)), key=sizes.__getitem__)
    chosen = [name for name in names if name not in made]
    smaller, combined = sum(sizes[name] for name in chosen) + loose, 0
    for count, name in enumerate(made, 1):
        if sizes[name] < PROGRESSION * smaller:
            combined = count
        smaller += sizes[name]
    return _oldest_first(store, chosen + made[:combined])


def _has_settings(objects: ObjectDatabase, name: str, settings: Settings) -> bool:
    packed = objects.packs.get(name)
    if packed is None:
        return False
    *made, shared = packed.pack.made
    return shared == SHARED_BYTES and all(
        wanted in (None, actual) for wanted, actual in zip(settings, made, strict=True)
    )


def _is_settled(objects: ObjectDatabase, name: str, settings: Settings) -> bool:
    """Return True if rewriting a pack would gain nothing."""
    packed = objects.packs.get(name)
    if packed is None or not _has_settings(objects, name, settings):
        return False
    whole, part = _FULL_PARTS
    if packed.pack.size * whole >= MAXIMUM_PACK_BYTES * part:
        return True
    if packed.index.objects * whole >= MAXIMUM_PACK_OBJECTS * part:
        return True
    try:
        content = sum(place.raw for place in packed.pack.places())
    except errors.CorruptPackError:
        return False
    return content * whole >= MAXIMUM_PACK_RAW_BYTES * part


def _oldest_first(store: Store, names: list[str]) -> list[str]:
    stats = ((store.disk.stat(store.layout.pack_file(name)), name) for name in names)
    return [n for _, n in sorted((s.st_mtime_ns, name) for s, name in stats if s is not None)]
