"""Several processes that look at packs at once, since the Python code of one process runs on one core.

Rule: what is proven does not depend on how many processes there are, nor on whether one of them ends before its time:
what it leaves is done here. Each is a Python of its own that knows nothing of the program which started it, writes no
file, and ends when its input does.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys

from trace_store import errors
from trace_store.files import Disk
from trace_store.layout import Layout
from trace_store.maintenance.proving import OpenPack, Prover, ids_in
from trace_store.odb.background import processors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

    from trace_store.maintenance.proving import Run, Shown

PROCESS_BYTES = 8 * 1024 * 1024
"""Of packs for each process: it has started before so many are looked at."""
MAXIMUM_PROCESSES = 8
_REPLY = struct.Struct("<?II")
_PROGRAM = """\
import sys
sys.path[:] = {paths!r}
from trace_store.maintenance.proving_together import serve
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
