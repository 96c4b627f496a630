"""Seal: move the journal's content into packs and ref files.

Rule: the steps, each of which may be repeated after an interruption at any point, are: close the live journal;
write every object of the closed ones into a pack; sync pack and directory; create and remove ref files, synced; write
the reflogs; replace `local/published`, which says that it is done. Only then are journals that an earlier seal covered
removed, and packs that were folded into a new one. Writers are not held up after the first step.

Behind damage there may be transactions that were acknowledged: they are kept, for a repair to find.
"""

from __future__ import annotations

import errno

from trace_store import errors, journal, maintenance
from trace_store.frozen import value
from trace_store.journal.frames import END
from trace_store.journal.published import save, stamp_of
from trace_store.journal.ref_moves import RefMoves
from trace_store.maintenance.consolidate import (
    ALWAYS_FOLD_BYTES,
    choose_packs,
    objects_of,
    remove_if_possible,
    remove_packs,
)
from trace_store.maintenance.fsck_journal import is_distrusted, rest_of
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.lost_found import keep_bytes
from trace_store.maintenance.second_copies import keep_copies, put_back_tips
from trace_store.maintenance.tmp_files import sweep
from trace_store.odb.checks import check_hash
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.index_scan import ids_among
from trace_store.odb.pack_writer import PackWriter
from trace_store.oid import ObjectId, joined_digests
from trace_store.refs.database import RefDatabase
from trace_store.refs.reflog import GIT, MOVED_BY_GIT, ReflogEntry, append_log, entries_of
from trace_store.refs.summary import FEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.journal.file import JournalFile
    from trace_store.journal.published import Published, PublishedTips
    from trace_store.refs.summary import Look
    from trace_store.store.handle import Store


QUICK_LEVEL = 3
LEVELS = ((ALWAYS_FOLD_BYTES, 9), (256 * 1024, 16), (1024 * 1024, 9))
"""How hard to compress, by the most content that this is for; it takes a few hundredths of a second at most.

A pack that will stay as it is, and be tracked so, is compressed hardest; the smallest are soon folded into others.
"""
FRAME_BYTES = 1024 * 1024
"""Larger than in packing, since no dictionary finds what frames have in common."""
READ_BYTES = 256 * 1024
"""So much of a journal is read and checked in one go."""
MAXIMUM_ATTEMPTS = 100
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO)


@value
class SealReport:
    """What a seal did.

    Attributes:
        transactions: how many were sealed.
        objects: how many were written to packs.
        packs: the names of the new packs.
        folded: how many packs were folded into the new ones.
        refs: the names of the refs whose files were brought up to date.
        accepted: the names of the refs that git had moved.
        unlogged: the names of the refs whose reflog could not be written.
    """

    transactions: int = 0
    objects: int = 0
    packs: tuple[str, ...] = ()
    folded: int = 0
    refs: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    unlogged: tuple[str, ...] = ()


def seal(
    store: Store, *, level: int | None = None, wait: bool = True, fully: bool = False
) -> SealReport:
    """Seal what the journals hold, and accept what git has moved; does nothing when there is neither.

    Args:
        store: what to seal.
        level: how hard to compress; None is for the content's size to say.
        wait: whether to wait for another process that is sealing or packing.
        fully: whether to look at the files of all refs; else only where something says that others changed them.

    Raises:
        LockedError: another process has been sealing for a minute, or is at all when not asked to wait.
        UnsupportedFormatError: the journal holds lasting frames that only a newer version understands.
        CorruptJournalError: an object in it is damaged, with no other copy.
        StorageError: the disk refuses; sealing again goes on where this stopped.
    """
    if not store.local or not _has_work(store, fully):
        return SealReport()
    with brief_lock(store, wait=wait):
        return _Sealing(store, level, fully).run()


