"""All packs of a repository.

Rule: an unreadable pack hides no other. The list is refreshed if an object is not found, because another process may
have sealed or repacked. A damaged pack is tried again if its file has changed, because git and other copying programs
write under the final name. Running out of descriptors is not damage.

Rule: the cache of decoded frames is bounded, least recently used first out. Dictionaries are counted separately,
because many frames share one.
"""

from __future__ import annotations

import errno
import os
from itertools import pairwise

from trace_store import errors
from trace_store.base.oid import (
    HEX_CHARACTERS,
    MAXIMUM_CANDIDATES,
    OID_BYTES,
    ObjectId,
    check_hash,
    digest,
    joined_digests,
)
from trace_store.disk.files import create_file
from trace_store.disk.layout import PACK_SUFFIX
from trace_store.odb.compression import Dictionary, PartialFrame
from trace_store.odb.delta_links import expand_all_links, expand_links, numbers_by_id
from trace_store.odb.pack import (
    DICTIONARY,
    MAXIMUM_DICTIONARY_BYTES,
    NEEDS_DICTIONARY,
    NO_DESCRIPTORS,
    SHORT_LINKS,
    OpenFiles,
    Pack,
)
from trace_store.odb.pack_index import LoadedIndexes, PackIndex, build_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout

    T = TypeVar("T")
    from trace_store.odb.pack import Pack
    from trace_store.odb.pack_index import PackIndex

MAXIMUM_ATTEMPTS = 20
READ_BACK_GROWTH = 8
MAXIMUM_READ_BACK = 512
READ_BACK_BYTES = 1024 * 1024
"""How many objects, and of how many bytes, are read together by a walk from a commit to its parents."""
_HEX = frozenset("0123456789abcdef")


class IndexedPack:
    """A pack with its index.

    `index_file` is its handle, None if the index is only in memory.
    """

    __slots__ = ("index", "index_file", "pack")

    def __init__(self, pack: Pack, index: PackIndex, index_file: int | None) -> None:
        self.pack = pack
        self.index = index
        self.index_file = index_file


class FrameObjects:
    """All objects of a frame.

    Attributes:
        first: the number of the first one in its pack.
        forms: as they are stored; the list of `objects` unless they have short links.
        objects: their bytes.
        ids: the joined ids of all objects of the pack.
    """

    __slots__ = ("first", "forms", "ids", "objects")

    def __init__(self, first: int, forms: list[bytes], objects: list[bytes], ids: bytes) -> None:
        self.first = first
        self.forms = forms
        self.objects = objects
        self.ids = ids

    def linked_numbers(self, number: int) -> dict[bytes, int]:
        """Return the numbers of the objects that an object has short links to, by their ids."""
        if self.forms is self.objects:
            return {}
        return numbers_by_id(self.forms[number - self.first], number, self.ids)

    def id_of(self, number: int) -> ObjectId:
        """Return the id of an object of the pack."""
        return ObjectId(self.ids[OID_BYTES * number : OID_BYTES * (number + 1)])


