"""Fast verification of packs in several processes.

Invariant: a pack is proven only if its full check would report nothing. A proof saves that check and has no other
effect. Any doubt means no proof; the full check then reports the problem.

Invariant: the result does not depend on the number of processes or on crashes. If a worker cannot be started or
crashes, this process does its work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.disk.files import Disk, read_file
from trace_store.disk.layout import Layout
from trace_store.disk.worker_pool import WorkerPool, worker_count
from trace_store.maintenance.fsck_objects import IS_COMMIT, PRESENT, examine
from trace_store.objects.codec import COMMIT, plain_blob_head
from trace_store.odb.delta_links import may_name_others
from trace_store.odb.index_scan import has_valid_entries, ids_among, walk_by_index
from trace_store.odb.pack import DICTIONARY, FramePlace, Pack
from trace_store.odb.pack_index import MAXIMUM_INDEX_BYTES, PackIndex

Run: TypeAlias = tuple[str, int, int]
"""Frames of a pack: pack name, first frame, and end frame (exclusive)."""
RunProof: TypeAlias = tuple[bytes, bytes]
"""Proof of a run: PRESENT or IS_COMMIT for each object, and the joined ids of links that lead outside the pack."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future

RUN_BYTES = 16 * 1024 * 1024
"""Maximum content of a run. A dictionary starts a new run, so that each run reads one."""
_blob_head = lru_cache(maxsize=8192)(plain_blob_head)


class LoadedPack:
    """A pack with its matching index.

    Attributes:
        pack: the pack.
        index: its index, fully in memory.
        places: offset, size and flags of each frame, in pack order.
    """

    __slots__ = ("_data", "index", "pack", "places")

    def __init__(self, disk: Disk, layout: Layout, name: str) -> None:
        """Open a pack and its index.

        Raises:
            FormatError: one of them is damaged, or they do not match.
            StorageError: one of them is missing or unreadable.
        """
        path = layout.pack_file(name)
        data = read_file(disk, layout.pack_index_file(name), limit=MAXIMUM_INDEX_BYTES)
        fd = None if data is None else disk.open(path)
        if fd is None or data is None:
            raise errors.StorageError("missing pack or index", path=path)
        self.pack = Pack(disk, path, name, fd)
        try:
            self.index = PackIndex(lambda at, size: data[at : at + size], len(data), self.pack)
            self.index.load()
            self._data = data
            self.places: list[FramePlace] = list(self.pack.places())
        except (errors.FormatError, errors.StorageError):
            self.pack.close()
            raise

    def __enter__(self) -> LoadedPack:
        return self

    def __exit__(self, *_: object) -> None:
        self.pack.close()

    def runs(self) -> Iterator[Run]:
        """Yield the frames in runs of at most RUN_BYTES, or of one frame."""
        start = size = 0
        for number, place in enumerate(self.places):
            if size and (place.flags == DICTIONARY or size + place.raw > RUN_BYTES):
                yield self.pack.name, start, number
                start, size = number, 0
            size += place.raw
        yield self.pack.name, start, len(self.places)

    def check(self) -> None:
        """Check that the pack and the index agree on their counts, and that every look-up succeeds.

        Raises:
            CorruptIndexError: pack and index differ, or a lookup would miss an object.
        """
        pack, index, places = self.pack, self.index, self.places
        counts = len(places), sum(place.objects for place in places)
        if (
            (pack.frame_count, pack.object_count) != counts
            or (index.frames, index.objects) != counts
            or any(index.place(n)[0].key() != place.key() for n, place in enumerate(places))
            or not has_valid_entries(self._data)
        ):
            raise errors.CorruptIndexError("pack and index differ")


