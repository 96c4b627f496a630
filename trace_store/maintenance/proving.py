"""Packs of which a check has nothing to report, found out with less work than a report takes.

Rule: a proof is a shortcut of the check of a pack that finds nothing, and never more. What is not plainly in order is
not proven, and left to the check, which says what is wrong.
"""

from __future__ import annotations

from functools import lru_cache

from trace_store import errors
from trace_store.files import read_file
from trace_store.maintenance.object_checks import ObjectChecks
from trace_store.objects.codec import plain_blob_head
from trace_store.odb.index_order import leads_to_all
from trace_store.odb.index_walk import walk_by_index
from trace_store.odb.pack import DICTIONARY, Pack
from trace_store.odb.pack_index import MAXIMUM_INDEX_BYTES, PackIndex
from trace_store.odb.short_links import may_name_others
from trace_store.oid import OID_BYTES, ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from trace_store.files import Disk
    from trace_store.layout import Layout
    from trace_store.odb.pack import FramePlace

    Run: TypeAlias = tuple[str, int, int]
    """Frames of a pack: its name, the number of the first, and of the one behind the last."""
    Shown: TypeAlias = tuple[bytes, bytes]
    """Of a run that is in order: the ids of its commits, and ids that are named and may be none of the pack; joined."""

RUN_BYTES = 16 * 1024 * 1024
"""How much content a run has at most; it ends before a dictionary besides, which is read once for each run."""
_blob_head = lru_cache(maxsize=8192)(plain_blob_head)


class OpenPack:
    """A pack and its index, which belong together.

    Attributes:
        pack: the pack.
        index: its index, all of it held.
        places: where the frames are.
    """

    __slots__ = ("_data", "index", "pack", "places")

    def __init__(self, disk: Disk, layout: Layout, name: str) -> None:
        """Open them.

        Raises:
            FormatError: one of them is damaged at first sight, or they do not belong together.
            StorageError: one of them is absent, or the disk refuses it.
        """
        path = layout.pack_file(name)
        data = read_file(disk, layout.pack_index_file(name), limit=MAXIMUM_INDEX_BYTES)
        fd = None if data is None else disk.open(path)
        if fd is None or data is None:
            raise errors.StorageError("a pack or its index is absent", path=path)
        self.pack = Pack(disk, path, name, fd)
        try:
            self.index = PackIndex(lambda at, size: data[at : at + size], len(data), self.pack)
            self.index.hold()
            self._data = data
            self.places: list[FramePlace] = list(self.pack.places())
        except (errors.FormatError, errors.StorageError):
            self.pack.close()
            raise

    def __enter__(self) -> OpenPack:
        return self

    def __exit__(self, *_: object) -> None:
        self.pack.close()

    def runs(self) -> Iterator[Run]:
        """Yield all frames, in runs of some MiB."""
        start = size = 0
        for number, place in enumerate(self.places):
            if size and (place.sort == DICTIONARY or size + place.raw > RUN_BYTES):
                yield self.pack.name, start, number
                start, size = number, 0
            size += place.raw
        yield self.pack.name, start, len(self.places)

    def oids(self) -> list[bytes]:
        """Return the ids of all objects.

        Raises:
            CorruptIndexError: pack and index disagree on what there is, or an object would not be found.
        """
        pack, index, places = self.pack, self.index, self.places
        counts = len(places), sum(place.objects for place in places)
        if (
            (pack.frame_count, pack.object_count) != counts
            or (index.frames, index.objects) != counts
            or any(index.place(n)[0].key() != place.key() for n, place in enumerate(places))
            or not leads_to_all(self._data)
        ):
            raise errors.CorruptIndexError("a pack holds something else than its index says")
        return ids_in(index.ids)


class Prover:
    """Shows that runs of frames are in order; each structured object is decoded."""

    __slots__ = ("_checks", "_disk", "_layout", "_open")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._checks = ObjectChecks()
        self._open: OpenPack | None = None

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.pack.close()
            self._open = None

    def show(self, run: Run) -> Shown | None:
        """Return what has to be known of a run besides that it is in order; None when it is not plainly so."""
        name, start, stop = run
        try:
            if self._open is None or self._open.pack.name != name:
                self.__exit__()
                self._open = OpenPack(self._disk, self._layout, name)
            return self._show(self._open, range(start, stop))
        except (errors.FormatError, errors.StorageError):
            return None

    def _show(self, packed: OpenPack, frames: range) -> Shown | None:
        checks = self._checks
        ids = packed.index.ids
        commits: list[bytes] = []
        named: set[bytes] = set()
        for first, objects, forms in walk_by_index(
            packed.pack, packed.index, packed.places, frames
        ):
            is_short = forms is not objects
            for number, data in enumerate(objects, first):
                if not is_short and data.startswith(_blob_head(len(data))):
                    continue
                oid = ids[OID_BYTES * number : OID_BYTES * (number + 1)]
                if any(checks.check(ObjectId(oid), data, "a pack")):
                    checks.present.discard(oid)  # it is as wrong where it stands again
                    return None
                links = checks.links.get(oid, ())
                if checks.is_commit(oid):
                    commits.append(oid)
                # What a short link leads to is in the pack.
                if not is_short or may_name_others(forms[number - first]):
                    named.update(links)
        return b"".join(commits), b"".join(named)


def ids_in(joined: bytes) -> list[bytes]:
    """Return ids that stand one after the other."""
    return [joined[at : at + OID_BYTES] for at in range(0, len(joined), OID_BYTES)]
