"""fsck: read every byte, verify every hash, follow every link.

Invariant: damage is reported, never raised, and nothing is changed. Codes are stable: the list only grows.

An object stored with durability `fast` may be truncated by a power cut before anything links to it. A truncated loose
file is harmless if its object is unreachable or has another sound copy. Any other damage is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice

from trace_store import errors, maintenance
from trace_store.base.gc_pause import paused
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.commit_table.table import IS_CONTINUATION, CommitRows, CommitTable
from trace_store.context import snapshots
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Fold, apply_commits, commits_since, fold
from trace_store.context.index_update import role_number
from trace_store.context.session_lists import SessionLists
from trace_store.contracts.ref_names import BRANCHES, joins_by_merge, joins_by_time
from trace_store.disk.files import files_below, read_file
from trace_store.disk.layout import (
    ATTRIBUTES,
    IGNORED,
    INDEX_SUFFIX,
    MAXIMUM_OBJECT_BYTES,
    PACK_SUFFIX,
)
from trace_store.maintenance.fsck_objects import (
    ERROR,
    INFO,
    WARNING,
    Finding,
    ObjectChecks,
    check_journals,
)
from trace_store.maintenance.pack_proofs import prove
from trace_store.maintenance.reachability import UNREADABLE, find_roots
from trace_store.objects.codec import is_content
from trace_store.objects.commit import read_commit
from trace_store.odb import compression
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.index_scan import ids_among
from trace_store.odb.loose import COMPRESSED, HEAD_BYTES, RAW
from trace_store.odb.pack import Pack, walk_objects
from trace_store.odb.pack_index import PackIndex
from trace_store.odb.packs import pack_names
from trace_store.odb.tombstones import find_purged_texts
from trace_store.odb.verify import is_truncated
from trace_store.refs.database import RefDatabase
from trace_store.refs.reflog import count_zero_bytes, examine_log
from trace_store.store.recovery import left_out
from trace_store.store.store import Store

_MAXIMUM_READ_BYTES = 1 << 20
_HEAD_BYTES = 4096
_BATCH = 64 * 1024
"""How many commits are looked up at once."""

__all__ = ["ERROR", "INFO", "WARNING", "Finding", "fsck"]

_SECTOR = 512
_ZEROS = 16
"""This many zeros at the end of a file are not content."""


def check_refs(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield the problems of refs, HEAD and reflogs, given the sound objects."""
    yield from _check_head(store, objects)
    for stray in store.refs.files.strays():
        data = _read_head(store, os.path.join(store.layout.root, *stray.split("/")))
        detail = maintenance.repair_files.with_explanation("not a tip of a ref", data)
        yield Finding("ref-stray-file", WARNING, stray, detail)
    yield from _check_files(store, store.refs)
    yield from _check_logs(store)
    for name, tips in store.refs.iterate_tips():
        for tip in tips:
            if tip not in objects:
                yield Finding("ref-incomplete", WARNING, name, f"missing object {tip}")
            elif name.startswith(BRANCHES) and not objects.is_commit(tip):
                yield Finding("ref-not-commit", ERROR, name, f"object {tip} is not a commit")
        if len(tips) > 1 and joins_by_merge(name):
            yield Finding("ref-diverged", INFO, name, f"it has {len(tips)} tips")
        elif len(tips) > 1 and not joins_by_time(name):
            yield Finding("ref-conflict", WARNING, name, f"it has {len(tips)} values")

    for name, count in left_out(store.refs).items():
        detail = f"{count} commits that its branch does not have; `trace merge {name}` adds them"
        yield Finding("ref-recovered", INFO, name, detail)


def roots(store: Store) -> list[ObjectId]:
    """Return the targets of all refs and HEAD."""
    tips = [tip for _, values in store.refs.iterate_tips() for tip in values]
    try:
        head = store.refs.head()
    except errors.FormatError:
        return tips
    return [*tips, head.oid] if head.oid is not None else tips


