"""All packs of a repository.

Rule: a pack that cannot be read hides no other. The list is read again when an object is not found, because another
process may have sealed or folded packs meanwhile.
"""

from __future__ import annotations

import os

from trace_store.errors import (
    CorruptIndexError,
    CorruptObjectError,
    CorruptPackError,
    FormatError,
    StorageError,
)
from trace_store.files import create_file
from trace_store.layout import PACK_SUFFIX
from trace_store.odb.checks import MAXIMUM_CANDIDATES, check_hash
from trace_store.odb.pack import FramePlace, Pack, prefix_of
from trace_store.odb.pack_index import PackIndex, build_index
from trace_store.oid import HEX_CHARACTERS, ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.files import Disk
    from trace_store.layout import Layout

CACHE_BYTES = 16 * 1024 * 1024
MAXIMUM_ATTEMPTS = 20
_HEX = frozenset("0123456789abcdef")


class IndexedPack:
    """A pack with its index; `index_fd` is None when the index is only in memory."""

    __slots__ = ("index", "index_fd", "pack")

    def __init__(self, pack: Pack, index: PackIndex, index_fd: int | None) -> None:
        self.pack = pack
        self.index = index
        self.index_fd = index_fd


class Packs:
    """The packs, and a small cache of decoded frames."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._open: dict[str, IndexedPack] = {}
        self._listed = False
        self._recent = ""
        self._frames: dict[tuple[str, int], bytes] = {}
        self._frame_bytes = 0
        self.damaged: dict[str, CorruptPackError] = {}
        """Why a pack, or a part of it, cannot be read, by its name."""

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, hash-checked, or None when no pack has it.

        Raises:
            CorruptObjectError: every copy is damaged.
        """
        self._list()
        failure: FormatError | None = None
        for packed in self._likely_first():
            found = packed.index.find(oid)
            if found is None:
                continue
            self._recent = packed.pack.name
            try:
                return self._extract(packed, oid, found)
            except (CorruptObjectError, CorruptIndexError) as error:
                failure = error
            try:
                again = self._reindex(packed)
                found = again.index.find(oid)
                if found is not None:
                    return self._extract(again, oid, found)
            except (CorruptObjectError, CorruptIndexError) as error:
                failure = error
        if failure is not None:
            raise CorruptObjectError(
                f"object {oid.hex()} is damaged in a pack: {failure}", oid=ObjectId(oid)
            ) from failure
        return None

    def contains(self, oid: bytes) -> bool:
        """Tell whether a pack has the object."""
        self._list()
        return any(packed.index.find(oid) is not None for packed in self._likely_first())

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return ids that begin with these hex digits."""
        self._list()
        found: list[ObjectId] = []
        for packed in self._open.values():
            found += packed.index.with_prefix(prefix, MAXIMUM_CANDIDATES)
        return found

    def iterate(self) -> Iterator[ObjectId]:
        """Yield all ids, pack by pack; an object in two packs comes twice."""
        self._list()
        for packed in list(self._open.values()):
            yield from packed.index.iterate()

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
            if not packed.index.verify():
                self._reindex(packed)
                repaired = True
        return repaired

    def close(self) -> None:
        """Close all files."""
        for name in list(self._open):
            self._drop(name)
        self._listed = False

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

    def _drop(self, name: str) -> None:
        self.damaged.pop(name, None)
        packed = self._open.pop(name, None)
        if packed is not None:
            packed.pack.close()
            if packed.index_fd is not None:
                self._disk.close(packed.index_fd)

    def _add(self, name: str) -> bool:
        path = self._layout.pack_file(name)
        try:
            fd = self._disk.open(path)
            if fd is None:
                return False
            pack = Pack(self._disk, path, name, fd)
        except StorageError as error:
            self.damaged[name] = CorruptPackError(
                f"pack {name[:12]} cannot be read: {error}", path=path
            )
            return False
        except CorruptPackError as error:
            self.damaged[name] = error
            return False
        self._open[name] = self._load_index(pack) or self._make_index(pack)
        return True

    def _load_index(self, pack: Pack) -> IndexedPack | None:
        try:
            fd = self._disk.open(self._layout.pack_index_file(pack.name))
        except StorageError:
            return None
        if fd is None:
            return None
        try:
            index = PackIndex(
                lambda at, size: self._disk.read_at(fd, at, size), self._disk.size(fd), pack
            )
        except CorruptIndexError:
            self._disk.close(fd)
            return None
        return IndexedPack(pack, index, fd)

    def _make_index(self, pack: Pack) -> IndexedPack:
        data, whole = build_index(pack)
        index = PackIndex(lambda at, size: data[at : at + size], len(data), pack)
        index.verified = True
        if whole:
            self._save_index(pack.name, data)
        else:
            what = f"pack {pack.name[:12]} is damaged: not all of it can be read"
            self.damaged[pack.name] = CorruptPackError(what, path=pack.path)
        return IndexedPack(pack, index, None)

    def _save_index(self, name: str, data: bytes) -> None:
        try:
            self._replace_index(name, data)
        except StorageError:
            return  # a read-only repository: the index stays in memory

    def _replace_index(self, name: str, data: bytes) -> None:
        self._disk.make_directory(self._layout.tmp_dir)
        temporary = os.path.join(
            self._layout.tmp_dir, f"pack-{os.getpid()}-{os.urandom(6).hex()}.idx"
        )
        create_file(self._disk, temporary, data, durable=False)
        self._disk.rename(temporary, self._layout.pack_index_file(name))

    def _reindex(self, packed: IndexedPack) -> IndexedPack:
        made = self._make_index(packed.pack)
        if packed.index_fd is not None:
            self._disk.close(packed.index_fd)
        self._open[packed.pack.name] = made
        return made

    def _extract(self, packed: IndexedPack, oid: bytes, found: tuple[int, int, int]) -> bytes:
        frame, offset, length = found
        raw = self._frame(packed, frame)
        return check_hash(oid, raw[offset : offset + length], packed.pack.path)

    def _frame(self, packed: IndexedPack, number: int) -> bytes:
        """Return a frame's raw content, decoding those it is chained to first."""
        cached = self._cached(packed.pack.name, number)
        if cached is not None:
            return cached
        place = packed.index.place(number)
        if place.prefixes > number:
            raise CorruptIndexError("a frame is chained to more frames than there are")
        group: list[bytes | None] = []
        for earlier in range(number - place.prefixes, number):
            group.append(self._link(packed, earlier, packed.index.place(earlier), group))
        return self._link(packed, number, place, group)

    def _link(
        self, packed: IndexedPack, number: int, place: FramePlace, group: list[bytes | None]
    ) -> bytes:
        raw = self._cached(packed.pack.name, number)
        if raw is None:
            raw = packed.pack.decode(place, prefix_of(group, place.prefixes))
            self._remember(packed.pack.name, number, raw)
        return raw

    def _cached(self, name: str, number: int) -> bytes | None:
        raw = self._frames.pop((name, number), None)
        if raw is not None:
            self._frames[name, number] = raw  # now the most recently used
        return raw

    def _remember(self, name: str, number: int, raw: bytes) -> None:
        self._frames[name, number] = raw
        self._frame_bytes += len(raw)
        while self._frame_bytes > CACHE_BYTES and len(self._frames) > 1:
            oldest = next(iter(self._frames))
            self._frame_bytes -= len(self._frames.pop(oldest))


def pack_names(disk: Disk, layout: Layout) -> list[str]:
    """Return the names of the packs on the disk, sorted."""
    names = [n[: -len(PACK_SUFFIX)] for n in disk.names(layout.pack_dir) if n.endswith(PACK_SUFFIX)]
    return [n for n in names if len(n) == HEX_CHARACTERS and _HEX.issuperset(n)]
