"""Worker processes: new Python processes that answer requests of this one.

Rule: they only compute. They write nothing to a repository, end with this process, and are not interrupted with it. If
one cannot be started or ends early, its requests fail, and this process does the work itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from trace_store.disk.system_calls import processor_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_PROGRAM = """
import sys
sys.path[:] = {paths!r}
from trace_store.disk.worker_pool import serve
serve()
"""
MAXIMUM_PROCESSES = 8


def serve() -> None:
    """Answer the requests on standard input, in a worker; a function and its setup come first."""
    from pickle import dump, load

    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for stream in (0, 1):  # what a format's package, or a program that it runs, prints is no answer
        os.dup2(2, stream)  # the null device
    function, setup = load(requests)
    answer = function(setup)
    while True:
        try:
            request = load(requests)
        except EOFError:
            return
        dump(answer(request), answers, protocol=-1)
        answers.flush()


def worker_count(size: int, bytes_each: int) -> int:
    """Return how many processes pay off for work of `size` bytes, of which each does at least `bytes_each`."""
    if "python" not in os.path.basename(sys.executable or "").lower():
        return 0  # an embedding program, which is no interpreter
    count = min(processor_count(), MAXIMUM_PROCESSES, size // bytes_each)
    return count if count > 1 else 0


class WorkerPool:
    """Worker processes, one per thread of this process."""

    def __init__(
        self, answers: Callable[[Any], Callable[[Any], Any]], setup: Any, count: int
    ) -> None:
        """Start as many processes as possible.

        Args:
            answers: a function of a module, which returns for `setup` the function that answers requests.
            setup: what is sent first; like requests and answers, it is pickled.
            count: the number of processes.
        """
        self._processes: list[_Process] = []
        self._threads: ThreadPoolExecutor | None = None
        try:
            for _ in range(count):
                self._processes.append(_Process(answers, setup))
        except OSError:
            pass
        if self._processes:
            from concurrent.futures import ThreadPoolExecutor  # only for large work

            self._threads = ThreadPoolExecutor(len(self._processes))
        self._idle = list(self._processes)

    def submit(self, request: Any) -> Future[Any] | None:
        """Queue a request and return its future; None if there are no workers.

        The future raises OSError if the process has ended.
        """
        return None if self._threads is None else self._threads.submit(self._ask, request)

    def end(self) -> None:
        """Kill all processes."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end()

    def _ask(self, request: Any) -> Any:
        process = self._idle.pop()  # one per thread
        try:
            return process.ask(request)
        finally:
            self._idle.append(process)


class _Process:
    """A worker process."""

    def __init__(self, answers: Callable[[Any], Callable[[Any], Any]], setup: Any) -> None:
        """Start it.

        Raises:
            OSError: no process can be started.
        """
        import subprocess  # not needed for small work

        # Only absolute paths: the working folder may hold foreign modules.
        paths = [path for path in sys.path if os.path.isabs(path)]
        program = _PROGRAM.format(paths=paths)
        self._process = subprocess.Popen(
            [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        )
        self._setup: object = (answers, setup)

    def ask(self, request: Any) -> Any:
        """Return the answer to a request.

        Raises:
            OSError: the process has ended.
        """
        from pickle import load

        replies = self._process.stdout
        assert replies is not None
        if self._setup is not None:
            self._send(self._setup)
            self._setup = None
        self._send(request)
        try:
            return load(replies)
        except Exception as error:  # of pickle: the process ended, or its answer cannot be read
            self._process.kill()  # the next answer would begin somewhere in this one
            raise OSError("a worker process ended early") from error

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()  # closes the pipes and waits

    def _send(self, data: Any) -> None:
        from pickle import dump

        requests = self._process.stdin
        assert requests is not None
        dump(data, requests, protocol=-1)
        requests.flush()
