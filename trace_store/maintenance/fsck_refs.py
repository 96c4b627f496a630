"""fsck of refs, reflogs and derived files."""

from __future__ import annotations

import os

from trace_store import commit_table, context, errors, maintenance
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Fold, apply_commits, commits_since
from trace_store.files import files_below, read_file
from trace_store.maintenance.fsck_objects import ERROR, INFO, WARNING, Finding
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import is_full_id
from trace_store.refs.database import RefDatabase
from trace_store.refs.names import BRANCHES
from trace_store.refs.reflog import count_zero_bytes, examine_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.maintenance.fsck_objects import ObjectChecks
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


_MAXIMUM_READ_BYTES = 1 << 20


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
            if tip not in objects.present:
                yield Finding("ref-incomplete", WARNING, name, f"missing object {tip}")
            elif name.startswith(BRANCHES) and not objects.is_commit(tip):
                yield Finding("ref-not-commit", ERROR, name, f"object {tip} is not a commit")
        if len(tips) > 1 and name.startswith(BRANCHES):
            yield Finding("ref-diverged", INFO, name, f"it has {len(tips)} tips")
        elif len(tips) > 1:
            yield Finding("ref-conflict", WARNING, name, f"it has {len(tips)} values")


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
    if head.ref is None and head.oid is not None and head.oid not in objects.present:
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


def check_derived(store: Store) -> Iterator[Finding]:
    """Yield the problems of derived files, and what they show to be missing."""
    yield from check_table(store)
    yield from check_indexes(store)
    yield from check_folds(store)


def check_table(store: Store) -> Iterator[Finding]:
    """Yield missing commits that the commit table knows: it outlives a lost journal."""
    if not store.disk.exists(store.layout.commit_table_file):
        return
    path = store.layout.commit_table_file
    table = commit_table.table.CommitTable(store.disk, path, store.config.store_id, store.objects)
    try:
        rows = table.load()
        known = [] if rows is None else list(rows.numbers())
    except errors.CorruptIndexError:
        return  # rebuilt when a log needs it
    missing = [oid.hex() for oid in known if not store.objects.contains(oid)]
    if missing:
        detail = f"{len(missing)} commits of earlier logs are missing, the newest {missing[-1]}"
        what = "an unsealed journal was lost, or they were pruned"
        yield Finding("commit-forgotten", WARNING, "index/commits.table", f"{detail}: {what}")


def check_indexes(store: Store) -> Iterator[Finding]:
    """Yield differences between branches and their compile indexes."""
    contexts = ContextCompiler(store)
    for name, _ in store.refs.iterate(BRANCHES):
        try:
            if contexts.index_view(name) is None:
                contexts.compile(name, cold=True)
                continue
            outcome = contexts.verify(name, count_tokens=False)
        except errors.TraceError as error:
            yield Finding("context-unreadable", ERROR, name, error.message)
            continue
        if not outcome.matches:
            detail = "the compile index differs from the history; it can be deleted"
            yield Finding("compile-index-differs", WARNING, name, detail)


def check_folds(store: Store) -> Iterator[Finding]:
    """Yield fold snapshots that differ from the history."""

    def read(oid: bytes) -> Commit:
        return read_commit(oid, store.objects.read)

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
            context.snapshots.unpack(oid, data)
            line, at = commits_since(oid, read, known.__contains__)
            known[oid] = apply_commits(Fold() if at is None else known[at].copy(), line)
        except errors.TraceError:
            continue  # unused, or its history is incomplete
        if context.snapshots.pack(oid, known[oid]) != data:
            detail = "the fold snapshot differs from the history; it can be deleted"
            yield Finding("kept-fold-differs", WARNING, f"cache/folds/{name}", detail)
