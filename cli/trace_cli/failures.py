"""How a command ends when it cannot do what it is asked for: its exit codes, and the errors of the command line.

Rule: exit codes are stable; a new one is added, none is reused. What an error means and what may be done about it is
in `advice`, which only a command that fails loads.
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
    """Return the error of a command that was called in a way it cannot be."""
    return errors.InvalidInputError(message, hint=hint)
