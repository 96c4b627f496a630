"""Redaction of secrets in a transcript while it is read.

Invariant: every reader sees redacted lines only. A line that is read again is redacted the same way.
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


class Redactor:
    """Reader of one file that redacts secrets.

    Attributes:
    findings: the secrets found.
    """

    def __init__(self, guard: Guard | None, file: Input) -> None:
        self._guard = guard
        self._file = file
        self.findings: list[SecretFinding] = []

    def line(self, line: Line) -> Line:
        """Return a redacted line.

        Raises:
            SecretFoundError: it holds a secret, and the guard blocks.
        """
        redacted, findings = self._redact(line)
        if findings:
            self.findings += findings
        return redacted

    def __call__(self, offset: int, size: int) -> bytes:
        """Return redacted bytes of the file at an offset and size."""
        return self.line_at(0, offset, size).data or b""

    def line_at(self, number: int, offset: int, length: int) -> Line:
        """Return a redacted line that was read before."""
        line = Line(number, offset, self._file.read_at(offset, length), length, True)
        return self._redact(line)[0]

    @property
    def redact_bytes(self) -> Callable[[bytes], bytes] | None:
        """A function that redacts bytes between records; None without a guard."""
        return None if self._guard is None else self._redact_bytes

    def _redact_bytes(self, data: bytes) -> bytes:
        guard = self._guard
        if guard is None or not guard.meets(data):
            return data
        return guard.screened(data, self._file.path)[0]

    def _redact(self, line: Line) -> tuple[Line, list[SecretFinding]]:
        guard, data = self._guard, line.data
        if guard is None or data is None or not guard.meets(data):
            return line, []
        redacted, findings = guard.screened(data, self._file.path, line.number)
        if redacted is data:
            return line, findings
        spans = [
            (line.offset + each.start, line.offset + each.end, len(placeholder(each.rule, each.id)))
            for each in findings
        ]
        return line._replace(data=redacted, edits=Edits(spans)), findings
