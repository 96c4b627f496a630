"""A pause of Python's garbage collector while many objects are created.

The collector runs each time a few hundred more objects were created than freed. Creating a hundred thousand messages
makes no cycles, but would spend a quarter of its time in the collector.

Rule: pause for one batch, or for one call that builds a context; never while a caller's code runs or the process forks.
When the last holder leaves, the collector is as before.
"""

from __future__ import annotations

import gc
import os
from _thread import allocate_lock

MANY = 200_000
"""New objects that take a collection about 50 ms to look at."""


def _set_aside_many() -> None:
    """Make very many new objects old, so that the next collection does not look at each.

    Few pauses create so many, so garbage of other code that becomes old with them waits for the next full collection.
    """
    if hasattr(gc, "freeze") and gc.get_count()[0] > MANY and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


class _Pause:
    """A re-entrant context manager shared by all threads."""

    __slots__ = ("_holders", "_lock", "_was_enabled")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._holders = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._holders:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._holders += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders and self._was_enabled:
                _set_aside_many()
                gc.enable()

    def resume(self) -> None:
        """Reset in a forked child, which does not inherit the other threads."""
        if self._holders and self._was_enabled:
            gc.enable()
        self._lock = allocate_lock()
        self._holders = 0


paused = _Pause()
"""`with paused:` stops automatic collections in all threads."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=paused.resume)
