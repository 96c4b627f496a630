"""Checks of packs and their indexes."""

from __future__ import annotations

from functools import partial

from trace_store import errors, maintenance
from trace_store.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.maintenance.findings import ERROR, INFO, WARNING, Finding
from trace_store.maintenance.proving_together import prove
from trace_store.odb.pack import Pack
from trace_store.odb.pack_index import PackIndex
from trace_store.odb.pack_walk import walk_objects
from trace_store.odb.packs import pack_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.maintenance.object_checks import ObjectChecks
    from trace_store.odb import ObjectDatabase
    from trace_store.oid import ObjectId
    from trace_store.store import Store

_BEGINNING_BYTES = 4096


def check_packs(store: Store, database: ObjectDatabase, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield what is wrong with the packs; their objects are checked along the way."""
    names = set(pack_names(store.disk, store.layout))
    for file in store.disk.names(store.layout.pack_dir):
        stem, dot, suffix = file.rpartition(".")
        if dot + suffix == INDEX_SUFFIX and stem in names:
            continue
        if dot + suffix != PACK_SUFFIX or stem not in names:
            severity = INFO if dot + suffix == INDEX_SUFFIX else WARNING
            yield Finding("pack-stray-file", severity, f"objects/pack/{file}", "belongs to no pack")
    proofs = prove(store.disk, store.layout, sorted(names))
    for name in sorted(names):
        what = f"objects/pack/{name}{PACK_SUFFIX}"
        try:
            fd = store.disk.open(store.layout.pack_file(name))
            if fd is None:
                continue  # folded into another one meanwhile
            pack = Pack(store.disk, store.layout.pack_file(name), name, fd)
        except (errors.FormatError, errors.StorageError) as error:
            yield Finding("pack-damaged", ERROR, what, _explained(store, name, str(error)))
            continue
        try:
            if not pack.check_name():
                detail = "its bytes have another hash than its name or trailer"
                detail = _explained(store, name, detail)
                yield Finding("pack-damaged", ERROR, what, detail)
            proof = proofs.pop(name, None)
            if proof is None:
                yield from _check_pack(store, pack, what, objects)
            else:
                again = partial(_named_objects, store, name)
                objects.take_over(proof.oids, proof.commits, proof.named, again)
        finally:
            pack.close()


def _explained(store: Store, name: str, detail: str) -> str:
    """Return what is wrong with a pack, with what another program did to it where its beginning tells."""
    fd = store.disk.open(store.layout.pack_file(name))
    if fd is None:
        return detail
    try:
        return maintenance.with_explanation(detail, store.disk.read_at(fd, 0, _BEGINNING_BYTES))
    finally:
        store.disk.close(fd)


def _check_pack(store: Store, pack: Pack, what: str, objects: ObjectChecks) -> Iterator[Finding]:
    places: dict[ObjectId, tuple[int, int]] = {}
    count = frames = 0
    try:
        for number, _, found in walk_objects(pack):
            frames += 1
            if isinstance(found, errors.CorruptObjectError):
                yield Finding("pack-frame-damaged", ERROR, what, f"frame {number}: {found}")
                continue
            for oid, offset, data in found:
                places.setdefault(oid, (number, offset))
                count += 1
                yield from objects.check(oid, data, "a pack")
    except errors.FormatError as error:
        yield Finding("pack-damaged", ERROR, what, str(error))
    if (frames, count) != (pack.frame_count, pack.object_count):
        detail = f"{count} readable objects in {frames} frames, not {pack.object_count} in {pack.frame_count}"
        yield Finding("pack-damaged", ERROR, what, detail)
    yield from _check_index(store, pack, places)


def _named_objects(store: Store, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield (id, bytes) of the objects of a pack that was found to be in order."""
    path = store.layout.pack_file(name)
    fd = store.disk.open(path)
    if fd is None:
        return
    pack = Pack(store.disk, path, name, fd)
    try:
        for _, _, found in walk_objects(pack):
            if not isinstance(found, errors.CorruptObjectError):
                yield from ((oid, data) for oid, _, data in found)
    finally:
        pack.close()


def _check_index(
    store: Store, pack: Pack, places: dict[ObjectId, tuple[int, int]]
) -> Iterator[Finding]:
    path = store.layout.pack_index_file(pack.name)
    what = f"objects/pack/{pack.name}{INDEX_SUFFIX}"
    try:
        fd = store.disk.open(path)
    except errors.StorageError as error:
        yield Finding("pack-index-damaged", WARNING, what, str(error))
        return
    if fd is None:
        return  # made again when it is needed
    try:
        index = PackIndex(
            lambda at, size: store.disk.read_at(fd, at, size), store.disk.size(fd), pack
        )
        if not index.verify():
            yield Finding("pack-index-damaged", WARNING, what, "its checksum is wrong")
            return
        entries = index.entries()
        if entries is None or not places.items() <= entries.items():
            yield Finding("pack-index-damaged", WARNING, what, "it does not lead to every object")
            return
        for oid in entries.keys() - places.keys() if len(entries) > len(places) else ():
            detail = f"its bytes in pack {pack.name[:12]} cannot be read"
            yield Finding("object-damaged", ERROR, oid.hex(), detail)
    except errors.CorruptIndexError as error:
        yield Finding("pack-index-damaged", WARNING, what, str(error))
    finally:
        store.disk.close(fd)
