"""How far a long operation is, for people who wait."""

from __future__ import annotations

from trace_cli.render.escape import one_line
from trace_cli.render.tables import columns_of, fit
from trace_cli.runtime import Invocation


class Progress:
    """One line on standard error that says how far it is, written over and over.

    Attributes:
        path: what was told of last, whether or not it was shown; empty before.
    """

    def __init__(self, invocation: Invocation, *, shown: bool) -> None:
        self._invocation = invocation
        self._shown = shown
        self._last = ("", -1)
        self._columns = 0
        self.path = ""

    def tell(self, path: str, done: int, whole: int) -> None:
        """Show how far something is, such as a file, when the last whole per cent has changed."""
        self.path = path
        percent = 100 * done // whole if whole else 100
        if self._shown and (path, percent) != self._last:
            self._last = (path, percent)
            self._write(f"{percent:3d}% {fit(one_line(path), 70)}")

    def clear(self) -> None:
        """Take the line away."""
        if self._last[0]:
            self._write("")
            self._invocation.overwrite("")
            self._last = ("", -1)

    def _write(self, text: str) -> None:
        # Spaces cover what was there before: not every terminal knows how to clear a line.
        self._invocation.overwrite(text + " " * (self._columns - columns_of(text)))
        self._columns = columns_of(text)
