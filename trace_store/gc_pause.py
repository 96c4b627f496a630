"""Python's garbage collector, paused while very many values are made at once.

The collector looks for cycles each time some hundred more values were made than freed, and now and then among all that
there are. Whoever makes a hundred thousand messages makes no cycle, and pays for that a quarter of the time.

Rule: it is paused for one batch, or for one call that makes a whole context, never while a caller's code runs or a
process is forked, and whoever was the last to pause it lets it go on as it was. A collection that fell due meanwhile
comes with the next value that is made.
"""

from __future__ import annotations

import gc
import os
from _thread import allocate_lock


class _Pause:
    """The one context manager, for any number of holders in any number of threads."""

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
                gc.enable()

    def resume(self) -> None:
        """Let go for all holders: a fork takes none of the other threads along."""
        if self._holders and self._was_enabled:
            gc.enable()
        self._lock = allocate_lock()
        self._holders = 0


paused = _Pause()
"""`with paused:` no collection begins by itself, in any thread."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=paused.resume)
