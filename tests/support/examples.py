"""How many examples a property is tried on."""

from __future__ import annotations

import os

FULL = "TRACE_TEST_FULL" in os.environ
"""Whether the long form of all tests was asked for."""


def examples(number: int) -> int:
    """Return a number of examples in the long form, and a third of it in the daily one."""
    return number if FULL else max(10, number // 3)
