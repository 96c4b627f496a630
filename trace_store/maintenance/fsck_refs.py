"""fsck of refs, reflogs, journals and derived files.

A power cut leaves a frame that was cut off, which was never acknowledged. Bytes that have changed are another matter:
what stands behind them was acknowledged, and no reader comes to it.
"""

from __future__ import annotations

import os

from trace_store import commit_table, errors, journal, maintenance
from trace_store.context import snapshots
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Fold, go_on, line_since
from trace_store.files import MAXIMUM_READ_BYTES, read_file
from trace_store.journal.file import FAILED, JournalFile, open_journal
from trace_store.journal.frames import END
from trace_store.journal.ref_moves import RefMoves
from trace_store.journal.snapshot import journal_numbers
from trace_store.maintenance.fsck_objects import ERROR, INFO, WARNING, Finding
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import is_full_id
from trace_store.refs.database import RefDatabase
from trace_store.refs.names import BRANCHES
from trace_store.refs.reflog import count_lost, examine_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.journal.frames import Frame
    from trace_store.journal.journal import Journal
    from trace_store.maintenance.fsck_objects import ObjectChecks
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


_MOST_READ = 1 << 20


def check_refs(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield what is wrong with refs, HEAD and reflogs, given the objects that were found sound."""
    yield from _check_head(store, objects)
    if isinstance(store.refs, RefDatabase):
        for stray in store.refs.files.strays():
            data = _beginning(store, os.path.join(store.layout.root, *stray.split("/")))
            detail = maintenance.repair_files.with_explanation("not a tip of a ref", data)
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
            "head-unreadable",
            ERROR,
            "HEAD",
            maintenance.repair_files.with_explanation(str(error), data),
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
                detail = maintenance.repair_files.with_explanation(detail, _beginning(store, path))
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


def check_journals(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield what is wrong with the journals; their objects are checked along the way."""
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
        yield from _check_tail(store, file, files)
    yield from _check_places(store, journal, files)
    if store.disk.exists(store.layout.lost_found_dir):
        yield from _check_aside(store, objects)
    fold = RefMoves()
    for file in files:
        for frame in file.transactions():
            if frame.moves and not fold.apply(frame):
                names = ", ".join(sorted({move.name for move in frame.moves}))
                detail = f"a move of {names} expected another value"
                yield Finding("journal-move-without-effect", INFO, f"journal/{file.number}", detail)


def is_distrusted(store: Store, file: JournalFile) -> bool:
    """Tell whether a sync of a journal failed, here or elsewhere: a successor says what of it has effect."""
    return file.failed or file.standing(store.disk) is FAILED


def rest_of(store: Store, file: JournalFile) -> bytes:
    """Return what stands behind the frames of a journal that count; nothing when that is room for more of them."""
    if file.frames and file.frames[-1].kind == END:
        return b""
    size = store.disk.size(file.fd)
    if not file.end < size <= MAXIMUM_READ_BYTES or file.is_free_behind(store.disk):
        return b""
    return store.disk.read_at(file.fd, file.end, size - file.end)


def without_effect(rest: bytes, files: list[JournalFile]) -> list[Frame]:
    """Return the whole transactions among bytes behind a journal's frames that no journal says again.

    After a failed sync a successor does, so that they have effect.
    """
    known = [frame for file in files for frame in file.transactions()]
    found = journal.recovery.transactions_in(rest)
    return [frame for frame in found if not any(frame.says_as(other) for other in known)]


def _check_tail(store: Store, file: JournalFile, files: list[JournalFile]) -> Iterator[Finding]:
    name, rest = f"journal/{file.number}", rest_of(store, file)
    if not rest:
        return
    distrusted = is_distrusted(store, file)
    behind = [] if distrusted else without_effect(rest, files)
    if store.disk.exists(store.layout.lost_found_dir) and maintenance.repair_report.is_kept(
        store, name, rest
    ):
        detail = f"{len(rest)} bytes after the last whole frame are kept in lost-found"
        yield Finding("journal-tail", INFO, name, detail)
    elif behind:
        detail = (
            f"{len(behind)} whole transactions stand behind bytes that have changed, at {file.end}"
        )
        yield Finding("journal-damaged", ERROR, name, f"{detail}, and have no effect")
    elif distrusted or journal.recovery.is_cut_off(rest, file.end):
        detail = f"{len(rest)} bytes after the last whole frame have no effect"
        yield Finding("journal-tail", INFO, name, detail)
    else:
        detail = (
            f"the last frame, at {file.end}, says otherwise than its checksum, and has no effect"
        )
        yield Finding("journal-damaged", WARNING, name, detail)


def _check_aside(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield what a seal has set aside of damaged journals, where that holds objects that are not here."""
    folder = os.path.join(store.layout.lost_found_dir, "journal")
    for path in maintenance.repair_report.files_in(store, folder):
        data = read_file(store.disk, path) or b""
        lacking = {
            oid
            for frame in journal.recovery.transactions_in(data)
            for oid, _, _ in frame.objects
            if oid not in objects.present and not store.objects.contains(oid)
        }
        if lacking:
            what = os.path.relpath(path, store.layout.root).replace(os.sep, "/")
            detail = f"{len(lacking)} objects of whole transactions behind damage are not here"
            yield Finding("journal-aside", ERROR, what, detail)


def _check_places(store: Store, journal: Journal, files: list[JournalFile]) -> Iterator[Finding]:
    """Yield journals that are missing, or stand under another number than theirs."""
    disk, layout, published = store.disk, store.layout, journal.published
    present = set(journal_numbers(disk, layout))
    for number in sorted(present):
        file = open_journal(disk, layout.journal_file(number), number)
        if file is None:
            continue
        if file.is_misplaced(disk):
            detail = "it says that it follows another journal than the one before it"
            yield Finding("journal-misplaced", ERROR, f"journal/{number}", detail)
        disk.close(file.fd)
    if published.stamp is None or published.damaged:
        return  # whether one that is not here was sealed is not known
    sealed = published.sealed.highest
    for file in files:
        for number, _ in file.frames[0].closes if file.frames else ():
            if number not in present and sealed < number < file.number:
                detail = f"journal {file.number} follows it, and it was not sealed"
                yield Finding("journal-missing", ERROR, f"journal/{number}", detail)


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
    table = commit_table.table.CommitTable(store.disk, path, store.config.store_id, store.objects)
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
            snapshots.unpack(oid, data)
            line, at = line_since(oid, read, known.__contains__)
            known[oid] = go_on(Fold() if at is None else known[at].copy(), line)
        except errors.TraceError:
            continue  # nobody uses it, or what it is made from is not whole
        if snapshots.pack(oid, known[oid]) != data:
            detail = "a kept fold differs from the history; it can be deleted"
            yield Finding("kept-fold-differs", WARNING, f"cache/folds/{name}", detail)
