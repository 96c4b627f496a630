"""Checking everything: every byte is read, every hash computed again, every link followed.

Rule: damage is reported, never raised, and nothing is changed. The codes are stable: the list only grows.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.files import read_file
from trace_store.journal import Fold
from trace_store.layout import ATTRIBUTES, IGNORED
from trace_store.maintenance.findings import ERROR, INFO, WARNING, Finding
from trace_store.maintenance.object_checks import ObjectChecks
from trace_store.maintenance.pack_checks import check_packs
from trace_store.odb import ObjectDatabase
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES, RefDatabase

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
        steps = [
            lambda: _check_root(store),
            lambda: _check_journals(store, objects),
            lambda: check_packs(store, database, objects),
            lambda: _check_loose(store, database, objects),
        ]
    else:
        steps = [lambda: _check_memory(store, objects)]
    steps += [lambda: _check_refs(store, objects), lambda: objects.missing(_roots(store)), *also]
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
            yield Finding("root-file-changed", INFO, name, "differs from what `init` writes")


def _check_memory(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    for oid in store.objects.iterate():
        yield from objects.check(oid, store.objects.read(oid), "memory")


def _check_journals(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    with store.mutex:
        journal = store.journal
        journal.refresh()
        files = list(journal.files)
        journal.published.tips.all()
        if journal.published.damaged or journal.published.tips.lacking:
            yield Finding("published-unreadable", WARNING, "local/published", "taken as absent")
    for file in files:
        name = f"journal/{file.number}"
        for kind in file.unknown_kinds():
            detail = f"lasting frames of kind {kind}, from a newer version"
            yield Finding("journal-unknown-frame", WARNING, name, detail)
        for frame in file.frames:
            for oid, offset, size in frame.objects:
                data = journal.read_from(file, offset, size)
                yield from objects.check_named(oid, data, name)
        rest = store.disk.size(file.fd) - file.end
        if rest > 0 and not file.closed and not file.is_free_behind(store.disk):
            detail = f"{rest} bytes after the last whole frame have no effect"
            yield Finding("journal-tail", INFO, name, detail)
    fold = Fold()
    for file in files:
        for frame in file.transactions():
            if frame.moves and not fold.apply(frame):
                names = ", ".join(sorted({move.name for move in frame.moves}))
                detail = f"a move of {names} expected another value"
                yield Finding("journal-move-without-effect", INFO, f"journal/{file.number}", detail)


def _check_loose(
    store: Store, database: ObjectDatabase, objects: ObjectChecks
) -> Iterator[Finding]:
    for stray in database.loose.stray_names():
        yield Finding("object-stray-file", WARNING, f"objects/{stray}", "not an object")
    for oid in database.loose.iterate():
        try:
            data = database.loose.read(oid)
        except errors.TraceError as error:
            yield Finding("object-damaged", ERROR, str(oid), f"loose file: {error}")
            continue
        if data is not None:
            yield from objects.check(oid, data, "a loose file")


def _check_refs(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    try:
        head = store.refs.head()
        if head.ref is None and head.oid is not None and head.oid not in objects.present:
            yield Finding("head-incomplete", ERROR, "HEAD", f"commit {head.oid} is not here")
    except errors.FormatError as error:
        yield Finding("head-unreadable", ERROR, "HEAD", str(error))
    if isinstance(store.refs, RefDatabase):
        for stray in store.refs.files.strays():
            yield Finding("ref-stray-file", WARNING, stray, "not a tip of a ref")
    for name, tips in store.refs.iterate_tips():
        for tip in tips:
            if tip not in objects.present:
                yield Finding("ref-incomplete", WARNING, name, f"object {tip} is not here")
            elif name.startswith(BRANCHES) and not objects.is_commit(tip):
                yield Finding("ref-not-commit", ERROR, name, f"object {tip} is not a commit")
        if len(tips) > 1 and name.startswith(BRANCHES):
            yield Finding("ref-diverged", INFO, name, f"it has {len(tips)} tips")
        elif len(tips) > 1:
            yield Finding("ref-conflict", WARNING, name, f"it has {len(tips)} values")


def _roots(store: Store) -> list[ObjectId]:
    roots = [tip for _, tips in store.refs.iterate_tips() for tip in tips]
    try:
        head = store.refs.head()
    except errors.FormatError:
        return roots
    return [*roots, head.oid] if head.oid is not None else roots
