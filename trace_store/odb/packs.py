"""All packs of a repository.

Rule: a pack that cannot be read hides no other. The list is read again when an object is not found, because another
process may have sealed or folded packs meanwhile; a damaged pack is then tried anew when its file has changed, since
whoever copies files, as git does, writes them under their final name. A lack of descriptors is no damage.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import pairwise

from trace_store import errors
from trace_store.files import create_file
from trace_store.layout import PACK_SUFFIX
from trace_store.odb.checks import MAXIMUM_CANDIDATES, check_hash
from trace_store.odb.delta_links import lengthen, lengthen_all
from trace_store.odb.frame_cache import FrameCache
from trace_store.odb.open_files import NO_DESCRIPTORS, OpenFiles
from trace_store.odb.pack import SHORT_LINKS, Pack
from trace_store.odb.pack_index import PackIndex, build_index
from trace_store.oid import HEX_CHARACTERS, ObjectId, digest, joined_digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from trace_store.files import Disk
    from trace_store.layout import Layout

    T = TypeVar("T")

MAXIMUM_ATTEMPTS = 20
_HEX = frozenset("0123456789abcdef")


class IndexedPack:
    """A pack with its index; `index_file`, a handle, is None when the index is only in memory."""

    __slots__ = ("index", "index_file", "pack")

    def __init__(self, pack: Pack, index: PackIndex, index_file: int | None) -> None:
        self.pack = pack
        self.index = index
        self.index_file = index_file


class Packs:
    """The packs, and a small cache of decoded frames."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._files = OpenFiles(disk)
        self._open: dict[str, IndexedPack] = {}
        self._listed = False
        self._recent = ""
        self._cache = FrameCache()
        self.damaged: dict[str, errors.CorruptPackError] = {}
        """Why a pack, or a part of it, cannot be read, by its name."""
        self._stamps: dict[str, tuple[int, ...] | None] = {}

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, hash-checked, or None when no pack has it.

        Raises:
            CorruptObjectError: every copy is damaged, or the disk refuses it.
            StorageError: the process has no descriptor left.
        """
        self._list()
        failure: errors.TraceError | None = None
        for packed in self._likely_first():
            try:
                number = packed.index.find(oid)
                if number is None:
                    continue
                self._recent = packed.pack.name
                return check_hash(oid, self._extract(packed, number), packed.pack.path)
            except (
                errors.CorruptObjectError,
                errors.CorruptIndexError,
                errors.StorageError,
            ) as error:
                failure = _unless_exhausted(error)
            if packed.index_file is None:
                continue  # the index was made of the pack itself
            try:
                again = self._reindex(packed)
                number = again.index.find(oid)
                if number is not None:
                    return check_hash(oid, self._extract(again, number), packed.pack.path)
            except (
                errors.CorruptObjectError,
                errors.CorruptIndexError,
                errors.StorageError,
            ) as error:
                failure = _unless_exhausted(error)
        if failure is not None:
            raise errors.CorruptObjectError(
                f"object {oid.hex()} is damaged in a pack: {failure}", oid=ObjectId(oid)
            ) from failure
        return None

    def read_quickly(self, oids: list[bytes], limit: int) -> list[bytes | None]:
        """Return the bytes of the first of these objects, hash-checked, one at least and so many until `limit` bytes.

        None stands for what no pack has, and for whatever else `read` has to deal with.
        """
        self._list()
        found: list[bytes | None] = []
        while len(found) < len(oids) and limit > 0:
            left = oids[len(found) :]
            pieces: list[bytes] = []
            try:
                packed, runs = self._locate(left)
                if packed is not None:
                    pieces = self._cut(packed, runs, limit)
            except (errors.CorruptObjectError, errors.CorruptIndexError, errors.StorageError):
                pass
            del left[len(pieces) :]
            if joined_digests(pieces) == b"".join(left):
                found += pieces
            else:
                checked = zip(pieces, left, strict=True)
                found += [data if digest(data) == oid else None for data, oid in checked]
            if not pieces:
                found.append(None)
            limit -= sum(map(len, pieces))
        return found

    def contains(self, oid: bytes) -> bool:
        """Tell whether a pack has the object."""
        return any(place is not None for place in self.answers(lambda index: index.find(oid)))

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return ids that begin with these hex digits."""
        found = self.answers(lambda index: index.with_prefix(prefix, MAXIMUM_CANDIDATES))
        return [oid for ids in found for oid in ids or ()]

    def iterate(self) -> Iterator[ObjectId]:
        """Yield all ids, pack by pack as they stand there; an object in two packs comes twice."""
        for ids in self.answers(lambda index: list(index.in_order())):
            yield from ids or ()

    def answers(self, ask: Callable[[PackIndex], T]) -> Iterator[T | None]:
        """Yield what the index of each pack answers; None for a pack that is gone, or cannot be read."""
        return (self._readable(packed, ask) for packed in self._all())

    def names(self) -> list[str]:
        """Return the names of the packs that can be read."""
        self._list()
        return list(self._open)

    def get(self, name: str) -> IndexedPack | None:
        """Return an open pack by its name."""
        self._list()
        return self._open.get(name)

    def refresh(self) -> bool:
        """List the packs again and tell whether there are others than before."""
        added = False
        for _ in range(MAXIMUM_ATTEMPTS):
            present = set(pack_names(self._disk, self._layout))
            for name in [n for n in self.damaged if n in present and self._has_changed(n)]:
                self._drop(name)
            known = set(self._open) | set(self.damaged)
            for name in known - present:
                self._drop(name)
            new = sorted(present - known)
            opened = [name for name in new if self._add(name)]
            added = added or bool(opened)
            if all(name in self._open or name in self.damaged for name in new):
                break  # else one was folded into another before it could be opened
        self._listed = True
        return added

    def repair_indexes(self) -> bool:
        """Check every index as a whole, make the damaged ones again, and tell whether there were any."""
        repaired = False
        for packed in list(self._open.values()):
            try:
                if packed.index.verify():
                    continue
            except errors.StorageError as error:
                _unless_exhausted(error)
            try:
                self._reindex(packed)
                repaired = True
            except errors.StorageError as error:
                self._note(packed.pack.name, _unless_exhausted(error))
        return repaired

    def close(self) -> None:
        """Close all files."""
        for name in list(self._open):
            self._drop(name)
        self._listed = False

    def _locate(self, oids: list[bytes]) -> tuple[IndexedPack | None, list[range]]:
        """Return the pack that has the first of these objects, with the numbers of those that follow it there."""
        for packed in self._likely_first():
            runs = packed.index.runs(oids)
            if runs:
                self._recent = packed.pack.name
                return packed, runs
        return None, []

    def _likely_first(self) -> Iterator[IndexedPack]:
        """Yield all packs, beginning with the one that had the last object: neighbours are read together."""
        recent = self._open.get(self._recent)
        if recent is not None:
            yield recent
        for packed in list(self._open.values()):
            if packed is not recent:
                yield packed

    def _list(self) -> None:
        if not self._listed:
            self.refresh()

    def _all(self) -> Iterator[IndexedPack]:
        """Yield all packs, also those that take the place of one that went meanwhile."""
        self._list()
        done: set[str] = set()
        while True:
            left = [packed for packed in self._likely_first() if packed.pack.name not in done]
            if not left:
                return
            for packed in left:
                done.add(packed.pack.name)
                yield packed

    def _readable(self, packed: IndexedPack, ask: Callable[[PackIndex], T]) -> T | None:
        """Return what an index answers, made again if need be; None when the pack is gone, or cannot be read."""
        try:
            return ask(packed.index)
        except (errors.CorruptIndexError, errors.StorageError) as error:
            _unless_exhausted(error)
        try:
            return ask(self._reindex(packed).index)
        except errors.StorageError as error:
            self._note(packed.pack.name, _unless_exhausted(error))
            self.refresh()
            return None

    def _drop(self, name: str) -> None:
        self.damaged.pop(name, None)
        self._stamps.pop(name, None)
        packed = self._open.pop(name, None)
        if packed is not None:
            packed.pack.close()
            if packed.index_file is not None:
                self._files.close(packed.index_file)
        self._cache.drop(name)

    def _add(self, name: str) -> bool:
        path = self._layout.pack_file(name)
        self._stamps[name] = self._stamp(name)  # before it is read: what is written later is seen
        try:
            file = self._files.open(path)
            if file is None:
                return False
            pack = Pack(self._files, path, name, file)
            self._open[name] = self._load_index(pack) or self._make_index(pack)
        except (errors.StorageError, errors.CorruptPackError) as error:
            self._note(name, _unless_exhausted(error))
            return False
        return True

    def _note(self, name: str, error: errors.TraceError) -> None:
        """Record why a pack cannot be read; what the disk refused is tried again in any case."""
        if isinstance(error, errors.StorageError):
            self._stamps[name] = None
            error = errors.CorruptPackError(
                f"pack {name[:12]} cannot be read: {error}", path=self._layout.pack_file(name)
            )
        if isinstance(error, errors.CorruptPackError):
            self.damaged[name] = error

    def _has_changed(self, name: str) -> bool:
        stamp = self._stamps.get(name)
        return stamp is None or stamp != self._stamp(name)

    def _stamp(self, name: str) -> tuple[int, ...] | None:
        found = self._disk.stat(self._layout.pack_file(name))
        if found is None:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino

    def _load_index(self, pack: Pack) -> IndexedPack | None:
        try:
            file = self._files.open(self._layout.pack_index_file(pack.name))
        except errors.StorageError as error:
            _unless_exhausted(error)
            return None
        if file is None:
            return None
        try:
            index = PackIndex(
                lambda at, size: self._files.read_at(file, at, size), self._files.size(file), pack
            )
        except (errors.CorruptIndexError, errors.StorageError) as error:
            self._files.close(file)
            _unless_exhausted(error)
            return None
        return IndexedPack(pack, index, file)

    def _make_index(self, pack: Pack) -> IndexedPack:
        data, whole = build_index(pack)
        index = PackIndex(lambda at, size: data[at : at + size], len(data), pack)
        index.verified = True
        if whole:
            self._save_index(pack.name, data)
        else:
            what = f"pack {pack.name[:12]} is damaged: not all of it can be read"
            self._note(pack.name, errors.CorruptPackError(what, path=pack.path))
        return IndexedPack(pack, index, None)

    def _save_index(self, name: str, data: bytes) -> None:
        try:
            self._replace_index(name, data)
        except errors.StorageError:
            return  # a read-only repository: the index stays in memory

    def _replace_index(self, name: str, data: bytes) -> None:
        self._disk.make_directory(self._layout.tmp_dir)
        temporary = os.path.join(
            self._layout.tmp_dir, f"pack-{os.getpid()}-{os.urandom(6).hex()}.idx"
        )
        create_file(self._disk, temporary, data)  # see `pack_files` for why it is synced
        self._disk.rename(temporary, self._layout.pack_index_file(name))

    def _reindex(self, packed: IndexedPack) -> IndexedPack:
        made = self._make_index(packed.pack)
        if packed.index_file is not None:
            self._files.close(packed.index_file)
        self._open[packed.pack.name] = made
        return made

    def _extract(self, packed: IndexedPack, number: int) -> bytes:
        """Return the bytes of an object, unchecked."""
        index = packed.index
        frame, offset, end = index.row(number)
        raw, sort = self._cache.frame(packed.pack, index, frame, end)
        data = raw[offset : end or len(raw)]
        return lengthen(data, number, index.id_of) if sort & SHORT_LINKS else data

    def _cut(self, packed: IndexedPack, runs: list[range], limit: int) -> list[bytes]:
        """Return the bytes of the first of some objects, unchecked, one at least and so many until `limit` bytes."""
        pieces: list[bytes] = []
        try:
            for run in runs:
                for cut in self._cut_run(packed, run):
                    pieces += cut
                    limit -= sum(map(len, cut))
                    if limit <= 0:
                        return pieces
        except (errors.CorruptObjectError, errors.CorruptIndexError, errors.StorageError):
            if not pieces:
                raise
        return pieces

    def _cut_run(self, packed: IndexedPack, run: range) -> Iterator[list[bytes]]:
        """Yield the bytes of objects that stand one after the other, frame by frame."""
        pack, index, first = packed.pack, packed.index, run.start
        frames = index.frame_of
        if not frames:
            yield from ([self._extract(packed, number)] for number in run)
            return
        while first < run.stop:
            frame = frames[first]
            stop = bisect_right(frames, frame, first, run.stop)
            cuts = index.offset_of[first : stop + 1].tolist()
            last = frames[stop] != frame
            # Of a frame in which nothing is read on, no more is decompressed than is needed.
            end = cuts[-1] if len(run) == 1 and not last else None
            raw, sort = self._cache.frame(pack, index, frame, end)
            if last:
                cuts[-1] = len(raw)
            cut = [raw[start:end] for start, end in pairwise(cuts)]
            yield lengthen_all(cut, first, index.ids) if sort & SHORT_LINKS else cut
            first = stop


def _unless_exhausted(error: errors.TraceError) -> errors.TraceError:
    """Return the error, or raise it when it only says that no descriptor is left."""
    if isinstance(error, errors.StorageError) and error.data.get("errno") in NO_DESCRIPTORS:
        raise error
    return error


def pack_names(disk: Disk, layout: Layout) -> list[str]:
    """Return the names of the packs on the disk, sorted."""
    names = [n[: -len(PACK_SUFFIX)] for n in disk.names(layout.pack_dir) if n.endswith(PACK_SUFFIX)]
    return [n for n in names if len(n) == HEX_CHARACTERS and _HEX.issuperset(n)]
