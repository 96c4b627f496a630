"""The power is cut at every point of a workload, and the store opened in every state that may leave.

Each sync in the source is taken out in turn, too, and must be missed. `nox -s crash` makes more of the choices that
there are at one point, and prints what was found; `limit` says how many of them a run makes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from tests.reliability.support.all_workloads import MEETINGS, WORKLOADS
from tests.reliability.support.enumerations import Count, Enumeration
from tests.reliability.support.locks import no_lock_on_the_real_disk
from tests.reliability.support.recordings import Meeting, Recording, Workload
from tests.reliability.support.sync_sites import Place, places

__all__ = ["no_lock_on_the_real_disk"]

FULL = bool(os.environ.get("TRACE_TEST_FULL"))
LIMIT = 1000 if FULL else 16
KILLED_LIMIT = 12 if FULL else 3
SITE_LIMITS = (16, 128)
TOLD_CHARACTERS = 110
PAGE = Path(__file__).parents[2] / "docs" / "design" / "reliability-tests.md"
LONG_ID = re.compile("[0-9a-f]{32,64}")

UNMISSED = {
    "refs.reflog append_log: replace_file(disk, path, read_file(disk, path) or b'') > replace_file": (
        "nothing: without the new name the old one stands, with the same entries"
    ),
}
"""Syncs whose omission no workload detects, and why they are needed."""


def rows(page: str, head: str) -> dict[str, str]:
    """Return the first two cells of each row of the table that begins with `head`."""
    table = page[page.index(head) :].partition("\n\n")[0]
    cells = (line.split(" | ") for line in table.splitlines()[2:])
    return {first.removeprefix("| "): second for first, second, *_ in cells}


@cache
def known_to_catch() -> dict[str, str]:
    """Return the workload that caught the omission of each sync, as the page lists them, to try it first."""
    return rows(PAGE.read_text("utf-8"), "| sync removed |")


@cache
def log_of(workload: Workload) -> Recording:
    return workload.record(blind=True)


@cache
def killed(meeting: Meeting) -> list[tuple[int, frozenset[str]]]:
    """Return for each point at which the first may be killed which sites the other comes by."""
    length = len(log_of(meeting.first).log())
    found = []
    for at in range(length):
        recording = meeting.record(at, blind=True)
        if recording is not None:
            behind = recording.disk.log[recording.judged_from :]
            found.append((at, frozenset(event.site for event in behind if event.site)))
    return found


def sites_of(place: Place) -> list[str]:
    """Return the names of a call site in the logs of the workloads that reach it."""
    found = {e.site for w in WORKLOADS for e in log_of(w).log() if place.is_at(e.site)}
    meetings = iter(MEETINGS)
    while not found and (meeting := next(meetings, None)) is not None:
        found = {site for _, sites in killed(meeting) for site in sites if place.is_at(site)}
    return sorted(found)


def workloads_without(site: str, names: Collection[str]) -> Iterator[tuple[str, Recording]]:
    """Yield (name, recording) of the named workloads with a sync left out, shortest first."""
    some = [each for each in WORKLOADS if each.name in names]
    for workload in sorted(some, key=lambda each: len(log_of(each).log())):
        if any(event.site == site for event in log_of(workload).log()):
            yield workload.name, workload.record(without=site)


def meetings_without(site: str, names: Collection[str]) -> Iterator[tuple[str, Recording]]:
    """Yield (name, recording) of the named ones that come by it where another was killed."""
    for meeting in (each for each in MEETINGS if each.name in names):
        for at, sites in reversed(
            killed(meeting)
        ):  # the last ones have done most, which the other builds on
            if site in sites and (recording := meeting.record(at, without=site)) is not None:
                yield meeting.name, recording


def caught_without(site: str, known: str) -> tuple[str, str]:
    """Return (workload, faults) without a sync; nothing if its omission has no effect.

    The workload that is known to catch it comes first.
    """
    everyone = [*(each.name for each in WORKLOADS), *(each.name for each in MEETINGS)]
    for names, limit, recordings in product(
        ([known], everyone), SITE_LIMITS, (workloads_without, meetings_without)
    ):
        for name, recording in recordings(site, names):
            enumeration = Enumeration(limit=limit, thorough=10**9)
            if caught := next(enumeration.violations(recording), ""):
                return name, caught
    return "", ""


class Report:
    """What was found, as tables that can be put into a page."""

    def __init__(self) -> None:
        self.counts: list[str] = []
        self.syncs: list[str] = []

    def count(self, name: str, count: Count) -> None:
        self.counts.append(
            f"| {name} | {count.cuts:,} | {count.states:,} | {count.distinct:,} | "
            f"{len(count.violations)} | {count.bounded:,} |"
        )

    def sync(self, place: Place, workload: str, caught: str) -> None:
        told = LONG_ID.sub(lambda found: found[0][:8], caught.partition(" [cut ")[0])
        if len(told) > TOLD_CHARACTERS:
            told = told[: TOLD_CHARACTERS - 1] + "…"
        self.syncs.append(f"| `{place.name}` | {workload} | {told} |")

    def print(self) -> None:
        if self.counts:
            print("\n\n| workload | cuts | states | different | violations | bounded cuts |")
            print("|---|--:|--:|--:|--:|--:|", *self.counts, sep="\n")
        if self.syncs:
            print("\n| sync removed | workload | what it caught |")
            print("|---|---|---|", *sorted(set(self.syncs)), sep="\n")


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    report = Report()
    yield report
    report.print()


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_nothing_acknowledged_is_lost_with_the_power(workload: Workload, report: Report) -> None:
    enumeration = Enumeration(limit=LIMIT, thorough=4 if FULL else 20)
    found = list(enumeration.violations(workload.record()))
    report.count(workload.name, enumeration.count)
    assert not found, found[0]


@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda meeting: meeting.name)
def test_what_a_killed_process_left_is_no_trap(meeting: Meeting, report: Report) -> None:
    """A process is killed, another continues from its state, then the power is cut."""
    enumeration = Enumeration(limit=KILLED_LIMIT, thorough=10**9)
    length = len(log_of(meeting.first).log())
    kills = range(length) if FULL else range(1, length, length // 4 or 1)
    found: list[str] = []
    for at in kills:
        recording = meeting.record(at)
        found += () if recording is None else enumeration.violations(recording)
    report.count(f"{meeting.name} ({len(kills)} points)", enumeration.count)
    assert not found, found[0]


def test_the_page_lists_every_sync_and_every_workload() -> None:
    page = PAGE.read_text("utf-8")
    assert known_to_catch().keys() == {f"`{place.name}`" for place in places()}
    visited = rows(page, "| workload | cuts |")
    names = {each.name for each in WORKLOADS} | {each.name for each in MEETINGS}
    assert {each.partition(" (")[0] for each in visited} == names


@pytest.mark.parametrize("place", places(), ids=lambda place: place.name)
def test_no_sync_is_needless(place: Place, report: Report) -> None:
    """What a sync is for is lost when it is taken out."""
    sites = sites_of(place)
    assert sites or place.name in UNMISSED, f"no workload comes by it: {place.name}"
    if place.name in UNMISSED and not FULL:
        pytest.skip("nothing catches it: for the long form")
    known = known_to_catch().get(f"`{place.name}`", "")
    for site in sites:
        workload, caught = caught_without(site, known)
        assert bool(caught) != (place.name in UNMISSED), f"nothing is lost without it: {site}"
        report.sync(place, workload, caught or UNMISSED[place.name])


def test_what_is_said_to_be_unmissed_is_there() -> None:
    assert {place.name for place in places()} >= UNMISSED.keys()
