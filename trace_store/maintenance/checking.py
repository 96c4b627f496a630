"""Checking everything: every byte is read, every hash computed again, every link followed.

Rule: damage is reported, never raised, and nothing is changed. The codes are stable: the list only grows.
"""

from __future__ import annotations

from trace_store import errors, maintenance, odb
from trace_store.files import read_file
from trace_store.layout import ATTRIBUTES, IGNORED
from trace_store.maintenance.findings import ERROR, INFO, WARNING, Finding
from trace_store.maintenance.journal_checks import check_journals
from trace_store.maintenance.object_checks import ObjectChecks
from trace_store.maintenance.pack_checks import check_packs
from trace_store.maintenance.ref_checks import check_refs, roots
from trace_store.objects.codec import is_content
from trace_store.odb import ObjectDatabase
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trace_store.store import Store

__all__ = ["ERROR", "INFO", "WARNING", "Finding", "fsck"]


def fsck(store: Store, *, also: Iterable[Callable[[], Iterable[Finding]]] = ()) -> list[Finding]:
    """Check a repository and return what was found, errors first; nothing when all is well.

    Args:
        store: what to check.
        also: further checks, of derived files that upper floors keep.
    """
    found: list[Finding] = []
    objects = ObjectChecks()
    steps: list[Callable[[], Iterable[Finding]]] = []
    if isinstance(store.objects, ObjectDatabase):
        database = store.objects
        damaged: dict[ObjectId, str] = {}
        steps = [
            lambda: _check_root(store),
            lambda: check_journals(store, objects),
            lambda: check_packs(store, database, objects),
            lambda: _check_loose(database, objects, damaged),
            lambda: maintenance.damaged_loose(store, objects, damaged) if damaged else (),
            lambda: _check_purged(store, database, objects),
        ]
    else:
        steps = [lambda: _check_memory(store, objects)]
    steps += [
        lambda: check_refs(store, objects),
        lambda: objects.missing(roots(store), store.objects.purged),
        *also,
    ]
    for step in steps:
        try:
            found.extend(step())
        except errors.TraceError as error:
            found.append(Finding("check-failed", ERROR, "fsck", str(error)))
    order = {ERROR: 0, WARNING: 1, INFO: 2}
    return sorted(dict.fromkeys(found), key=lambda f: (order[f.severity], f.code, f.what))


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
            detail = maintenance.with_explanation("differs from what `init` writes", data)
            yield Finding("root-file-changed", INFO, name, detail)


def _check_memory(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    for oid in store.objects.iterate():
        yield from objects.check(oid, store.objects.read(oid), "memory")


def _check_loose(
    database: ObjectDatabase, objects: ObjectChecks, damaged: dict[ObjectId, str]
) -> Iterator[Finding]:
    """Check loose objects; take note of those whose files are damaged, and why."""
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
    for name in database.tombstones.faults():
        yield Finding("tombstone-unreadable", WARNING, f"tombstones/{name}", "nobody can tell why")
    for oid in sorted(database.purged):
        found = database.tombstones.find(oid)
        if oid in objects.present:
            detail = "its bytes are here again, and nobody is given them"
            yield Finding("purged-object-present", WARNING, oid.hex(), detail)
        elif found is not None:
            who = f" by {found.by}" if found.by else ""
            yield Finding("object-purged", INFO, oid.hex(), f"{found.placeholder[1:-1]}{who}")
    if database.purged_texts:
        for purged in objects.present - database.purged:
            data = database.read(purged)
            if is_content(data) and odb.holding({ObjectId(purged): data}, database.purged_texts):
                detail = "it holds a text that was purged, and came with a pack of others"
                yield Finding("purged-object-present", WARNING, purged.hex(), detail)