class Prover:
    """Verifies runs of frames.

    Plain blobs are only hashed; all other objects are also decoded and checked.
    """

    __slots__ = ("_disk", "_layout", "_open")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._open: LoadedPack | None = None

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.pack.close()
            self._open = None

    def prove(self, run: Run) -> RunProof | None:
        """Return the proof of a run, or None if in doubt."""
        name, start, stop = run
        try:
            if self._open is None or self._open.pack.name != name:
                self.__exit__()
                self._open = LoadedPack(self._disk, self._layout, name)
            return self._prove(self._open, range(start, stop))
        except (errors.FormatError, errors.StorageError):
            return None

    def _prove(self, packed: LoadedPack, frames: range) -> RunProof | None:
        ids = packed.index.ids
        marks = bytearray()
        outside_links: set[bytes] = set()
        for first, objects, forms in walk_by_index(
            packed.pack, packed.index, packed.places, frames
        ):
            has_short_links = forms is not objects
            start = len(marks) - first
            marks += bytes((PRESENT,)) * len(objects)
            for number, data in enumerate(objects, first):
                if not has_short_links and data.startswith(_blob_head(len(data))):
                    continue
                oid = ids[OID_BYTES * number : OID_BYTES * (number + 1)]
                findings, kind, links = examine(ObjectId(oid), data, "a pack")
                if findings:
                    return None
                if kind == COMMIT:
                    marks[start + number] = IS_COMMIT
                # A short link stays within the pack.
                if not has_short_links or may_name_others(forms[number - first]):
                    outside_links.update(links)
        # If all runs are sound, so is each object that the index names.
        own = ids_among(packed.index, frozenset(outside_links))
        return bytes(marks), b"".join(outside_links - own)


def ids_in(joined: bytes) -> list[bytes]:
    """Split concatenated ids."""
    return [joined[at : at + OID_BYTES] for at in range(0, len(joined), OID_BYTES)]


PROCESS_BYTES = 8 * 1024 * 1024
"""Pack bytes per process that make up for its start-up time."""


class Proof:
    """Facts about a sound pack that the full check needs.

    Attributes:
        marks: PRESENT or IS_COMMIT for each object.
        outside_links: ids of linked objects that must be in another pack.
    """

    __slots__ = ("marks", "outside_links")

    def __init__(self, proven: Sequence[RunProof]) -> None:
        self.marks = b"".join([marks for marks, _ in proven])
        self.outside_links = {oid for _, joined in proven for oid in ids_in(joined)}


def prove(disk: Disk, layout: Layout, names: Sequence[str]) -> dict[str, Proof]:
    """Return the proofs of sound packs by name."""
    pool = WorkerPool(prover_of, layout.root, _worker_count(disk, layout, names))
    try:
        return _prove(disk, layout, names, pool)
    finally:
        pool.end()


def prover_of(root: str) -> Callable[[Run], RunProof | None]:
    """Return what a worker verifies the runs of a repository with."""
    return Prover(Disk(), Layout(root)).prove


def _prove(disk: Disk, layout: Layout, names: Sequence[str], pool: WorkerPool) -> dict[str, Proof]:
    matching: list[str] = []
    runs: dict[str, list[Run]] = {}
    answers: dict[Run, Future[RunProof | None] | None] = {}
    for name in names:
        try:
            with LoadedPack(disk, layout, name) as packed:
                runs[name] = list(packed.runs())
                answers.update((run, pool.submit(run)) for run in runs[name])
                packed.check()
                matching.append(name)
        except (errors.FormatError, errors.StorageError):
            continue  # the full check reports it
    proven: dict[Run, RunProof | None] = {}
    with Prover(disk, layout) as prover:
        # Workers start with the first runs, this process with the last.
        for run, answer in reversed(answers.items()):
            if answer is None or answer.cancel():
                proven[run] = prover.prove(run)
        for run, answer in answers.items():
            if answer is not None and not answer.cancelled():
                try:
                    proven[run] = answer.result()
                except OSError:
                    proven[run] = prover.prove(run)
    proofs: dict[str, Proof] = {}
    for name in matching:
        parts = [part for part in map(proven.get, runs[name]) if part is not None]
        if len(parts) == len(runs[name]):
            proofs[name] = Proof(parts)
    return proofs


def _worker_count(disk: Disk, layout: Layout, names: Iterable[str]) -> int:
    """Return the number of worker processes that pay off beside this one; they read the real disk."""
    if type(disk) is not Disk:
        return 0
    stats = (disk.stat(layout.pack_file(name)) for name in names)
    size = sum(each.st_size for each in stats if each is not None)
    return max(worker_count(size, PROCESS_BYTES) - 1, 0)