class Packs:
    """The packs, with a cache of decoded frames."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._files = OpenFiles(disk)
        self._open: dict[str, IndexedPack] = {}
        self._listed = False
        self._recent = ""
        self._cache = FrameCache()
        self._loaded = LoadedIndexes()
        self._read_back = _ReadBack()
        self.damaged: dict[str, errors.CorruptPackError] = {}
        """Why a pack, or a part of it, is unreadable, by name."""
        self._stamps: dict[str, tuple[int, ...] | None] = {}

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, hash-checked, or None if no pack has it.

        Raises:
            CorruptObjectError: every copy is damaged or unreadable.
            StorageError: out of file descriptors.
        """
        self._list()
        known = self._read_back.take(oid)
        if known is not None:
            return known
        failure: errors.TraceError | None = None
        for packed in self._likely_first():
            try:
                number = packed.index.find(oid)
                if number is None:
                    continue
                self._recent = packed.pack.name
                data = check_hash(oid, self._extract(packed, number), packed.pack.path)
                if self._read_back.is_due(packed, number):
                    self._read_back.keep(packed, number, self._cut_run)
                return data
            except (
                errors.CorruptObjectError,
                errors.CorruptIndexError,
                errors.StorageError,
            ) as error:
                failure = _unless_exhausted(error)
            if packed.index_file is None:
                continue  # the index was built from the pack itself
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
        """Return the bytes of the first objects, hash-checked.

        At least one, up to about `limit` bytes.

        None means that no pack has the object, or that only `read` can recover it.
        """
        self._list()
        contents: list[bytes | None] = []
        while len(contents) < len(oids) and limit > 0:
            left = oids[len(contents) :]
            pieces: list[bytes] = []
            try:
                packed, runs = self._locate(left)
                if packed is not None:
                    pieces = self._cut(packed, runs, limit)
            except (errors.CorruptObjectError, errors.CorruptIndexError, errors.StorageError):
                pass
            del left[len(pieces) :]
            if joined_digests(pieces) == b"".join(left):
                contents += pieces
            else:
                checked = zip(pieces, left, strict=True)
                contents += [data if digest(data) == oid else None for data, oid in checked]
            if not pieces:
                contents.append(None)
            limit -= sum(map(len, pieces))
        return contents

    def read_frame(self, name: str, number: int) -> FrameObjects:
        """Return the objects of the frame that an object is in, hash-checked.

        Raises:
            CorruptObjectError: an object is damaged, or the index is wrong.
            CorruptIndexError: the index is wrong.
            StorageError: the pack was removed or cannot be read.
        """
        import bisect  # reading one object needs none

        packed = self.get(name)
        if packed is None:
            path = self._layout.pack_file(name)
            raise errors.StorageError("the pack was removed", path=path, errno=errno.ENOENT)
        index = packed.index
        if not index.frame_of:
            index.load()
        frames, frame = index.frame_of, index.frame_of[number]
        first = bisect.bisect_left(frames, frame, 0, number)
        stop = bisect.bisect_right(frames, frame, number, index.objects)
        if stop <= number:
            raise errors.CorruptIndexError("the pack index is not in the order of the frames")
        forms, objects = next(self._cut_run(packed, range(first, stop)))
        ids = index.ids
        if joined_digests(objects) != ids[OID_BYTES * first : OID_BYTES * stop]:
            raise errors.CorruptObjectError("a frame does not match the pack index")
        return FrameObjects(first, forms, objects, ids)

    def contains(self, oid: bytes) -> bool:
        """Return True if a pack has the object."""
        return any(place is not None for place in self.query(lambda index: index.find(oid)))

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return the ids that start with these hex digits."""
        matches = self.query(lambda index: index.with_prefix(prefix, MAXIMUM_CANDIDATES))
        return [oid for ids in matches for oid in ids or ()]

    def iterate(self) -> Iterator[ObjectId]:
        """Yield all ids, pack by pack in their order; duplicates included."""
        for ids in self.query(lambda index: list(index.in_order())):
            yield from ids or ()

    def query(self, ask: Callable[[PackIndex], T]) -> Iterator[T | None]:
        """Yield the result of a function for each pack's index.

        None if the pack is unreadable.
        """
        return (self._query_one(packed, ask) for packed in self._all())

    def names(self) -> list[str]:
        """Return the names of the readable packs."""
        self._list()
        return list(self._open)

    def get(self, name: str) -> IndexedPack | None:
        """Return an open pack by name, or None."""
        self._list()
        return self._open.get(name)

    def refresh(self) -> bool:
        """List the packs again; return True if there are new ones."""
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
                break  # otherwise one was repacked before it could be opened
        self._listed = True
        return added

    def repair_indexes(self) -> bool:
        """Check all indexes completely and rebuild damaged ones.

        Return True if there were any.
        """
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
                self._record_damage(packed.pack.name, _unless_exhausted(error))
        return repaired

    def close(self) -> None:
        """Close all files."""
        for name in list(self._open):
            self._drop(name)
        self._listed = False

    def _locate(self, oids: list[bytes]) -> tuple[IndexedPack | None, list[range]]:
        """Return the pack that has the first object, and the numbers of the objects there."""
        for packed in self._likely_first():
            runs = packed.index.runs(oids)
            if runs:
                self._recent = packed.pack.name
                return packed, runs
        return None, []

    def _likely_first(self) -> Iterator[IndexedPack]:
        """Yield all packs, the last used one first: neighbours are read together."""
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
        """Yield all packs, including those that replace one during the iteration."""
        self._list()
        done: set[str] = set()
        while True:
            left = [packed for packed in self._likely_first() if packed.pack.name not in done]
            if not left:
                return
            for packed in left:
                done.add(packed.pack.name)
                yield packed

    def _query_one(self, packed: IndexedPack, ask: Callable[[PackIndex], T]) -> T | None:
        """Return a function's result for an index, rebuilding it if needed.

        None if unreadable.
        """
        try:
            return ask(packed.index)
        except (errors.CorruptIndexError, errors.StorageError) as error:
            _unless_exhausted(error)
        try:
            return ask(self._reindex(packed).index)
        except errors.StorageError as error:
            self._record_damage(packed.pack.name, _unless_exhausted(error))
            self.refresh()
            return None

    def _drop(self, name: str) -> None:
        self.damaged.pop(name, None)
        self._stamps.pop(name, None)
        packed = self._open.pop(name, None)
        if packed is not None:
            packed.pack.close()
            self._loaded.drop(packed.index)
            if packed.index_file is not None:
                self._files.close(packed.index_file)
        self._cache.drop(name)
        self._read_back = _ReadBack()

    def _add(self, name: str) -> bool:
        path = self._layout.pack_file(name)
        self._stamps[name] = self._stamp(name)  # before reading, so that later changes are seen
        try:
            file = self._files.open(path)
            if file is None:
                return False
            pack = Pack(self._files, path, name, file)
            self._open[name] = self._load_index(pack) or self._build_index(pack)
        except (errors.StorageError, errors.CorruptPackError) as error:
            self._record_damage(name, _unless_exhausted(error))
            return False
        return True

    def _record_damage(self, name: str, error: errors.TraceError) -> None:
        """Record why a pack is unreadable; after a StorageError it is always tried again."""
        if isinstance(error, errors.StorageError):
            self._stamps[name] = None
            error = errors.CorruptPackError(
                f"pack {name[:12]} is unreadable: {error}", path=self._layout.pack_file(name)
            )
        if isinstance(error, errors.CorruptPackError):
            self.damaged[name] = error

    def _has_changed(self, name: str) -> bool:
        stamp = self._stamps.get(name)
        return stamp is None or stamp != self._stamp(name)

    def _stamp(self, name: str) -> tuple[int, ...] | None:
        stat = self._disk.stat(self._layout.pack_file(name))
        if stat is None:
            return None
        return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino

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
                lambda at, size: self._files.read_at(file, at, size),
                self._files.size(file),
                pack,
                self._loaded,
            )
        except (errors.CorruptIndexError, errors.StorageError) as error:
            self._files.close(file)
            _unless_exhausted(error)
            return None
        return IndexedPack(pack, index, file)

    def _build_index(self, pack: Pack) -> IndexedPack:
        data, whole = build_index(pack)
        if whole and self._save_index(pack.name, data):
            loaded = self._load_index(pack)
            if loaded is not None:
                return loaded
        index = PackIndex(lambda at, size: data[at : at + size], len(data), pack)
        index.verified = True
        if not whole:
            what = f"pack {pack.name[:12]} is damaged: parts of it are unreadable"
            self._record_damage(pack.name, errors.CorruptPackError(what, path=pack.path))
        return IndexedPack(pack, index, None)

    def _save_index(self, name: str, data: bytes) -> bool:
        try:
            self._replace_index(name, data)
        except errors.StorageError:
            return False  # a read-only repository: the index stays in memory
        return True

    def _replace_index(self, name: str, data: bytes) -> None:
        self._disk.make_directory(self._layout.tmp_dir)
        temporary = os.path.join(
            self._layout.tmp_dir, f"pack-{os.getpid()}-{os.urandom(6).hex()}.idx"
        )
        create_file(self._disk, temporary, data)  # `pack_writer` explains why it is synced
        self._disk.rename(temporary, self._layout.pack_index_file(name))

    def _reindex(self, packed: IndexedPack) -> IndexedPack:
        rebuilt = self._build_index(packed.pack)
        self._loaded.drop(packed.index)
        # The damaged index may have named the wrong bytes or flags.
        self._cache.drop(packed.pack.name)
        if packed.index_file is not None:
            self._files.close(packed.index_file)
        self._open[packed.pack.name] = rebuilt
        return rebuilt

    def _extract(self, packed: IndexedPack, number: int) -> bytes:
        """Return the bytes of an object, unchecked."""
        index = packed.index
        frame, offset, end = index.row(number)
        raw, flags = self._cache.frame(packed.pack, index, frame, end)
        data = raw[offset : end or len(raw)]
        return expand_links(data, number, index.id_of) if flags & SHORT_LINKS else data

    def _cut(self, packed: IndexedPack, runs: list[range], limit: int) -> list[bytes]:
        """Return the bytes of the first objects, unchecked.

        At least one, up to about `limit` bytes.
        """
        pieces: list[bytes] = []
        try:
            for run in runs:
                for _, cut in self._cut_run(packed, run):
                    pieces += cut
                    limit -= sum(map(len, cut))
                    if limit <= 0:
                        return pieces
        except (errors.CorruptObjectError, errors.CorruptIndexError, errors.StorageError):
            if not pieces:
                raise
        return pieces

    def _cut_run(
        self, packed: IndexedPack, run: range
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield the stored forms and the bytes of consecutive objects, frame by frame."""
        pack, index, first = packed.pack, packed.index, run.start
        frames = index.frame_of
        if not frames:
            yield from (([], [self._extract(packed, number)]) for number in run)
            return
        while first < run.stop:
            frame = frames[first]
            stop = first + 1
            if stop < run.stop:
                import bisect  # reading one object needs none

                stop = bisect.bisect_right(frames, frame, first, run.stop)
            cuts = index.offset_of[first : stop + 1].tolist()
            last = frames[stop] != frame
            # A single object may need only a part of its frame decompressed.
            end = cuts[-1] if len(run) == 1 and not last else None
            raw, flags = self._cache.frame(pack, index, frame, end)
            if last:
                cuts[-1] = len(raw)
            cut = [raw[start:end] for start, end in pairwise(cuts)]
            yield cut, expand_all_links(cut, first, index.ids) if flags & SHORT_LINKS else cut
            first = stop


