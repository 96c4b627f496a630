"""The progress display of long operations."""

from __future__ import annotations

from trace_cli.render.escape import one_line
from trace_cli.render.tables import columns_of, fit
from trace_cli.runtime import Invocation


class Progress:
    """One line on standard error that shows progress and is overwritten; a `with` block erases it at its end.

    Attributes:
        path: the file reported last, whether or not it was shown; empty at first.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._shown = invocation.interactive and not (invocation.quiet or invocation.as_json)
        self._last = ("", -1)
        self._columns = 0
        self.path = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def tell(self, path: str, done: int, whole: int) -> None:
        """Report progress on a file; the line changes with each whole percent."""
        self.path = path
        if not self._shown:
            return
        percent = 100 * done // whole if whole else 100
        if (path, percent) != self._last:
            self._last = (path, percent)
            self._write(f"{percent:3d}% {fit(one_line(path), 70)}")

    def clear(self) -> None:
        """Erase the line."""
        if self._last[0]:
            self._write("")
            self._invocation.overwrite("")
            self._last = ("", -1)

    def _write(self, text: str) -> None:
        # Overwrite with spaces: not every terminal can clear a line.
        self._invocation.overwrite(text + " " * (self._columns - columns_of(text)))
        self._columns = columns_of(text)
