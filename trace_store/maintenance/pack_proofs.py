"""Quick proofs that packs are sound, in several processes.

Rule: a proof is a shortcut of the check of a pack that finds nothing, and never more. What is not plainly in order is
not proven, and left to the check, which says what is wrong.

Rule: what is proven does not depend on how many processes there are, nor on whether one of them ends before its time:
what it leaves is done here. Each is a Python of its own that knows nothing of the program which started it, writes no
file, and ends when its input does.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from functools import lru_cache

from trace_store import errors
from trace_store.files import Disk, read_file
from trace_store.layout import Layout
from trace_store.maintenance.fsck_objects import ObjectChecks
from trace_store.objects.codec import plain_blob_head
from trace_store.odb.background import processors
from trace_store.odb.delta_links import may_name_others
from trace_store.odb.index_scan import leads_to_all, walk_by_index
from trace_store.odb.pack import DICTIONARY, Pack
from trace_store.odb.pack_index import MAXIMUM_INDEX_BYTES, PackIndex
from trace_store.oid import OID_BYTES, ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import TypeAlias

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


PROCESS_BYTES = 8 * 1024 * 1024
"""Of packs for each process: it has started before so many are looked at."""
MAXIMUM_PROCESSES = 8
_REPLY = struct.Struct("<?II")
_PROGRAM = """\
import sys
sys.path[:] = {paths!r}
from trace_store.maintenance.pack_proofs import serve
serve({root!r})
"""


class Proof:
    """What a check has to know of a pack of which it has nothing to report.

    Attributes:
        oids: the ids of its objects.
        commits: those of its commits.
        named: ids that its objects name and that may be none of its own.
    """

    __slots__ = ("commits", "named", "oids")

    def __init__(self, oids: list[bytes], shown: Iterable[Shown]) -> None:
        self.oids = oids
        self.commits: list[bytes] = []
        self.named: set[bytes] = set()
        for commits, named in shown:
            self.commits += ids_in(commits)
            self.named.update(ids_in(named))


def prove(disk: Disk, layout: Layout, names: Sequence[str]) -> dict[str, Proof]:
    """Return proofs, by name, of those packs that are plainly in order."""
    crew = _Crew(layout, _helpers_worth(disk, layout, names))
    try:
        return _prove(disk, layout, names, crew)
    finally:
        crew.end()


def serve(root: str) -> None:
    """Look at runs that standard input names, one a line, and say on standard output what was found."""
    prover = Prover(Disk(), Layout(root))
    for line in sys.stdin:
        name, start, stop = line.split()
        shown = prover.show((name, int(start), int(stop)))
        commits, named = shown or (b"", b"")
        head = _REPLY.pack(shown is not None, len(commits), len(named))
        sys.stdout.buffer.write(head + commits + named)
        sys.stdout.buffer.flush()


class _Process:
    """Another Python, which serves."""

    def __init__(self, root: str) -> None:
        """Start it.

        Raises:
            OSError: that is not possible here.
        """
        import subprocess  # which a check of little content does without

        # The same modules as here, and none that lie where the program was started: there may be a stranger's files.
        paths = [path for path in sys.path if os.path.isabs(path)]
        program = _PROGRAM.format(paths=paths, root=os.path.abspath(root))
        self._running = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def show(self, run: Run) -> Shown | None:
        """Return what `Prover.show` does.

        Raises:
            OSError: the process has ended.
        """
        asked, told = self._running.stdin, self._running.stdout
        assert asked is not None
        assert told is not None
        name, start, stop = run
        asked.write(f"{name} {start} {stop}\n".encode())
        asked.flush()
        head = told.read(_REPLY.size)
        if len(head) < _REPLY.size:
            raise OSError("a process ended before its time")
        is_shown, commits_size, named_size = _REPLY.unpack(head)
        commits, named = told.read(commits_size), told.read(named_size)
        if len(commits) + len(named) < commits_size + named_size:
            raise OSError("a process ended before its time")
        return (commits, named) if is_shown else None

    def end(self) -> None:
        """End it, whatever it does."""
        self._running.kill()
        self._running.communicate()  # nothing: closes what leads to it and from it, and waits


class _Crew:
    """Processes, none or more, each of which works for one thread."""

    def __init__(self, layout: Layout, count: int) -> None:
        """Start as many as can be."""
        self._processes: list[_Process] = []
        self._pool: ThreadPoolExecutor | None = None
        with contextlib.suppress(OSError):
            for _ in range(count):
                self._processes.append(_Process(layout.root))
        if self._processes:
            from concurrent.futures import ThreadPoolExecutor  # as dear as a small check

            self._pool = ThreadPoolExecutor(len(self._processes))
        self._idle = list(self._processes)

    def ask(self, run: Run) -> Future[Shown | None] | None:
        """Have a run looked at; None when there is nobody to do it."""
        return None if self._pool is None else self._pool.submit(self._show, run)

    def end(self) -> None:
        """End all of them, whatever they do."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end()

    def _show(self, run: Run) -> Shown | None:
        process = self._idle.pop()  # there are as many as threads
        try:
            return process.show(run)
        finally:
            self._idle.append(process)


def _prove(disk: Disk, layout: Layout, names: Sequence[str], crew: _Crew) -> dict[str, Proof]:
    oids: dict[str, list[bytes]] = {}
    runs: dict[str, list[Run]] = {}
    answers: dict[Run, Future[Shown | None] | None] = {}
    for name in names:
        try:
            with OpenPack(disk, layout, name) as packed:
                runs[name] = list(packed.runs())
                answers.update((run, crew.ask(run)) for run in runs[name])
                oids[name] = packed.oids()
        except (errors.FormatError, errors.StorageError):
            continue  # the check says what is wrong
    shown: dict[Run, Shown | None] = {}
    with Prover(disk, layout) as prover:
        # The others begin with the first.
        for run, answer in reversed(answers.items()):
            if answer is None or answer.cancel():
                shown[run] = prover.show(run)
        for run, answer in answers.items():
            if answer is not None and not answer.cancelled():
                try:
                    shown[run] = answer.result()
                except OSError:
                    shown[run] = prover.show(run)
    proofs: dict[str, Proof] = {}
    for name, each in oids.items():
        parts = [part for part in map(shown.get, runs[name]) if part is not None]
        if len(parts) == len(runs[name]):
            proofs[name] = Proof(each, parts)
    return proofs


def _helpers_worth(disk: Disk, layout: Layout, names: Iterable[str]) -> int:
    """Return how many processes beside this one are worth it."""
    if type(disk) is not Disk or "python" not in os.path.basename(sys.executable or "").lower():
        return 0  # another program that holds a Python would start itself
    found = (disk.stat(layout.pack_file(name)) for name in names)
    size = sum(each.st_size for each in found if each is not None)
    return max(min(processors(), MAXIMUM_PROCESSES, size // PROCESS_BYTES) - 1, 0)
