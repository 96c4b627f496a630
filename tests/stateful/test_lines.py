"""Random histories with merges, picks, rebases, reverts, undo: after each step every context is valid and explained.

`TRACE_TEST_LINES=2000` makes so many histories, each a longer one, and others each time; `nox -s lines` does.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.stateful.support.joining_rules import Joining
from tests.stateful.support.moving import Moving
from tests.stateful.support.reverting_rules import Reverting
from tests.stateful.support.rewriting_rules import Rewriting

EXAMPLES = os.environ.get("TRACE_TEST_LINES")


class Everything(Moving, Joining, Rewriting, Reverting):
    """All rules together."""


TestLines = Everything.TestCase
TestLines.settings = settings(
    max_examples=int(EXAMPLES or "12"),
    stateful_step_count=30 if EXAMPLES else 15,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
