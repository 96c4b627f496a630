"""Compression on several threads, without the interpreter lock.

Rule: the results and their order do not depend on the number of threads.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Thread


class Background:
    """Tasks that run in threads; they finish even if nobody asks for the results."""

    __slots__ = ("_error", "_left", "_results", "_tasks", "_threads")

    def __init__(self, tasks: Sequence[Callable[[], bytes]], threads: int) -> None:
        """Start the tasks.

        Args:
            tasks: functions that release the interpreter lock, in any order.
            threads: number of threads; with one, `results` runs the tasks itself.
        """
        self._tasks = tasks
        self._left = [*reversed(range(len(tasks)))]
        self._results = [b""] * len(tasks)
        self._error: BaseException | None = None
        self._threads = [
            _start(self._work) for _ in range(min(threads, len(tasks)) if threads > 1 else 0)
        ]

    def results(self) -> list[bytes]:
        """Wait for the tasks and return their results in order.

        Raises:
            BaseException: the first error that a task raised.
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
            except BaseException as error:  # noqa: BLE001 - raised again by `results`
                self._error = error


def processor_count() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(work: Callable[[], None]) -> Thread:
    import threading  # most commands write little and need no thread

    thread = threading.Thread(target=work, name="trace-compression")
    thread.start()
    return thread