def _check_head(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    try:
        head = store.refs.head()
    except errors.FormatError as error:
        data = _read_head(store, store.layout.head_file)
        yield Finding(
            "head-unreadable",
            ERROR,
            "HEAD",
            maintenance.repair_files.with_explanation(str(error), data),
        )
        return
    if head.ref is None and head.oid is not None and head.oid not in objects:
        yield Finding("head-incomplete", ERROR, "HEAD", f"missing commit {head.oid}")
    default = BRANCHES + store.config.default_branch
    if head.unborn and head.ref != default and any(True for _ in store.refs.iterate(BRANCHES)):
        yield Finding(
            "head-unborn", INFO, "HEAD", f"{head.ref} has no commit, but other branches have"
        )


def _check_files(store: Store, refs: RefDatabase) -> Iterator[Finding]:
    """Yield refs that this working copy published and that have lost their files."""
    with store.mutex:
        published, moved = store.journal.published.tips.all(), store.journal.fold.refs
        lost_refs = [name for name in published if name not in moved and not refs.files.read(name)]
    for name in sorted(lost_refs):
        detail = f"it was {published[name][0]} at the last seal here, and has no file now"
        yield Finding("ref-file-missing", WARNING, name, detail)


def _check_logs(store: Store) -> Iterator[Finding]:
    for path in files_below(store.disk, store.layout.logs_dir):
        what = os.path.relpath(path, store.layout.root).replace(os.sep, "/")
        try:
            count = examine_log(store.disk, path)[1]
            lost = count_zero_bytes(store.disk, path)
        except errors.StorageError as error:
            yield Finding("reflog-damaged", WARNING, what, str(error))
            continue
        if count:
            detail = f"{count} lines are unreadable"
            detail = maintenance.repair_files.with_explanation(detail, _read_head(store, path))
            yield Finding("reflog-damaged", WARNING, what, detail)
        if lost:
            detail = f"{lost} bytes are zeros, as after a power cut"
            yield Finding("reflog-zeros", INFO, what, detail)


def _read_head(store: Store, path: str) -> bytes | None:
    try:
        return read_file(store.disk, path, limit=_MAXIMUM_READ_BYTES)
    except errors.StorageError:
        return None


def check_derived(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield the problems of derived files, and what they show to be missing, given the sound objects."""
    yield from check_table(store)
    sizes: dict[str, int] = {}
    yield from check_indexes(store, objects, sizes)
    yield from check_lists(store, sizes)
    yield from check_folds(store)


def check_table(store: Store) -> Iterator[Finding]:
    """Yield missing commits that the commit table knows: it outlives a lost journal."""
    if not store.disk.exists(store.layout.commit_table_file):
        return
    path = store.layout.commit_table_file
    table = CommitTable(store.disk, path, store.config.store_id, store.objects)
    try:
        rows = table.load()
        missing = [] if rows is None else [oid.hex() for oid in _lacking(store, rows)]
    except errors.CorruptIndexError:
        return  # rebuilt when a log needs it
    if missing:
        detail = f"{len(missing)} commits of earlier logs are missing, the newest {missing[-1]}"
        what = "an unsealed journal was lost, or they were pruned"
        yield Finding("commit-forgotten", WARNING, "index/commits.table", f"{detail}: {what}")


def _lacking(store: Store, rows: CommitRows) -> Iterator[bytes]:
    """Yield the commits of a table that are missing or purged, the oldest first."""
    objects = store.objects
    commits = (row[0] for row in rows.oldest_first(0, rows.count) if not row[8] & IS_CONTINUATION)
    while batch := dict.fromkeys(islice(commits, _BATCH)):
        packed = [
            each or () for each in objects.packs.query(partial(ids_among, oids=frozenset(batch)))
        ]
        rest = (batch.keys() - set().union(*packed)) | (batch.keys() & objects.purged)
        yield from (oid for oid in batch if oid in rest and not objects.contains(oid))


def check_indexes(store: Store, objects: ObjectChecks, sizes: dict[str, int]) -> Iterator[Finding]:
    """Yield differences between branches and their compile indexes; `sizes` gets the messages of each branch."""
    contexts = ContextCompiler(store)
    for name, tip in store.refs.iterate(BRANCHES):
        try:
            if contexts.index_view(name) is None:
                with paused:
                    sizes[name] = sum(
                        1 for _ in map(role_number, fold(tip, objects.read_commit).visible())
                    )
                continue
            outcome = contexts.verify(name, count_tokens=False)
        except errors.TraceError as error:
            yield Finding("context-unreadable", ERROR, name, error.message)
            continue
        sizes[name] = outcome.message_count
        if not outcome.matches:
            detail = "the compile index differs from the history; it can be deleted"
            yield Finding("compile-index-differs", WARNING, name, detail)


def check_lists(store: Store, sizes: Mapping[str, int]) -> Iterator[Finding]:
    """Yield lists of sessions that are damaged, or say another size of a branch than `sizes`."""
    lists = SessionLists(store)
    wrong = dict.fromkeys(lists.unusable(), "is no list of sessions, or of before a purge")
    for name, tip in store.refs.iterate(BRANCHES) if sizes else ():
        for path, size in lists.sizes_at(name, tip):
            if name in sizes and size != sizes[name]:
                wrong[path] = f"says {size} messages of {name}, which has {sizes[name]}"
    for path, detail in wrong.items():
        what = os.path.relpath(path, store.layout.root).replace(os.sep, "/")
        yield Finding("session-list-differs", WARNING, what, f"{detail}; it can be deleted")


def check_folds(store: Store) -> Iterator[Finding]:
    """Yield fold snapshots that differ from the history."""
    read = partial(read_commit, read=store.objects.read)
    try:
        names = sorted(store.disk.names(store.layout.folds_dir))
    except errors.StorageError:
        return  # a link or not a folder: not used
    known: dict[bytes, Fold] = {}
    for name in names:
        _, _, tip = name.partition("-")
        if not is_full_id(tip):
            continue
        oid = bytes.fromhex(tip)
        try:
            data = read_file(store.disk, os.path.join(store.layout.folds_dir, name)) or b""
            snapshots.unpack(oid, data)
            line, at = commits_since(oid, read, known)
            known[oid] = apply_commits(Fold() if at is None else known[at].copy(), line)
        except errors.TraceError:
            continue  # unused, or its history is incomplete
        if snapshots.pack(oid, known[oid]) != data:
            detail = "the fold snapshot differs from the history; it can be deleted"
            yield Finding("kept-fold-differs", WARNING, f"cache/folds/{name}", detail)


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
            if name not in proofs:
                yield from _check_pack(store, pack, what, objects)
        finally:
            pack.close()
    # Now only, since looking an object up opens all packs, and that rebuilds damaged indexes.
    for name, proof in proofs.items():
        reread = partial(_named_objects, store, name)
        objects.add_proven(name, proof.marks, proof.outside_links, reread)


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


def fsck(
    store: Store, *, also: Iterable[Callable[[Store, ObjectChecks], Iterable[Finding]]] = ()
) -> list[Finding]:
    """Check a repository and return the findings, errors first.

    Args:
        store: the repository.
        also: additional checks of derived files, given the sound objects.
    """
    findings: list[Finding] = []
    database = store.objects
    objects = ObjectChecks(database)
    damaged: dict[ObjectId, str] = {}
    steps: list[Callable[[], Iterable[Finding]]] = [
        lambda: _check_root(store),
        lambda: check_journals(store, objects),
        lambda: check_packs(store, database, objects),
        lambda: _check_loose(database, objects, damaged),
        lambda: _damaged_loose(store, objects, damaged) if damaged else (),
        lambda: _check_purged(store, database, objects),
        lambda: check_refs(store, objects),
        lambda: objects.missing(roots(store), store.objects.purged),
        *(partial(check, store, objects) for check in also),
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
        if oid in objects:
            detail = "its bytes are back, but are not served"
            yield Finding("purged-object-present", WARNING, oid.hex(), detail)
        elif tombstone is not None:
            who = f" by {tombstone.by}" if tombstone.by else ""
            yield Finding("object-purged", INFO, oid.hex(), f"{tombstone.placeholder[1:-1]}{who}")
    if database.purged_texts:
        for oid in map(ObjectId, objects):
            if oid in database.purged:
                continue
            data = database.read(oid)
            if is_content(data) and find_purged_texts({oid: data}, database.purged_texts):
                detail = "it contains purged text and came with a pack from elsewhere"
                yield Finding("purged-object-present", WARNING, oid.hex(), detail)


def _damaged_loose(
    store: Store, objects: ObjectChecks, damaged: Mapping[ObjectId, str]
) -> Iterator[Finding]:
    """Yield the findings for damaged loose files.

    Args:
        store: the repository.
        objects: all other objects, already checked.
        damaged: damaged objects with the reason.
    """
    needed = _reachable(store, objects)
    for oid, why in damaged.items():
        content = _content(store, oid)
        detail = maintenance.repair_files.with_explanation(f"loose file: {why}", content)
        if content is None or not _is_truncated(content):
            yield Finding("object-damaged", ERROR, str(oid), detail)
        elif oid in objects:
            detail += "; another copy is sound"
            yield Finding("spare-object-cut-off", WARNING, str(oid), detail)
        elif needed is None or oid in needed:
            yield Finding("object-damaged", ERROR, str(oid), detail)
        else:
            detail += "; it is unreachable, and was probably not synced before a power cut"
            yield Finding("unreachable-object-cut-off", WARNING, str(oid), detail)


def _reachable(store: Store, objects: ObjectChecks) -> set[bytes] | None:
    """Return everything reachable, or None if that is unknown."""
    try:
        roots = find_roots(store)
    except errors.TraceError:
        return None
    if any(obstacle.reason == UNREADABLE for obstacle in roots.obstacles):
        return None
    named: set[bytes] = {*roots.named, *roots.logged()}
    return named | objects.reachable(named)


def _content(store: Store, oid: ObjectId) -> bytes | None:
    try:
        return read_file(store.disk, store.layout.loose_file(oid.hex()), limit=MAXIMUM_OBJECT_BYTES)
    except errors.StorageError:
        return None


def _is_truncated(data: bytes) -> bool:
    """Return True if the damage is what a power cut leaves of an unsynced file.

    That is a prefix of it, or zeros at its end or in a whole sector.
    """
    if not data[-_ZEROS:].strip(b"\0"):
        return True
    sectors = (data[at : at + _SECTOR] for at in range(0, len(data) - _SECTOR + 1, _SECTOR))
    if not all(sector.strip(b"\0") for sector in sectors):
        return True
    if data[:1] == bytes((COMPRESSED,)):
        return len(data) < HEAD_BYTES or compression.is_truncated(data[HEAD_BYTES:])
    return data[:1] == bytes((RAW,)) and is_truncated(data[1:])
