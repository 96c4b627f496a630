"""fsck: read every byte, verify every hash, follow every link.

Invariant: damage is reported, never raised, and nothing is changed. Codes are stable: the list only grows.
"""

from __future__ import annotations

from functools import partial

from trace_store import errors, maintenance, odb
from trace_store.files import read_file
from trace_store.layout import ATTRIBUTES, IGNORED, INDEX_SUFFIX, PACK_SUFFIX
from trace_store.maintenance.fsck_journal import check_journals
from trace_store.maintenance.fsck_objects import ERROR, INFO, WARNING, Finding, ObjectChecks
from trace_store.maintenance.fsck_refs import check_refs, roots
from trace_store.maintenance.pack_proofs import prove
from trace_store.objects.codec import is_content
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack import Pack, walk_objects
from trace_store.odb.pack_index import PackIndex
from trace_store.odb.packs import pack_names
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trace_store.store.handle import Store


_HEAD_BYTES = 4096


def check_packs(store: Store, database: ObjectDatabase, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield the problems of packs, checking their objects."""
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
                continue  # consolidated meanwhile
            pack = Pack(store.disk, store.layout.pack_file(name), name, fd)
        except (errors.FormatError, errors.StorageError) as error:
            yield Finding("pack-damaged", ERROR, what, _with_explanation(store, name, str(error)))
            continue
        try:
            if not pack.check_name():
                detail = "hash mismatch with its name or trailer"
                detail = _with_explanation(store, name, detail)
                yield Finding("pack-damaged", ERROR, what, detail)
            proof = proofs.pop(name, None)
            if proof is None:
                yield from _check_pack(store, pack, what, objects)
            else:
                reread = partial(_named_objects, store, name)
                objects.add_proven(proof.oids, proof.commits, proof.named, reread)
        finally:
            pack.close()


def _with_explanation(store: Store, name: str, detail: str) -> str:
    """Add an explanation of a pack's damage if its head shows one."""
    fd = store.disk.open(store.layout.pack_file(name))
    if fd is None:
        return detail
    try:
        return maintenance.repair_files.with_explanation(
            detail, store.disk.read_at(fd, 0, _HEAD_BYTES)
        )
    finally:
        store.disk.close(fd)


def _check_pack(store: Store, pack: Pack, what: str, objects: ObjectChecks) -> Iterator[Finding]:
    places: dict[ObjectId, tuple[int, int]] = {}
    count = frames = 0
    try:
        for number, _, contents in walk_objects(pack):
            frames += 1
            if isinstance(contents, errors.CorruptObjectError):
                yield Finding("pack-frame-damaged", ERROR, what, f"frame {number}: {contents}")
                continue
            for oid, offset, data in contents:
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
    """Yield (id, bytes) of the objects of a sound pack."""
    path = store.layout.pack_file(name)
    fd = store.disk.open(path)
    if fd is None:
        return
    pack = Pack(store.disk, path, name, fd)
    try:
        for _, _, contents in walk_objects(pack):
            if not isinstance(contents, errors.CorruptObjectError):
                yield from ((oid, data) for oid, _, data in contents)
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
        return  # rebuilt on demand
    try:
        index = PackIndex(
            lambda at, size: store.disk.read_at(fd, at, size), store.disk.size(fd), pack
        )
        if not index.verify():
            yield Finding("pack-index-damaged", WARNING, what, "checksum mismatch")
            return
        entries = index.entries()
        if entries is None or not places.items() <= entries.items():
            yield Finding("pack-index-damaged", WARNING, what, "it does not list every object")
            return
        for oid in entries.keys() - places.keys() if len(entries) > len(places) else ():
            detail = f"cannot read its bytes in pack {pack.name[:12]}"
            yield Finding("object-damaged", ERROR, oid.hex(), detail)
    except errors.CorruptIndexError as error:
        yield Finding("pack-index-damaged", WARNING, what, str(error))
    finally:
        store.disk.close(fd)


__all__ = ["ERROR", "INFO", "WARNING", "Finding", "fsck"]


def fsck(store: Store, *, also: Iterable[Callable[[], Iterable[Finding]]] = ()) -> list[Finding]:
    """Check a repository and return the findings, errors first.

    Args:
        store: the repository.
        also: additional checks of derived files.
    """
    findings: list[Finding] = []
    objects = ObjectChecks()
    database = store.objects
    damaged: dict[ObjectId, str] = {}
    steps: list[Callable[[], Iterable[Finding]]] = [
        lambda: _check_root(store),
        lambda: check_journals(store, objects),
        lambda: check_packs(store, database, objects),
        lambda: _check_loose(database, objects, damaged),
        lambda: maintenance.loose_damage.damaged_loose(store, objects, damaged) if damaged else (),
        lambda: _check_purged(store, database, objects),
        lambda: check_refs(store, objects),
        lambda: objects.missing(roots(store), store.objects.purged),
        *also,
    ]
    for step in steps:
        try:
            findings.extend(step())
        except errors.TraceError as error:
            findings.append(Finding("check-failed", ERROR, "fsck", str(error)))
    order = {ERROR: 0, WARNING: 1, INFO: 2}
    return sorted(dict.fromkeys(findings), key=lambda f: (order[f.severity], f.code, f.what))


def _check_root(store: Store) -> Iterator[Finding]:
    for path, content in (
        (store.layout.ignore_file, IGNORED),
        (store.layout.attributes_file, ATTRIBUTES),
    ):
        data = read_file(store.disk, path, limit=1 << 20)
        name = path.rpartition("/")[2]
        if data is None:
            yield Finding("root-file-missing", WARNING, name, "git may convert or skip files")
        elif data.replace(b"\r\n", b"\n") != content.encode():
            detail = maintenance.repair_files.with_explanation(
                "differs from what `init` writes", data
            )
            yield Finding("root-file-changed", INFO, name, detail)


def _check_loose(
    database: ObjectDatabase, objects: ObjectChecks, damaged: dict[ObjectId, str]
) -> Iterator[Finding]:
    """Check loose objects; add damaged ones to `damaged` with the reason."""
    for stray in database.loose.stray_names():
        yield Finding("object-stray-file", WARNING, f"objects/{stray}", "not an object")
    for oid in database.loose.iterate():
        try:
            data = database.loose.read(oid)
        except errors.TraceError as error:
            damaged[oid] = str(error)
            continue
        if data is not None:
            yield from objects.check(oid, data, "a loose file")


def _check_purged(
    store: Store, database: ObjectDatabase, objects: ObjectChecks
) -> Iterator[Finding]:
    database.refresh()
    if not store.disk.exists(store.layout.tombstones_dir):
        return
    for name in database.tombstones.invalid_files():
        yield Finding("tombstone-unreadable", WARNING, f"tombstones/{name}", "unreadable tombstone")
    for oid in sorted(database.purged):
        tombstone = database.tombstones.find(oid)
        if oid in objects.present:
            detail = "its bytes are back, but are not served"
            yield Finding("purged-object-present", WARNING, oid.hex(), detail)
        elif tombstone is not None:
            who = f" by {tombstone.by}" if tombstone.by else ""
            yield Finding("object-purged", INFO, oid.hex(), f"{tombstone.placeholder[1:-1]}{who}")
    if database.purged_texts:
        for purged in objects.present - database.purged:
            data = database.read(purged)
            if is_content(data) and odb.tombstones.find_purged_texts(
                {ObjectId(purged): data}, database.purged_texts
            ):
                detail = "it contains purged text and came with a pack from elsewhere"
                yield Finding("purged-object-present", WARNING, purged.hex(), detail)
