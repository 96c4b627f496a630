"""Repair of files that are neither objects nor refs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from trace_store import errors
from trace_store.base.ident import Clock, Randomness, SystemClock
from trace_store.base.oid import is_full_id
from trace_store.context.compiler import ContextCompiler
from trace_store.context.session_lists import SessionLists
from trace_store.contracts import DURABLE
from trace_store.contracts.ref_names import BRANCHES
from trace_store.disk.files import Disk, files_below, read_file, replace_file
from trace_store.disk.layout import ATTRIBUTES, CONFIG_NAME, IGNORED, INDEX_SUFFIX, Layout
from trace_store.journal.file import open_journal
from trace_store.journal.view import journal_numbers
from trace_store.maintenance.fsck import check_folds, check_lists, check_table
from trace_store.maintenance.lost_found import keep_file
from trace_store.maintenance.object_copies import objects_in
from trace_store.maintenance.repair_report import RepairContext, RepairStep
from trace_store.odb.packs import pack_names
from trace_store.refs.reflog import encode_entry, examine_log
from trace_store.store.config import Config, recovered_config
from trace_store.store.store import STORE_ID_BYTES, Store


def repair_files(work: RepairContext) -> None:
    """Restore root files; set stray files aside after recovering their objects."""
    store, layout = work.store, work.store.layout
    for path, content in ((layout.ignore_file, IGNORED), (layout.attributes_file, ATTRIBUTES)):
        data = read_file(store.disk, path)
        if data is None or data.replace(b"\r\n", b"\n") != content.encode():
            _replace(work, path, content.encode())
            work.record_step("file", os.path.basename(path), "restored to what `trace init` writes")
    for path in _strays(store):
        data = read_file(store.disk, path)
        objects = {} if data is None else dict(objects_in(data))
        fresh = {oid: content for oid, content in objects.items() if not work.has(oid)}
        work.write(fresh)
        work.set_aside(path)
        name = os.path.relpath(path, layout.root).replace(os.sep, "/")
        work.record_step("file", name, f"stray file set aside; {len(fresh)} objects recovered")
    with store.mutex:
        store.journal.refresh()
        published = store.journal.published
        published.tips.all()
        unreadable = published.damaged or published.tips.lacking
    if unreadable:
        work.set_aside(layout.published_file)
        work.record_step("derived", "local/published", "unreadable; will be rebuilt")


def repair_derived(work: RepairContext) -> None:
    """Repair reflogs, compile indexes, the commit table and caches."""
    store, layout = work.store, work.store.layout
    for path in sorted(files_below(store.disk, layout.logs_dir)):
        entries, wrong = examine_log(store.disk, path)
        if wrong:
            _replace(work, path, b"".join(map(encode_entry, entries)))
            name = os.path.relpath(path, layout.root).replace(os.sep, "/")
            work.record_step("derived", name, f"{wrong} unreadable lines removed")
    for number in sorted(journal_numbers(store.disk, layout)):
        file = open_journal(store.disk, layout.journal_file(number), number)
        if file is None:
            continue
        misplaced = file.is_misplaced(store.disk)
        store.disk.close(file.fd)
        if misplaced and not store.unsealed().transactions:
            work.set_aside(layout.journal_file(number))
            work.record_step("journal", f"journal/{number}", "wrong number; set aside after a seal")
    for finding in check_table(store):
        work.set_aside(layout.commit_table_file)
        work.record_step("derived", finding.what, f"{finding.detail}; will be rebuilt")
    lists = SessionLists(store)
    listed = {ref for each in (lists.own, *lists.carried().values()) for ref in each}
    contexts = ContextCompiler(store, keeps_files=False)
    for finding in check_lists(store, _sizes(contexts, listed)):
        work.set_aside(os.path.join(layout.root, *finding.what.split("/")))
        work.record_step(
            "derived", finding.what, "differed from the history; will be written again"
        )
    for finding in check_folds(store):
        work.set_aside(os.path.join(layout.root, finding.what))
        work.record_step("derived", finding.what, "differed from the history; will be rebuilt")
    _repair_indexes(work)
    if not work.dry_run:
        store.refs.summary.forget()


def _sizes(contexts: ContextCompiler, refs: Collection[str]) -> dict[str, int]:
    """Return the number of messages of each of some branches that can be read."""
    sizes = {}
    for ref in refs:
        try:
            sizes[ref] = len(contexts.compile(ref))
        except errors.TraceError:
            continue
    return sizes


def _repair_indexes(work: RepairContext) -> None:
    contexts = ContextCompiler(work.store)
    for name, _ in work.store.refs.iterate(BRANCHES):
        try:
            if contexts.index_view(name) is None:
                continue
            if contexts.verify(name, count_tokens=False).matches:
                continue
            if not work.dry_run:
                contexts.rebuild(name)
        except (errors.FormatError, errors.NotFoundError):
            continue  # its history is incomplete
        work.record_step("derived", name, "compile index rebuilt")


def _strays(store: Store) -> Iterator[str]:
    """Yield files below `objects/` that are not objects, packs or pack indexes."""
    layout = store.layout
    names = set(pack_names(store.disk, layout))
    for path in sorted(files_below(store.disk, layout.objects_dir)):
        folder, file = os.path.split(path)
        if folder == layout.pack_dir:
            stem, _, suffix = file.rpartition(".")
            if stem not in names or (f".{suffix}" not in (INDEX_SUFFIX, ".pack")):
                yield path
            continue
        if folder == layout.info_dir:
            continue  # `check_indexes` finds damaged lists
        within = os.path.relpath(folder, layout.objects_dir)
        if not (len(within) == 2 and is_full_id(within + file)):
            yield path


def _replace(work: RepairContext, path: str, data: bytes) -> None:
    """Replace a file's content, setting the old file aside."""
    if not work.dry_run:
        work.set_aside(path, remove=False)
        replace_file(work.store.disk, path, data, scratch=work.store.layout.tmp_dir)


