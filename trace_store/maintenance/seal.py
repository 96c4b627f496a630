"""Seal: move the journal's content into packs and ref files.

The steps, each repeatable after an interruption: close the live journal; write all objects of closed journals to a
pack; sync pack and directory; write and remove ref files, synced; write the reflogs; replace `local/published`,
which commits the seal. Only then are earlier sealed journals and consolidated packs removed. Writers are blocked
only during the first step.

Data after a damaged part of a journal is copied to `lost-found/` first: it may hold acknowledged transactions.
"""

from __future__ import annotations

import errno

from trace_store import context, errors, journal, maintenance
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, check_hash, joined_digests
from trace_store.journal.frames import END
from trace_store.journal.published import save, stamp_of
from trace_store.journal.view import RefsFold
from trace_store.maintenance.consolidate import (
    ALWAYS_CONSOLIDATE_BYTES,
    choose_packs,
    objects_of,
    remove_if_possible,
    remove_packs,
)
from trace_store.maintenance.fsck_objects import is_distrusted, trailing_data
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.lost_found import keep_bytes, sweep
from trace_store.maintenance.second_copies import keep_copies, restore_tips
from trace_store.odb.index_scan import ids_among
from trace_store.odb.pack_writer import PackWriter
from trace_store.refs.reflog import GIT, MOVED_BY_GIT, ReflogEntry, append_log, entries_of
from trace_store.refs.summary import ALWAYS_READ
from trace_store.store.creation import show_to_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.journal.file import JournalFile
    from trace_store.journal.published import Published, PublishedTips
    from trace_store.refs.summary import Scan
    from trace_store.store.store import Store


QUICK_LEVEL = 3
LEVELS = ((ALWAYS_CONSOLIDATE_BYTES, 9), (256 * 1024, 16), (1024 * 1024, 9))
"""(maximum content in bytes, compression level); QUICK_LEVEL for more.

The smallest packs are soon consolidated. Larger ones stay and are tracked by git, so they get the highest level that
takes at most a few hundredths of a second.
"""
FRAME_BYTES = 1024 * 1024
"""Larger than in a repack, since a seal writes no dictionary for content that frames have in common."""
READ_BYTES = 256 * 1024
"""Bytes of a journal read and verified at once."""
MAXIMUM_ATTEMPTS = 100
_TRANSIENT_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO)


@value
class SealReport:
    """Result of a seal.

    Attributes:
        transactions: number of transactions sealed.
        objects: number of objects written to packs.
        packs: names of the new packs.
        folded: number of packs consolidated into them.
        refs: refs whose files were updated.
        accepted: refs that git had moved.
        unlogged: refs whose reflog could not be written.
        sessions: sessions whose sizes and titles were copied for clones.
    """

    JSON = "-unlogged"

    transactions: int = 0
    objects: int = 0
    packs: tuple[str, ...] = ()
    folded: int = 0
    refs: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    unlogged: tuple[str, ...] = ()
    sessions: int = 0


def seal(
    store: Store, *, level: int | None = None, wait: bool = True, fully: bool = False
) -> SealReport:
    """Seal the journals and accept ref moves by git; a no-op if there is neither.

    Args:
        store: the repository.
        level: zstd compression level; None chooses by size.
        wait: wait for another maintenance process.
        fully: check the files of all refs, not only those that changed since the last check.

    Raises:
        LockedError: another process holds the maintenance lock; with `wait`, still after a minute.
        UnsupportedFormatError: the journal has frames of a newer version, which a seal must not drop.
        CorruptJournalError: an object in it is damaged and has no other copy.
        StorageError: the disk fails; the next seal resumes.
    """
    if not _has_work(store, fully):
        if not fully:
            return SealReport()
        with brief_lock(store, wait=wait):
            return SealReport(sessions=context.session_lists.publish_lists(store, tidy=True))
    with brief_lock(store, wait=wait):
        return _Sealer(store, level, fully).run()


def seal_or_sync(store: Store) -> None:
    """Seal; if that is not possible now, sync the journal and log a warning.

    Raises:
        StorageError: the journal cannot be synced.
        UnsupportedFormatError, CorruptJournalError: as `seal`.
    """
    try:
        seal(store)
    except (errors.LockedError, errors.StorageError) as error:
        with store.mutex:
            store.journal.sync()
        maintenance.lock_wait.warn_of_unsealed(error)


