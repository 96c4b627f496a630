"""Work that needs no interpreter, done on several processors at once.

Rule: what comes out, and in which order, does not depend on the number of threads.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Thread


class Background:
    """Tasks that are under way, or wait for whoever asks; they end by themselves, also when nobody does."""

    __slots__ = ("_error", "_left", "_results", "_tasks", "_threads")

    def __init__(self, tasks: Sequence[Callable[[], bytes]], threads: int) -> None:
        """Begin.

        Args:
            tasks: what to do, in any order; worthwhile are such as let go of the interpreter's lock.
            threads: how many to do it with; with one, whoever asks for the results does it.
        """
        self._tasks = tasks
        self._left = [*reversed(range(len(tasks)))]
        self._results = [b""] * len(tasks)
        self._error: BaseException | None = None
        self._threads = [
            _start(self._work) for _ in range(min(threads, len(tasks)) if threads > 1 else 0)
        ]

    def results(self) -> list[bytes]:
        """Wait for what the tasks return, and return it in their order.

        Raises:
            BaseException: what one of them raised.
        """
        if not self._threads:
            self._work()
        for thread in self._threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return self._results

    def _work(self) -> None:
        while self._error is None:
            try:
                number = self._left.pop()
            except IndexError:
                return
            try:
                self._results[number] = self._tasks[number]()
            except BaseException as error:  # noqa: BLE001 - it is raised again where the results are asked for
                self._error = error


def processors() -> int:
    """Return how many processors this process may use, as far as can be told."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(work: Callable[[], None]) -> Thread:
    import threading  # most commands write little, and need none

    thread = threading.Thread(target=work, name="trace-compression")
    thread.start()
    return thread
