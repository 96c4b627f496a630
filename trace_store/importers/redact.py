"""What is read of a transcript, looked through for secrets before anybody makes something of it.

Rule: whoever reads a line reads it as it may be stored. Each line is looked through once; what is read again later
comes back as it was given out, since the same is found in it.
"""

from __future__ import annotations

from trace_store.importers.decode import Edits, Line
from trace_store.secrets.placeholders import placeholder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.importers.files import Input
    from trace_store.secrets.engine import SecretFinding
    from trace_store.secrets.guard import Guard


class Screen:
    """Looks through the lines of one file, and reads it again for those who made plans of it.

    Attributes:
        found: what was found.
    """

    def __init__(self, guard: Guard | None, file: Input) -> None:
        self._guard = guard
        self._file = file
        self.found: list[SecretFinding] = []

    def line(self, line: Line) -> Line:
        """Return a line as it may be stored.

        Raises:
            SecretFoundError: it holds a secret, and the guard lets none pass.
        """
        screened, found = self._screened(line)
        if found:
            self.found += found
        return screened

    def __call__(self, offset: int, size: int) -> bytes:
        """Return what may be stored of a record of the file, given where it is."""
        return self.line_at(0, offset, size).data or b""

    def line_at(self, number: int, offset: int, length: int) -> Line:
        """Return a line that was read before, as it may be stored."""
        line = Line(number, offset, self._file.read_at(offset, length), length, True)
        return self._screened(line)[0]

    @property
    def literal(self) -> Callable[[bytes], bytes] | None:
        """What returns bytes between records as they may be stored; None when nobody looks."""
        return None if self._guard is None else self._literal

    def _literal(self, data: bytes) -> bytes:
        guard = self._guard
        if guard is None or not guard.meets(data):
            return data
        return guard.screened(data, self._file.path)[0]

    def _screened(self, line: Line) -> tuple[Line, list[SecretFinding]]:
        guard, data = self._guard, line.data
        if guard is None or data is None or not guard.meets(data):
            return line, []
        kept, found = guard.screened(data, self._file.path, line.number)
        if kept is data:
            return line, found
        spans = [
            (line.offset + each.start, line.offset + each.end, len(placeholder(each.rule, each.id)))
            for each in found
        ]
        return line._replace(data=kept, edits=Edits(spans)), found