_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
_POINTER = b"version https://git-lfs.github.com/spec/"


def explain_damage(data: bytes) -> str:
    """Explain what another program did to a file, or return ""."""
    lines = data.split(b"\n") if len(data) < 1 << 20 else data[: 1 << 20].split(b"\n")
    if all(any(line.startswith(mark) for line in lines) for mark in _MARKERS):
        return "it has the markers of a merge conflict: choose a side with `git checkout --ours`"
    if data.startswith(_POINTER):
        return "it is a Git LFS pointer: run `git lfs pull`"
    if b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n"):
        return "git seems to have converted its line ends: check core.autocrlf and .gitattributes"
    return ""


def with_explanation(detail: str, data: bytes | None) -> str:
    """Append the explanation of a file's damage, if there is one."""
    why = explain_damage(data) if data else ""
    return f"{detail}; {why}" if why else detail


def open_damaged(
    path: str,
    *,
    durability: str = DURABLE,
    clock: Clock | None = None,
    disk: Disk | None = None,
) -> Store:
    """Open a `.trace` directory, with what is readable of its configuration; nothing is written.

    Raises:
        UnsupportedFormatError: a newer version wrote it.
        StorageError: the disk refuses, or the configuration is not a file.
    """
    disk = disk or Disk()
    layout = Layout(path)
    try:
        return Store.open(path, durability=durability, clock=clock, disk=disk)
    except errors.UnsupportedFormatError:
        raise
    except (errors.FormatError, errors.RepositoryNotFoundError):
        data = read_file(disk, layout.config_file)
    text, _ = recovered_config(data or b"", Randomness().take(STORE_ID_BYTES).hex())
    config = Config(disk, layout.config_file, text)
    return Store(config, clock or SystemClock(), durability, disk, layout)


def repair_config(
    store: Store, *, source: Store | None = None, dry_run: bool = False
) -> tuple[tuple[RepairStep, ...], tuple[str, ...]]:
    """Rewrite the configuration of an open repository if its file is corrupt or missing.

    Args:
        store: the repository; it uses the repaired configuration from now on.
        source: another copy, whose configuration is used.
        dry_run: write nothing.

    Returns:
        The repairs, and the files set aside in `lost-found/`.

    Raises:
        StorageError: the disk refuses.
    """
    disk, path = store.disk, store.layout.config_file
    try:
        Config.load(disk, path)
        return (), ()
    except errors.UnsupportedFormatError:
        raise
    except (errors.FormatError, errors.RepositoryNotFoundError):
        data = read_file(disk, path) or b""
    if source is not None:
        made = (read_file(disk, source.layout.config_file) or b"").decode()
        detail = "taken from the other copy"
    else:
        made, read = recovered_config(data, store.config.store_id)
        detail = _describe(read)
    store.config = Config(disk, path, made)
    kept = None
    if not dry_run:
        kept = keep_file(store, path, remove=False)
        replace_file(disk, path, made.encode(), scratch=store.layout.tmp_dir)
    return (RepairStep("file", CONFIG_NAME, detail),), (kept,) if kept else ()


def _describe(read: list[str]) -> str:
    text = "rewritten"
    if read:
        text += f"; kept: {', '.join(read)}"
    if "store_id" not in read:
        text += "; it has a new store id, so placeholders of secrets change"
    return text
