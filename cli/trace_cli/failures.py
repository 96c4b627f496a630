"""Exit codes, and the errors of the command line itself.

Rule: exit codes are stable: new ones are added, none is reused. Hints are in `advice`, which only a failing command
loads.
"""

from __future__ import annotations

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.errors import InvalidInputError

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_INVALID = 7
EXIT_DAMAGED = 12
EXIT_INTERRUPTED = 130
EXIT_OUTPUT_CLOSED = 141


class OutputClosedError(Exception):
    """The reader of our output closed the pipe, so the command ends silently."""


def usage_error(message: str, hint: str = "") -> InvalidInputError:
    """Return the error for a wrong call of a command."""
    return errors.InvalidInputError(message, hint=hint)