def seal_or_sync(store: Store) -> None:
    """Seal, or where that cannot be done now make durable what was written, and log that it is not sealed.

    Raises:
        StorageError: the disk refuses to make it durable.
        UnsupportedFormatError, CorruptJournalError: as `seal`.
    """
    try:
        seal(store)
    except (errors.LockedError, errors.StorageError) as error:
        with store.mutex:
            store.journal.sync()
        maintenance.log.warn_of_unsealed(error)


def _has_work(store: Store, fully: bool) -> bool:
    assert isinstance(store.refs, RefDatabase)
    with store.mutex:
        journal = store.journal
        journal.refresh()
        if journal.lost or any(file.has_content() for file in journal.files):
            return True
        published, read = journal.published.tips, store.refs.files.read
        names = _unsettled(store.refs.overview.look(fully=fully), published)
        return any(set(read(name)) != set(published.get(name)) for name in names)


def _unsettled(look: Look, published: PublishedTips) -> list[str]:
    """Return the names of refs whose files may be others than this working copy published, sorted."""
    if len(look.unsettled) > FEW:
        published.all()  # one by one they would take longer
    return sorted(look.unsettled)


class _Sealing:
    """One seal, under the lock."""

    def __init__(self, store: Store, level: int | None, fully: bool) -> None:
        assert isinstance(store.refs, RefDatabase)
        assert isinstance(store.objects, ObjectDatabase)
        self._store = store
        self._refs = store.refs
        self._objects = store.objects
        self._level = level
        self._fully = fully
        self._fold = RefMoves()
        self._changes: dict[str, tuple[ObjectId, ...]] = {}
        self._logs: dict[str, list[ReflogEntry]] = {}
        self._files: dict[str, tuple[ObjectId, ...]] = {}
        self._written = 0

    def run(self) -> SealReport:
        store = self._store
        closed, before, covered = self._close_journals()
        self._refuse_unknown(closed)
        unended = [f for f in closed if f.frames and f.frames[-1].kind != END]
        if unended:
            keep_rests(store, unended)
        with store.mutex:
            look = self._refs.overview.look(fully=self._fully)
        packs, folded = self._write_packs(closed)
        keep_copies(store, packs)
        for file in closed:
            self._fold.apply_all(file.frames)
        self._refuse_overtaken(before)
        unsettled = _unsettled(look, before.tips)
        self._read_tips({*self._fold.refs, *unsettled}, before)
        moved = self._publish_moved(before)
        others = [name for name in unsettled if name not in self._changes]
        accepted = self._accept(others, before)
        unlogged: list[str] = []
        for name, entries in sorted(self._logs.items()):
            try:
                append_log(store.disk, store.layout.logs_dir, store.layout.log_file(name), entries)
            except errors.StorageError as error:
                if getattr(error, "errno", None) in _PASSING:
                    raise  # a seal that is repeated may write it
                unlogged.append(name)  # something stands in its place: it is worth less than a seal
        sealed = before.sealed.copy()
        for file in closed:
            sealed.add(file.line, file.number, file.number)
        changes = {n: tips for n, tips in self._changes.items() if before.tips.get(n) != tips}
        if sealed != before.sealed or changes or before.stamp is None:
            save(store.disk, store.layout, sealed, before, changes)
            self._refs.overview.note(look, before, changes)
        self._clean(covered, folded)
        transactions = sum(1 for file in closed for _ in file.transactions())
        return SealReport(
            transactions=transactions,
            objects=self._written,
            packs=tuple(packs),
            folded=len(folded),
            refs=tuple(moved),
            accepted=tuple(accepted),
            unlogged=tuple(unlogged),
        )

    def _close_journals(self) -> tuple[list[JournalFile], Published, dict[int, object]]:
        """Return the journals to seal, what was published before, and the journals that an earlier seal covered.

        Only journals that are there are sealed: one that is removed meanwhile is written anew into the next.
        """
        store, journal = self._store, self._store.journal
        for _ in range(MAXIMUM_ATTEMPTS):
            with store.mutex:
                journal.refresh()
                self._refuse_unknown(journal.files)  # before another journal is begun
            keys = store.rotate()
            with store.mutex:
                journal.refresh()
                closed = [file for file in journal.files if file.line and file.key in keys]
                if not journal.lost and {file.key for file in closed}.issuperset(
                    k for k in keys if k[0]
                ):
                    live = journal.files[-1].number if journal.files else 0
                    spent = [f for f in journal.files if not f.line and f.number < live]
                    gone = {number: stamp for number, (stamp, _) in journal.covered.items()}
                    for file in spent:
                        if store.disk.identity(file.path) == file.identity:
                            gone[file.number] = stamp_of(store.disk, file.path)
                    return closed, journal.published, gone
        raise errors.ConcurrencyError("the journal is removed again and again")

    def _refuse_overtaken(self, before: Published) -> None:
        """Accept that nobody else has sealed meanwhile, as only who deletes files of locks makes possible."""
        if stamp_of(self._store.disk, self._store.layout.published_file) != before.stamp:
            raise errors.ConcurrencyError("another process has sealed at the same time")

    def _refuse_unknown(self, files: list[JournalFile]) -> None:
        for file in files:
            kinds = file.unknown_kinds()
            if kinds:
                names = tuple(f"journal frame kind {kind}" for kind in kinds)
                path = self._store.layout.journal_file(file.number)
                raise errors.UnsupportedFormatError(
                    f"journal {file.number} holds frames unknown here", path=path, required=names
                )

    def _write_packs(self, files: list[JournalFile]) -> tuple[list[str], list[str]]:
        """Write the journals' objects, with those of the newest small packs, and return (new, folded) names."""
        objects = self._objects
        with self._store.mutex:
            objects.packs.refresh()
        fresh = [(file, file.places()) for file in files]
        purged = objects.look_for_tombstones()
        for oid in purged:
            for _, places in fresh:
                places.pop(ObjectId(oid), None)
        oids = frozenset(oid for _, places in fresh for oid in places)
        named = list(objects.packs.answers(lambda index: ids_among(index, oids)))
        known = False
        for oid in frozenset().union(*(each or () for each in named)):
            if self._is_packed(oid):
                known = True
                for _, places in fresh:
                    places.pop(ObjectId(oid), None)
        if known:  # their packs may be of a seal that was killed before their names were durable
            self._store.disk.sync_directory(self._store.layout.pack_dir)
            self._store.disk.sync_directory(self._store.layout.objects_dir)
        if not any(places for _, places in fresh):
            return [], []
        size = sum(length for _, places in fresh for _, length in places.values())
        fold, size = choose_packs(self._store, size)
        level = self._level or next((to for most, to in LEVELS if size <= most), QUICK_LEVEL)
        writer = PackWriter(
            self._store.disk, self._store.layout, level=level, frame_bytes=FRAME_BYTES
        )
        try:
            for name in fold:
                for oid, data in objects_of(self._store, name):
                    if oid not in purged:
                        writer.add(oid, data)
            for file, places in fresh:
                for oid, data in self._contents(file, places):
                    self._written += writer.add(oid, data)
            names = writer.finish()
        finally:
            writer.abandon()
        with self._store.mutex:
            objects.packs.refresh()
        return names, [name for name in fold if name not in names]

    def _is_packed(self, oid: bytes) -> bool:
        try:
            return self._objects.packs.read(oid) is not None
        except errors.FormatError:
            return False  # the journal's copy may be the last sound one

    def _contents(
        self, file: JournalFile, places: dict[ObjectId, tuple[int, int]]
    ) -> Iterator[tuple[ObjectId, bytes]]:
        """Yield (id, bytes) of objects that stand in a journal, each hash-checked."""
        for oids, start, end in _neighbours(places):
            data = self._store.journal.read_from(file, start, end - start)
            found = [
                data[offset - start : offset - start + size]
                for offset, size in map(places.__getitem__, oids)
            ]
            if joined_digests(found) != b"".join(oids):
                found = list(map(self._sound, oids, found))
            yield from zip(oids, found, strict=True)

    def _sound(self, oid: bytes, data: bytes) -> bytes:
        try:
            return check_hash(oid, data, "a journal")
        except errors.FormatError as error:
            copy = self._objects.loose.read(oid)
            if copy is None:
                raise errors.CorruptJournalError(str(error), oid=oid) from error
            return copy

    def _read_tips(self, names: set[str], before: Published) -> None:
        """Read each ref's files once. A second read would race with git, and could lose a tip that git removed."""
        read = self._refs.files.read
        found = {name: read(name) for name in names}
        gone = [
            (name, tip) for name in names for tip in before.tips.get(name) if tip not in found[name]
        ]
        for name, tip in put_back_tips(self._store, gone):
            found[name] = (*found[name], tip)
        self._files = found

    def _publish_moved(self, before: Published) -> list[str]:
        """Write the files of the refs that the closed journals moved."""
        for name, entries in entries_of(self._fold.frames).items():
            self._logs.setdefault(name, []).extend(entries)
        for name, fold in sorted(self._fold.refs.items()):
            files = self._files[name]
            known = before.tips.get(name, ())
            tips = self._refs.resolve(name, files, known, fold)
            self._refs.files.write(name, tips, files, known)
            self._changes[name] = tips
            first = self._logs[name][0]
            if known and first.old is not None and first.old not in known:
                entry = ReflogEntry(known[0], first.old, first.time, GIT, MOVED_BY_GIT)
                self._logs[name].insert(0, entry)
        return sorted(self._fold.refs)

    def _accept(self, names: list[str], before: Published) -> list[str]:
        """Take note of the refs, of some, that something else moved, and drop tips that others supersede."""
        accepted: list[str] = []
        pending = self._store.journal.fold.refs
        for name in names:
            here, known = self._files[name], before.tips.get(name)
            if set(here) == set(known) or (name in pending and name not in self._fold.refs):
                continue
            if not here and not self._fully and self._refs.witness.is_gone(name):
                continue  # a commit to it is refused; an explicit seal accepts it
            tips = self._refs.resolve(name, here, known, None)
            if len(tips) < len(here) and all(map(self._objects.contains, here)):
                self._refs.files.write(name, tips, here, known)
            kept = self._refs.files.read(name)
            self._changes[name] = (*tips, *(tip for tip in kept if tip not in tips))
            old, new = known[0] if known else None, tips[0] if tips else None
            if before.stamp is not None and old != new:
                entry = ReflogEntry(old, new, self._store.clock.now(), GIT, MOVED_BY_GIT)
                self._logs.setdefault(name, []).append(entry)
            accepted.append(name)
        return accepted

    def _clean(self, covered: dict[int, object], folded: list[str]) -> None:
        store = self._store
        remove_packs(store, folded)
        for number, stamp in covered.items():
            path = store.layout.journal_file(number)
            if stamp_of(store.disk, path) == stamp:  # not one that began anew under this number
                remove_if_possible(store.disk, path)
        sweep(store)


def _neighbours(
    places: dict[ObjectId, tuple[int, int]],
) -> Iterator[tuple[list[ObjectId], int, int]]:
    """Yield (objects, where the first begins, where the last ends), so many as stand one behind the other in a bound.

    An object that is larger than that comes alone.
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


def keep_rests(store: Store, files: list[JournalFile]) -> None:
    """Put what stands behind the frames of journals into `lost-found/`, before a seal is done with them.

    A write that did not come to its end was never acknowledged, and zeros are nothing.

    Raises:
        StorageError: the disk refuses.
    """
    for file in files:
        rest = b"" if is_distrusted(store, file) else rest_of(store, file)
        if rest.strip(b"\0") and (
            journal.recovery.transactions_in(rest)
            or not journal.recovery.is_cut_off(rest, file.end)
        ):
            keep_bytes(store, f"journal/{file.number}", rest)
