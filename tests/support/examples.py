"""How many examples a property is tried on."""

from __future__ import annotations

import os

FULL = "TRACE_TEST_FULL" in os.environ
"""Whether the long form of all tests was asked for."""


def examples(number: int, *, daily: int = 0) -> int:
    """Return a number of examples in the long form; in the daily one a sixth of it, or as many as are given."""
    return number if FULL else daily or max(10, number // 6)
