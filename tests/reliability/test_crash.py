"""The power is cut at every point of a workload, and the store opened in every state that may leave.

Each sync of the library is taken out in turn, too, and must be missed. `nox -s crash` makes more of the choices that
there are at one point, and prints what was found; `limit` says how many of them a run makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from tests.reliability.support.recordings import (
    Count,
    Enumeration,
    Recording,
    Workload,
    prepared,
    record,
    record_killed,
)
from tests.reliability.support.workloads import KILLED, WORKLOADS, init
from trace_store.testing import Image

FULL = bool(os.environ.get("TRACE_TEST_FULL"))
LIMIT = 1000 if FULL else 16
KILLED_LIMIT = 12 if FULL else 3
SITE_LIMITS = (16, 128)


@cache
def recorded(workload: Workload) -> Recording:
    return record(workload, image_for(workload))


@cache
def syncs() -> dict[str, list[Workload]]:
    """Return by the site of each sync the workloads that come by it, those with the least to do first."""
    found: dict[str, list[Workload]] = {}
    for workload in WORKLOADS:
        for event in recorded(workload).log():
            if (
                event.site
                and not event.site.startswith("tests.")
                and workload not in found.setdefault(event.site, [])
            ):
                found[event.site].append(workload)
    return {
        site: sorted(found[site], key=lambda workload: len(recorded(workload).log()))
        for site in sorted(found)
    }


def image_for(workload: Workload) -> Image:
    return prepared(repository=workload is not init)


@pytest.fixture(scope="module")
def report() -> Iterator[list[str]]:
    lines: list[str] = []
    yield lines
    print("\n" + "\n".join(lines))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_nothing_acknowledged_is_lost_with_the_power(workload: Workload, report: list[str]) -> None:
    enumeration = Enumeration(limit=LIMIT, thorough=4 if FULL else 20)
    found = list(enumeration.violations(recorded(workload)))
    report.append(line_of(workload.__name__, enumeration.count))
    assert not found, found[0]


@pytest.mark.parametrize(("first", "second"), KILLED, ids=lambda workload: workload.__name__)
def test_what_a_killed_process_left_is_no_trap(
    first: Workload, second: Workload, report: list[str]
) -> None:
    """One is killed, another builds on what it finds, and then the power is cut."""
    enumeration = Enumeration(limit=KILLED_LIMIT, thorough=10**9)
    length = len(record(first, prepared()).log())
    kills = range(length) if FULL else range(1, length, length // 4 or 1)
    found: list[str] = []
    for at in kills:
        recording = record_killed(first, second, prepared(), at)
        found += () if recording is None else enumeration.violations(recording)
    name = f"{first.__name__} killed at {len(kills)} points, then {second.__name__}"
    report.append(line_of(name, enumeration.count))
    assert not found, found[0]


@pytest.mark.parametrize("site", syncs())
def test_no_sync_is_needless(site: str, report: list[str]) -> None:
    """What a sync is for is lost when it is taken out."""
    for limit, workload in product(SITE_LIMITS, syncs()[site]):
        recording = record(workload, image_for(workload), without=site)
        enumeration = Enumeration(limit=limit, thorough=10**9)
        caught = next(enumeration.violations(recording), "")
        if caught:
            report.append(f"{site} | {workload.__name__} | {caught}")
            return
    pytest.fail(f"nothing is lost without it: {site}")


def line_of(name: str, count: Count) -> str:
    return (
        f"{name}: {count.cuts} cuts, {count.states} states, {count.distinct} different, "
        f"{len(count.violations)} violations; {count.bounded} cuts with more choices than were made"
    )
