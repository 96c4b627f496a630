"""Fast verification of packs in several processes.

Invariant: a pack is proven only if its full check would report nothing. A proof saves that check and has no other
effect. Any doubt means no proof; the full check then reports the problem.

Invariant: the result does not depend on the number of processes or on crashes. If a worker cannot be started or
crashes, this process does its work. Workers are new Python processes; they write no files and exit at the end of their
standard input.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.disk.files import Disk, read_file
from trace_store.disk.layout import Layout
from trace_store.maintenance.fsck_objects import ObjectChecks
from trace_store.objects.codec import plain_blob_head
from trace_store.odb.compression import processor_count
from trace_store.odb.delta_links import may_name_others
from trace_store.odb.index_scan import has_valid_entries, walk_by_index
from trace_store.odb.pack import DICTIONARY, FramePlace, Pack
from trace_store.odb.pack_index import MAXIMUM_INDEX_BYTES, PackIndex

Run: TypeAlias = tuple[str, int, int]
"""Frames of a pack: pack name, first frame, and end frame (exclusive)."""
RunProof: TypeAlias = tuple[bytes, bytes]
"""Proof of a run: concatenated ids of its commits, and of links that may lead outside the pack."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

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

    def oids(self) -> list[bytes]:
        """Return the ids of all objects.

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
        return ids_in(index.ids)


class Prover:
    """Verifies runs of frames.

    Plain blobs are only hashed; all other objects are also decoded and checked.
    """

    __slots__ = ("_checks", "_disk", "_layout", "_open")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._checks = ObjectChecks()
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
        checks = self._checks
        ids = packed.index.ids
        commits: list[bytes] = []
        outside_links: set[bytes] = set()
        for first, objects, forms in walk_by_index(
            packed.pack, packed.index, packed.places, frames
        ):
            has_short_links = forms is not objects
            for number, data in enumerate(objects, first):
                if not has_short_links and data.startswith(_blob_head(len(data))):
                    continue
                oid = ids[OID_BYTES * number : OID_BYTES * (number + 1)]
                if any(checks.check(ObjectId(oid), data, "a pack")):
                    checks.present.discard(
                        oid
                    )  # else another copy would be skipped as already checked
                    return None
                links = checks.links.get(oid, ())
                if checks.is_commit(oid):
                    commits.append(oid)
                # A short link stays within the pack.
                if not has_short_links or may_name_others(forms[number - first]):
                    outside_links.update(links)
        return b"".join(commits), b"".join(outside_links)


def ids_in(joined: bytes) -> list[bytes]:
    """Split concatenated ids."""
    return [joined[at : at + OID_BYTES] for at in range(0, len(joined), OID_BYTES)]


PROCESS_BYTES = 8 * 1024 * 1024
"""Pack bytes per process that make up for its start-up time."""
MAXIMUM_PROCESSES = 8
_REPLY = struct.Struct("<?II")
_PROGRAM = """\
import sys
sys.path[:] = {paths!r}
from trace_store.maintenance.pack_proofs import serve
serve({root!r})
"""


class Proof:
    """Facts about a sound pack that the full check needs.

    Attributes:
        oids: ids of its objects.
        commits: ids of its commits.
        outside_links: ids of linked objects that may be in another pack.
    """

    __slots__ = ("commits", "oids", "outside_links")

    def __init__(self, oids: list[bytes], proven: Iterable[RunProof]) -> None:
        self.oids = oids
        self.commits: list[bytes] = []
        self.outside_links: set[bytes] = set()
        for commits, outside_links in proven:
            self.commits += ids_in(commits)
            self.outside_links.update(ids_in(outside_links))


def prove(disk: Disk, layout: Layout, names: Sequence[str]) -> dict[str, Proof]:
    """Return the proofs of sound packs by name."""
    pool = _WorkerPool(layout, _worker_count(disk, layout, names))
    try:
        return _prove(disk, layout, names, pool)
    finally:
        pool.end()


def serve(root: str) -> None:
    """Verify runs from standard input, one a line.

    Write the results to standard output.
    """
    prover = Prover(Disk(), Layout(root))
    for line in sys.stdin:
        name, start, stop = line.split()
        proven = prover.prove((name, int(start), int(stop)))
        commits, outside_links = proven or (b"", b"")
        head = _REPLY.pack(proven is not None, len(commits), len(outside_links))
        sys.stdout.buffer.write(head + commits + outside_links)
        sys.stdout.buffer.flush()


class _Process:
    """A worker process."""

    def __init__(self, root: str) -> None:
        """Start it.

        Raises:
            OSError: no process can be started.
        """
        import subprocess  # not needed for small checks

        # Only absolute paths: the working folder may hold foreign modules.
        paths = [path for path in sys.path if os.path.isabs(path)]
        program = _PROGRAM.format(paths=paths, root=os.path.abspath(root))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def prove(self, run: Run) -> RunProof | None:
        """Verify a run in the worker, as `Prover.prove`.

        Raises:
            OSError: the process has ended.
        """
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        name, start, stop = run
        requests.write(f"{name} {start} {stop}\n".encode())
        requests.flush()
        head = replies.read(_REPLY.size)
        if len(head) < _REPLY.size:
            raise OSError("a worker process ended early")
        is_sound, commits_size, links_size = _REPLY.unpack(head)
        commits, outside_links = replies.read(commits_size), replies.read(links_size)
        if len(commits) + len(outside_links) < commits_size + links_size:
            raise OSError("a worker process ended early")
        return (commits, outside_links) if is_sound else None

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()  # closes the pipes and waits


class _WorkerPool:
    """Pool of worker processes, one per thread."""

    def __init__(self, layout: Layout, count: int) -> None:
        """Start as many processes as possible."""
        self._processes: list[_Process] = []
        self._pool: ThreadPoolExecutor | None = None
        with contextlib.suppress(OSError):
            for _ in range(count):
                self._processes.append(_Process(layout.root))
        if self._processes:
            from concurrent.futures import ThreadPoolExecutor  # only for large checks

            self._pool = ThreadPoolExecutor(len(self._processes))
        self._idle = list(self._processes)

    def submit(self, run: Run) -> Future[RunProof | None] | None:
        """Queue a run for a worker and return its future; None if there are no workers."""
        return None if self._pool is None else self._pool.submit(self._prove, run)

    def end(self) -> None:
        """Kill all processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end()

    def _prove(self, run: Run) -> RunProof | None:
        process = self._idle.pop()  # one per thread
        try:
            return process.prove(run)
        finally:
            self._idle.append(process)


