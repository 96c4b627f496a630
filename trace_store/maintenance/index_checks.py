"""Checks of what is derived from histories: contexts, compile indexes, kept folds, the commit table."""

from __future__ import annotations

import os

from trace_store import commit_table, errors
from trace_store.context import kept_folds
from trace_store.context.compiler import ContextCompiler
from trace_store.context.folding import Fold
from trace_store.context.folding_history import go_on, line_since
from trace_store.files import read_file
from trace_store.maintenance.findings import ERROR, WARNING, Finding
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import is_full_id
from trace_store.refs import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store import Store


def check_derived(store: Store) -> Iterator[Finding]:
    """Yield what is wrong with what is derived, and what it shows to be missing elsewhere."""
    yield from check_table(store)
    yield from check_indexes(store)
    yield from check_folds(store)


def check_table(store: Store) -> Iterator[Finding]:
    """Yield what the commit table tells of commits that are not here: it outlives a journal that was lost."""
    if not store.local or not store.disk.exists(store.layout.commit_table_file):
        return
    path = store.layout.commit_table_file
    table = commit_table.CommitTable(store.disk, path, store.config.store_id, store.objects)
    try:
        rows = table.load()
        known = [] if rows is None else list(rows.numbers())
    except errors.CorruptIndexError:
        return  # it is made anew when a log needs it
    gone = [oid.hex() for oid in known if not store.objects.contains(oid)]
    if gone:
        detail = f"{len(gone)} commits that a log has shown are not here, the newest {gone[-1]}"
        what = "an unsealed journal was lost, or they were pruned"
        yield Finding("commit-forgotten", WARNING, "index/commits.table", f"{detail}: {what}")


def check_indexes(store: Store) -> Iterator[Finding]:
    """Fold every branch, compare those that have a compile index with what it says, and yield what is wrong.

    Tokens are not counted again.
    """
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
    """Compare kept folds with what their histories say; a damaged one is made anew when it is needed."""

    def read(oid: bytes) -> Commit:
        return read_commit(oid, store.objects.read)

    try:
        names = sorted(store.disk.names(store.layout.folds_dir)) if store.local else []
    except errors.StorageError:
        return  # a link, or what is no folder: nothing of it is used
    known: dict[bytes, Fold] = {}
    for name in names:
        _, _, tip = name.partition("-")
        if not is_full_id(tip):
            continue
        oid = bytes.fromhex(tip)
        try:
            data = read_file(store.disk, os.path.join(store.layout.folds_dir, name)) or b""
            kept_folds.unpack(oid, data)
            line, at = line_since(oid, read, known.__contains__)
            known[oid] = go_on(Fold() if at is None else known[at].copy(), line)
        except errors.TraceError:
            continue  # nobody uses it, or what it is made from is not whole
        if kept_folds.pack(oid, known[oid]) != data:
            detail = "a kept fold differs from the history; it can be deleted"
            yield Finding("kept-fold-differs", WARNING, f"cache/folds/{name}", detail)
