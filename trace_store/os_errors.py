"""StorageErrors from OSErrors, with the operation and the path."""

from __future__ import annotations

import os

from trace_store import errors

OPENED: dict[int, str] = {}
"""Path of each open descriptor."""
_REPOSITORY = f"{os.sep}.trace{os.sep}"


def failure(error: OSError, operation: str, target: str | int) -> errors.StorageError:
    """Return a StorageError for an OSError.

    Args:
        error: the system's error.
        operation: the failed operation, as a verb.
        target: the file: its path or descriptor.
    """
    path = OPENED.get(target, "") if isinstance(target, int) else target
    return errors.StorageError(
        f"cannot {operation} {display_path(path) or 'a file'}: {error.strerror or error}",
        path=path,
        operation=operation,
        errno=error.errno,
    )


def display_path(path: str) -> str:
    """Return a path for messages; in a repository, relative to the folder of `.trace`."""
    place = f"{path}{os.sep}".rfind(_REPOSITORY)
    return path if place < 0 else path[place + 1 :]