def _prove(disk: Disk, layout: Layout, names: Sequence[str], pool: _WorkerPool) -> dict[str, Proof]:
    oids: dict[str, list[bytes]] = {}
    runs: dict[str, list[Run]] = {}
    answers: dict[Run, Future[RunProof | None] | None] = {}
    for name in names:
        try:
            with LoadedPack(disk, layout, name) as packed:
                runs[name] = list(packed.runs())
                answers.update((run, pool.submit(run)) for run in runs[name])
                oids[name] = packed.oids()
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
    for name, each in oids.items():
        parts = [part for part in map(proven.get, runs[name]) if part is not None]
        if len(parts) == len(runs[name]):
            proofs[name] = Proof(each, parts)
    return proofs


def _worker_count(disk: Disk, layout: Layout, names: Iterable[str]) -> int:
    """Return the number of worker processes that pay off."""
    if type(disk) is not Disk or "python" not in os.path.basename(sys.executable or "").lower():
        # Workers read the real disk, and start `sys.executable`, which in an embedding program is not Python.
        return 0
    stats = (disk.stat(layout.pack_file(name)) for name in names)
    size = sum(each.st_size for each in stats if each is not None)
    return max(min(processor_count(), MAXIMUM_PROCESSES, size // PROCESS_BYTES) - 1, 0)
