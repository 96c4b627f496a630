"""A revert that looks at the end of a context takes back what it takes back on whole ones."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from tests.joining.support.histories import Lines, histories
from tests.joining.support.lines import on
from trace_store import Repo
from trace_store.branching import nearby
from trace_store.branching.inverting import Conflict, Inverse
from trace_store.branching.reverting import TakingBack
from trace_store.oid import ObjectId


def taken_back(repo: Repo, oids: list[ObjectId], favour: bool) -> tuple[list[Any], bool]:
    """Return what takes commits back, and whether the end of the context told."""
    line = TakingBack(repo.store, "ada", oids)
    made: list[Any] = []

    def decide(_: Conflict) -> bool:
        return favour

    for oid in oids:
        inverse: Inverse = line.inverse(oid, decide)
        made.append((inverse.operations, inverse.conflicts))
        line.put(oid, inverse)
    return made, bool(line._near)


SAID = ("result", "user", "user")
EARLY = [
    ("change", "side", ("say", ["user"])),
    *[("change", "main", ("say", [*SAID]))] * 2,
    ("change", "main", ("say", ["call"])),
    ("merge", "main", "side", "append"),
    ("change", "main", ("say", ["user"])),
]
"""Two results stand before the call that the first of them answers."""


@example(EARLY, [4], False, 1)
@given(
    histories,
    st.lists(st.integers(0, 4), min_size=1, max_size=2, unique=True),
    st.booleans(),
    st.integers(1, 3),
)
@settings(
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("TRACE_TEST_EXAMPLES", "25")),
)
def test_the_end_of_a_context_tells_what_the_whole_tells(
    history: list[tuple[Any, ...]], back: list[int], favour: bool, steps: int
) -> None:
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        lines = Lines(repo)
        done = [step for step in history if lines.do(step)]
        on(repo, done[-1][1] if done else "main")
        line = [entry.oid for entry in repo.log("HEAD")]
        oids = [line[n] for n in back if n < len(line)]
        if not oids:
            return
        patch.setattr(nearby, "STEPS", steps)
        near, told = taken_back(repo, oids, favour)
        event("the end" if told else "the whole")
        patch.setattr("trace_store.branching.reverting.nearby", lambda *_: None)
        assert near == taken_back(repo, oids, favour)[0]
