"""What the system refused, as an error that says what could not be done to which file, and why."""

from __future__ import annotations

import os

from trace_store import errors

OPENED: dict[int, str] = {}
"""Which file each open descriptor is of."""
_REPOSITORY = f"{os.sep}.trace{os.sep}"


def failure(error: OSError, operation: str, target: str | int) -> errors.StorageError:
    """Return the error for what was refused.

    Args:
        error: what the system says.
        operation: what was to be done, as a verb.
        target: to which file: its path, or its descriptor.
    """
    path = OPENED.get(target, "") if isinstance(target, int) else target
    return errors.StorageError(
        f"cannot {operation} {shown(path) or 'a file'}: {error.strerror or error}",
        path=path,
        operation=operation,
        errno=error.errno,
    )


def shown(path: str) -> str:
    """Return a path as messages have it: of a file of a repository from its `.trace` on."""
    place = f"{path}{os.sep}".rfind(_REPOSITORY)
    return path if place < 0 else path[place + 1 :]