def _unless_exhausted(error: errors.TraceError) -> errors.TraceError:
    """Return the error, but raise it if the process is out of descriptors."""
    if isinstance(error, errors.StorageError) and error.data.get("errno") in NO_DESCRIPTORS:
        raise error
    return error


def missing_packs(disk: Disk, layout: Layout) -> list[str]:
    """Return the names of the packs that exist only as second copies, sorted."""
    kept = disk.names(layout.kept_packs_dir)
    missing = set(kept).difference(disk.names(layout.pack_dir))
    return sorted(n.removesuffix(PACK_SUFFIX) for n in missing if n.endswith(PACK_SUFFIX))


def pack_names(disk: Disk, layout: Layout) -> list[str]:
    """Return the names of the packs on disk, sorted."""
    names = [n[: -len(PACK_SUFFIX)] for n in disk.names(layout.pack_dir) if n.endswith(PACK_SUFFIX)]
    return [n for n in names if len(n) == HEX_CHARACTERS and _HEX.issuperset(n)]


class _ReadBack:
    """Objects before the last one read, for walks that go back one object at a time.

    A history is stored oldest first, so its walk asks for neighbours, in reverse. Reading them together saves half of
    the cost of each. The number read at once grows with the walk, so that a short one reads little.
    """

    __slots__ = ("_kept", "_last", "_size")

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}
        self._last = ("", -1)
        """The pack and the number of the last object read, or of the first one kept."""
        self._size = 1

    def take(self, oid: bytes) -> bytes | None:
        """Return an object if it was kept, and forget it."""
        return self._kept.pop(oid, None)

    def is_due(self, packed: IndexedPack, number: int) -> bool:
        """Return True if this object precedes the last one."""
        is_next = self._last == (packed.pack.name, number + 1)
        self._last = packed.pack.name, number
        if not is_next:
            self._size = 1
        return is_next

    def keep(
        self,
        packed: IndexedPack,
        number: int,
        cut: Callable[[IndexedPack, range], Iterator[tuple[list[bytes], list[bytes]]]],
    ) -> None:
        """Keep the objects before this one in its frame, if all are sound."""
        index = packed.index
        if not index.frame_of or not number:
            return
        import bisect  # reading one object needs none

        self._size = min(self._size * READ_BACK_GROWTH, MAXIMUM_READ_BACK)
        first = bisect.bisect_left(index.frame_of, index.frame_of[number], 0, number)
        first = max(first, number - self._size)
        least = index.offset_of[number] - READ_BACK_BYTES
        first = bisect.bisect_left(index.offset_of, least, first, number)
        if first == number:
            return
        try:
            pieces = [data for _, cuts in cut(packed, range(first, number)) for data in cuts]
        except (errors.CorruptObjectError, errors.CorruptIndexError, errors.StorageError):
            return  # reading them one by one raises the right error
        ids = index.ids[OID_BYTES * first : OID_BYTES * number]
        if joined_digests(pieces) == ids:
            starts = range(0, len(ids), OID_BYTES)
            self._kept = dict(zip([ids[at : at + OID_BYTES] for at in starts], pieces, strict=True))
            self._last = packed.pack.name, first


