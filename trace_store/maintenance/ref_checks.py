"""Checks of the names: refs and their files, HEAD, reflogs."""

from __future__ import annotations

import os

from trace_store import errors, maintenance
from trace_store.files import read_file
from trace_store.maintenance.findings import ERROR, INFO, WARNING, Finding
from trace_store.refs import BRANCHES, RefDatabase
from trace_store.refs.reflog import count_lost, examine_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.maintenance.object_checks import ObjectChecks
    from trace_store.oid import ObjectId
    from trace_store.store import Store

_MOST_READ = 1 << 20


def check_refs(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield what is wrong with refs, HEAD and reflogs, given the objects that were found sound."""
    yield from _check_head(store, objects)
    if isinstance(store.refs, RefDatabase):
        for stray in store.refs.files.strays():
            data = _beginning(store, os.path.join(store.layout.root, *stray.split("/")))
            detail = maintenance.with_explanation("not a tip of a ref", data)
            yield Finding("ref-stray-file", WARNING, stray, detail)
        yield from _check_files(store, store.refs)
        yield from _check_logs(store)
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


def roots(store: Store) -> list[ObjectId]:
    """Return what all refs, and HEAD, name."""
    found = [tip for _, tips in store.refs.iterate_tips() for tip in tips]
    try:
        head = store.refs.head()
    except errors.FormatError:
        return found
    return [*found, head.oid] if head.oid is not None else found


def _check_head(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    try:
        head = store.refs.head()
    except errors.FormatError as error:
        data = _beginning(store, store.layout.head_file)
        yield Finding(
            "head-unreadable", ERROR, "HEAD", maintenance.with_explanation(str(error), data)
        )
        return
    if head.ref is None and head.oid is not None and head.oid not in objects.present:
        yield Finding("head-incomplete", ERROR, "HEAD", f"commit {head.oid} is not here")
    default = BRANCHES + store.config.default_branch
    if head.unborn and head.ref != default and any(True for _ in store.refs.iterate(BRANCHES)):
        yield Finding(
            "head-unborn", INFO, "HEAD", f"{head.ref} has no commit, and other branches have"
        )


def _check_files(store: Store, refs: RefDatabase) -> Iterator[Finding]:
    """Yield the refs that this working copy published, and that have lost their files since."""
    with store.mutex:
        published, moved = store.journal.published.tips.all(), store.journal.fold.refs
        gone = [name for name in published if name not in moved and not refs.files.read(name)]
    for name in sorted(gone):
        detail = (
            f"it was {published[name][0]} when this working copy last sealed, and has no file now"
        )
        yield Finding("ref-file-missing", WARNING, name, detail)


def _check_logs(store: Store) -> Iterator[Finding]:
    root = store.layout.logs_dir
    stack = [root]
    while stack:
        folder = stack.pop()
        folders, files = store.disk.scan(folder)
        stack += [os.path.join(folder, name) for name in folders]
        for name in files:
            path = os.path.join(folder, name)
            what = os.path.relpath(path, store.layout.root).replace(os.sep, "/")
            try:
                count = examine_log(store.disk, path)[1]
                lost = count_lost(store.disk, path)
            except errors.StorageError as error:
                yield Finding("reflog-damaged", WARNING, what, str(error))
                continue
            if count:
                detail = f"{count} lines cannot be read"
                detail = maintenance.with_explanation(detail, _beginning(store, path))
                yield Finding("reflog-damaged", WARNING, what, detail)
            if lost:
                yield Finding(
                    "reflog-zeros",
                    INFO,
                    what,
                    f"{lost} bytes are zeros: a power cut may leave them",
                )


def _beginning(store: Store, path: str) -> bytes | None:
    try:
        return read_file(store.disk, path, limit=_MOST_READ)
    except errors.StorageError:
        return None
