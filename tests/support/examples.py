"""How many examples a property is tried on."""

from __future__ import annotations

import os

import pytest

FULL = "TRACE_TEST_FULL" in os.environ
"""Whether the long form of all tests was asked for."""
LONG_FORM = pytest.mark.skipif(not FULL, reason="for the long form: TRACE_TEST_FULL=1")
"""The mark of a test that only the long form runs."""


def examples(number: int, *, daily: int = 0) -> int:
    """Return a number of examples in the long form; in the daily one a sixth of it, or as many as are given."""
    return number if FULL else daily or max(10, number // 6)