CACHE_BYTES = 96 * 1024 * 1024
"""As much as git's default for delta bases."""
PASSING_BYTES = 16 * 1024 * 1024
"""The limit while frames are read in sequence: they are not read again."""
DICTIONARY_CACHE_BYTES = 64 * 1024 * 1024


class FrameCache:
    """Decoded frames and dictionaries by pack and number."""

    __slots__ = ("_dictionaries", "_dictionary_bytes", "_frame_bytes", "_frames", "_unfinished")

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int], tuple[bytes, int, int]] = {}
        """Content so far, flags, and size of the whole content."""
        self._frame_bytes = 0
        self._unfinished: tuple[tuple[str, int], PartialFrame] | None = None
        """The last partly decompressed frame; only one is kept open."""
        self._dictionaries: dict[tuple[str, int], Dictionary] = {}
        self._dictionary_bytes = 0

    def frame(
        self, pack: Pack, index: PackIndex, number: int, end: int | None = None
    ) -> tuple[bytes, int]:
        """Return a frame's raw content and its flags.

        Args:
            pack: the pack.
            index: its index.
            number: the frame's number.
            end: decompress at least up to this offset; 0 for all, None for all if frames are read in sequence.

        Raises:
            CorruptObjectError: the frame is damaged.
            CorruptIndexError: it is not where the index says.
        """
        key = pack.name, number
        entry = self._frames.pop(key, None)
        if entry is None or len(entry[0]) < (end or entry[2]):
            if entry is not None:
                self._frame_bytes -= len(entry[0])
            entry = self._decode(pack, index, key, end)
            self._frame_bytes += len(entry[0])
            bound = PASSING_BYTES if end is None else CACHE_BYTES
            while self._frame_bytes > bound and self._frames:
                self._frame_bytes -= len(self._frames.pop(next(iter(self._frames)))[0])
        self._frames[key] = entry  # now the most recently used
        return entry[0], entry[1]

    def drop(self, name: str) -> None:
        """Remove the entries of a pack."""
        for key in [key for key in self._frames if key[0] == name]:
            self._frame_bytes -= len(self._frames.pop(key)[0])
        for key in [key for key in self._dictionaries if key[0] == name]:
            self._dictionary_bytes -= self._dictionaries.pop(key).size
        if self._unfinished is not None and self._unfinished[0][0] == name:
            self._unfinished = None

    def _decode(
        self, pack: Pack, index: PackIndex, key: tuple[str, int], end: int | None
    ) -> tuple[bytes, int, int]:
        place, dictionary = index.place(key[1])
        if self._unfinished is not None and self._unfinished[0] == key:
            partial = self._unfinished[1]
        elif place.flags & NEEDS_DICTIONARY:
            partial = pack.open_frame(place, self._dictionary(pack, index, dictionary))
        else:
            partial = pack.open_frame(place)
        content = partial.until(end or place.raw)
        if len(content) < place.raw:
            self._unfinished = key, partial
        elif self._unfinished is not None and self._unfinished[0] == key:
            self._unfinished = None
        return content, place.flags, place.raw

    def _dictionary(self, pack: Pack, index: PackIndex, number: int) -> Dictionary:
        key = pack.name, number
        dictionary = self._dictionaries.pop(key, None)
        if dictionary is None:
            if number < 0:
                raise errors.CorruptIndexError("a frame's dictionary is missing")
            place, _ = index.place(number)
            if place.flags != DICTIONARY or place.raw > MAXIMUM_DICTIONARY_BYTES:
                raise errors.CorruptIndexError("a frame's dictionary is not a dictionary")
            dictionary = Dictionary(pack.decode(place))
            self._dictionary_bytes += dictionary.size
            while self._dictionary_bytes > DICTIONARY_CACHE_BYTES and self._dictionaries:
                oldest = self._dictionaries.pop(next(iter(self._dictionaries)))
                self._dictionary_bytes -= oldest.size
        self._dictionaries[key] = dictionary
        return dictionary
