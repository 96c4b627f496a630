"""What is made anew when somebody else moved the branch meanwhile.

Rule: an attempt that failed so has written nothing. What was settled in it stays settled, while it is about the same.
"""

from __future__ import annotations

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

MAXIMUM_ATTEMPTS = 100


def until_written(attempt: Callable[[], T]) -> T:
    """Return what an attempt returns; it is made again, on what the branch is by then, where somebody was quicker.

    Raises:
        RefChangedError: others move the branch again and again, or it is gone.
        As the attempt.
    """
    for _ in range(MAXIMUM_ATTEMPTS - 1):
        try:
            return attempt()
        except errors.RefChangedError as error:
            if not is_outpaced(error):
                raise
    return attempt()


def is_outpaced(error: errors.RefChangedError) -> bool:
    """Tell whether a ref stands elsewhere by now, rather than being gone, or being one that does not count any more."""
    return error.data.get("actual") is not None