def _has_work(store: Store, fully: bool) -> bool:
    with store.mutex:
        journal = store.journal
        journal.refresh()
        if journal.lost or any(file.has_content() for file in journal.files):
            return True
        published, read = journal.published.tips, store.refs.files.read
        scan = store.refs.summary.scan(fully=fully).of_published()
        names = _possibly_changed(scan, published)
        return any(set(read(name)) != set(published.get(name)) for name in names)


def _possibly_changed(scan: Scan, published: PublishedTips) -> list[str]:
    """Return the refs whose files may differ from the published state, in name order."""
    if len(scan.unsettled) > ALWAYS_READ:
        published.all()  # faster than one by one
    return sorted(scan.unsettled)


class _Sealer:
    """One seal, under the lock."""

    def __init__(self, store: Store, level: int | None, fully: bool) -> None:
        self._store = store
        self._refs = store.refs
        self._objects = store.objects
        self._level = level
        self._fully = fully
        self._moves = RefsFold()
        self._changes: dict[str, tuple[ObjectId, ...]] = {}
        self._logs: dict[str, list[ReflogEntry]] = {}
        self._files: dict[str, tuple[ObjectId, ...]] = {}
        self._written = 0

    def run(self) -> SealReport:
        store = self._store
        show_to_git(store.disk, store.layout)
        closed, before, obsolete = self._close_journals()
        self._check_frame_kinds(closed)
        unfinished = [f for f in closed if f.frames and f.frames[-1].kind != END]
        if unfinished:
            keep_trailing_data(store, unfinished)
        with store.mutex:
            scan = self._refs.summary.scan(fully=self._fully).of_published()
        packs, folded = self._write_packs(closed)
        keep_copies(store, packs)
        for file in closed:
            self._moves.apply_all(file.frames)
        self._check_not_sealed_elsewhere(before)
        candidates = _possibly_changed(scan, before.tips)
        self._read_tips({*self._moves.refs, *candidates}, before)
        moved = self._publish_moved(before)
        others = [name for name in candidates if name not in self._changes]
        accepted = self._accept(others, before)
        unlogged: list[str] = []
        for name, entries in sorted(self._logs.items()):
            try:
                append_log(store.disk, store.layout.logs_dir, store.layout.log_file(name), entries)
            except errors.StorageError as error:
                if getattr(error, "errno", None) in _TRANSIENT_ERRNOS:
                    raise  # another attempt may succeed
                # Permanent, such as a file in the way: a missing reflog entry must not prevent the seal.
                unlogged.append(name)
        sealed = before.sealed.copy()
        for file in closed:
            sealed.add(file.line, file.number, file.number)
        changes = {n: tips for n, tips in self._changes.items() if before.tips.get(n) != tips}
        if sealed != before.sealed or changes or before.stamp is None:
            save(store.disk, store.layout, sealed, before, changes)
            self._refs.summary.update(scan, before, changes)
        self._clean(obsolete, folded)
        sessions = context.session_lists.publish_lists(store, tidy=self._fully)
        transactions = sum(1 for file in closed for _ in file.transactions())
        return SealReport(
            transactions=transactions,
            objects=self._written,
            packs=tuple(packs),
            folded=len(folded),
            refs=tuple(moved),
            accepted=tuple(accepted),
            unlogged=tuple(unlogged),
            sessions=sessions,
        )

    def _close_journals(self) -> tuple[list[JournalFile], Published, dict[int, object]]:
        """Return journals to seal, the last published state, and obsolete journals.

        A journal whose file was deleted is not sealed: its transactions are copied to the next one.
        """
        store, journal = self._store, self._store.journal
        for _ in range(MAXIMUM_ATTEMPTS):
            with store.mutex:
                journal.refresh()
                self._check_frame_kinds(journal.files)  # before a new journal is started
            keys = store.rotate()
            with store.mutex:
                journal.refresh()
                closed = [file for file in journal.files if file.line and file.key in keys]
                if not journal.lost and {file.key for file in closed}.issuperset(
                    k for k in keys if k[0]
                ):
                    live = journal.files[-1].number if journal.files else 0
                    empty = [f for f in journal.files if not f.line and f.number < live]
                    obsolete = {number: stamp for number, (stamp, _) in journal.covered.items()}
                    for file in empty:
                        if store.disk.identity(file.path) == file.identity:
                            obsolete[file.number] = stamp_of(store.disk, file.path)
                    return closed, journal.published, obsolete
        raise errors.ConcurrencyError("the journal keeps disappearing")

    def _check_not_sealed_elsewhere(self, before: Published) -> None:
        """Raise if another process has sealed, possible only if lock files were deleted."""
        if stamp_of(self._store.disk, self._store.layout.published_file) != before.stamp:
            raise errors.ConcurrencyError("another process sealed at the same time")

    def _check_frame_kinds(self, files: list[JournalFile]) -> None:
        for file in files:
            kinds = file.unknown_kinds()
            if kinds:
                names = tuple(f"journal frame kind {kind}" for kind in kinds)
                path = self._store.layout.journal_file(file.number)
                raise errors.UnsupportedFormatError(
                    f"journal {file.number} has frames of a newer version",
                    path=path,
                    required=names,
                )

    def _write_packs(self, files: list[JournalFile]) -> tuple[list[str], list[str]]:
        """Write the journals' objects to packs, and consolidate small packs.

        Return the names of the new packs, and of those that they replace.
        """
        objects = self._objects
        with self._store.mutex:
            objects.packs.refresh()
        places_by_file = [(file, file.places()) for file in files]
        purged = objects.refresh_tombstones()
        for oid in purged:
            for _, places in places_by_file:
                places.pop(ObjectId(oid), None)
        oids = frozenset(oid for _, places in places_by_file for oid in places)
        indexed = list(objects.packs.query(lambda index: ids_among(index, oids)))
        any_packed = False
        for oid in frozenset().union(*(each or () for each in indexed)):
            if self._is_packed(oid):
                any_packed = True
                for _, places in places_by_file:
                    places.pop(ObjectId(oid), None)
        if any_packed:  # an interrupted seal may not have synced their directory entries
            self._store.disk.sync_directory(self._store.layout.pack_dir)
            self._store.disk.sync_directory(self._store.layout.objects_dir)
        if not any(places for _, places in places_by_file):
            return [], []
        size = sum(length for _, places in places_by_file for _, length in places.values())
        old_packs, size = choose_packs(self._store, size)
        by_size = next((best for maximum, best in LEVELS if size <= maximum), QUICK_LEVEL)
        level = self._level or by_size
        writer = PackWriter(
            self._store.disk, self._store.layout, level=level, frame_bytes=FRAME_BYTES
        )
        try:
            for name in old_packs:
                for oid, data in objects_of(self._store, name):
                    if oid not in purged:
                        writer.add(oid, data)
            for file, places in places_by_file:
                for oid, data in self._contents(file, places):
                    self._written += writer.add(oid, data)
            names = writer.finish()
        finally:
            writer.discard()
        with self._store.mutex:
            objects.packs.refresh()
        return names, [name for name in old_packs if name not in names]

    def _is_packed(self, oid: bytes) -> bool:
        try:
            return self._objects.packs.read(oid) is not None
        except errors.FormatError:
            return False  # the journal may have the last sound copy

    def _contents(
        self, file: JournalFile, places: dict[ObjectId, tuple[int, int]]
    ) -> Iterator[tuple[ObjectId, bytes]]:
        """Yield (id, bytes) of a journal's objects, verified."""
        for oids, start, end in _adjacent_batches(places):
            data = self._store.journal.read_from(file, start, end - start)
            contents = [
                data[offset - start : offset - start + size]
                for offset, size in map(places.__getitem__, oids)
            ]
            if joined_digests(contents) != b"".join(oids):
                contents = list(map(self._intact_bytes, oids, contents))
            yield from zip(oids, contents, strict=True)

    def _intact_bytes(self, oid: bytes, data: bytes) -> bytes:
        try:
            return check_hash(oid, data, "a journal")
        except errors.FormatError as error:
            copy = self._objects.loose.read(oid)
            if copy is None:
                raise errors.CorruptJournalError(str(error), oid=oid) from error
            return copy

    def _read_tips(self, names: set[str], before: Published) -> None:
        """Read each ref's files once.

        A second read would race with git and could lose a tip.
        """
        read = self._refs.files.read
        files = {name: read(name) for name in names}
        missing = [
            (name, tip) for name in names for tip in before.tips.get(name) if tip not in files[name]
        ]
        for name, tip in restore_tips(self._store, missing):
            files[name] = (*files[name], tip)
        self._files = files

    def _publish_moved(self, before: Published) -> list[str]:
        """Write the files of refs moved in the closed journals."""
        for name, entries in entries_of(self._moves.frames).items():
            self._logs.setdefault(name, []).extend(entries)
        for name, fold in sorted(self._moves.refs.items()):
            files = self._files[name]
            known = before.tips.get(name, ())
            tips = self._refs.resolve(name, files, known, fold)
            self._refs.files.write(name, tips, files, known)
            self._changes[name] = tips
            first = self._logs[name][0]
            if known and first.old is not None and first.old not in known:
                entry = ReflogEntry(known[0], first.old, first.time, GIT, MOVED_BY_GIT)
                self._logs[name].insert(0, entry)
        return sorted(self._moves.refs)

    def _accept(self, names: list[str], before: Published) -> list[str]:
        """Record refs moved by another tool, and drop superseded tips."""
        accepted: list[str] = []
        pending = self._store.journal.fold.refs
        for name in names:
            files, known = self._files[name], before.tips.get(name)
            if set(files) == set(known) or (name in pending and name not in self._moves.refs):
                continue
            if not files and not self._fully and self._refs.rewind_guard.is_gone(name):
                continue  # deleted by another program; a full seal accepts that
            tips = self._refs.resolve(name, files, known, None)
            if len(tips) < len(files) and all(map(self._objects.contains, files)):
                self._refs.files.write(name, tips, files, known)
            kept = self._refs.files.read(name)
            self._changes[name] = (*tips, *(tip for tip in kept if tip not in tips))
            old, new = known[0] if known else None, tips[0] if tips else None
            if before.stamp is not None and old != new:
                entry = ReflogEntry(old, new, self._store.clock.now(), GIT, MOVED_BY_GIT)
                self._logs.setdefault(name, []).append(entry)
            accepted.append(name)
        return accepted

    def _clean(self, obsolete: dict[int, object], folded: list[str]) -> None:
        store = self._store
        remove_packs(store, folded)
        followers = store.layout.followers_dir
        if store.disk.exists(followers) and journal.tail.is_followed(store.disk, store.layout):
            obsolete = dict(sorted(obsolete.items())[: -journal.tail.KEPT_JOURNALS])
        for number, stamp in obsolete.items():
            path = store.layout.journal_file(number)
            if stamp_of(store.disk, path) == stamp:  # not a new journal with the same number
                remove_if_possible(store.disk, path)
        sweep(store)


def _adjacent_batches(
    places: dict[ObjectId, tuple[int, int]],
) -> Iterator[tuple[list[ObjectId], int, int]]:
    """Yield batches of adjacent objects (ids, start, end).

    An object larger than READ_BYTES is a batch of its own.
    """
    oids: list[ObjectId] = []
    start = end = 0
    for oid, (offset, size) in places.items():
        if not oids or offset < end or offset + size > start + READ_BYTES:
            if oids:
                yield oids, start, end
            oids, start = [], offset
        oids.append(oid)
        end = offset + size
    if oids:
        yield oids, start, end


def keep_trailing_data(store: Store, files: list[JournalFile]) -> None:
    """Copy data after the frames of journals to `lost-found/` before they are sealed.

    Incomplete writes, which were never acknowledged, and zeros are not copied.

    Raises:
        StorageError: the copy cannot be written.
    """
    for file in files:
        rest = b"" if is_distrusted(store, file) else trailing_data(store, file)
        if rest.strip(b"\0") and (
            journal.recovery.transactions_in(rest)
            or not journal.recovery.is_cut_off(rest, file.end)
        ):
            keep_bytes(store, f"journal/{file.number}", rest)
