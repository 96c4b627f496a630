"""Recording an event costs the same in a large repository, and after many events."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.growth.conftest import Growth, looked
from tests.growth.support.counting import Cost, cost_of, grown, use_disk
from tests.growth.support.stores import Place, QuickDisk, QuickRecordingDisk
from tests.support.examples import FULL
from trace_store import Repo
from trace_store.maintenance.repack import pack
from trace_store.store.store import Store
from trace_store.trajectories.events import NewEvent, event_data
from trace_store.trajectories.recording import Recorder
from trace_store.writer import Writer

SIZES = (10, 1_000, 10_000) if FULL else (10, 1_000)
DECISION = ("tr", "decision", "Which?|this one", "--reasoning", "it is small", "-q")


def test_trajectory_commands(growth: Growth) -> None:
    def run(place: Place) -> str:
        said = ""
        for words in (
            ("start", "Sign in", "-q"),
            ("chapter", "Tests", "-q"),
            DECISION[1:],
            ("finding", "it is slow", "-q"),
            ("message", "--to", "bo", "ready?", "-q"),
            ("amend", "d1", "--confidence", "0.5", "-q"),
            ("status",),
            ("task",),
            ("sync",),
            ("show", "--events"),
            ("complete", "Done", "-q"),
            ("list",),
        ):
            said = place.trace("trajectory", *words)
        return said

    growth.check(run, before=looked, right="(?i)completed? .*Sign in|Sign in.* completed?")


def with_events(folder: Path, count: int) -> None:
    """Create a packed repository with a trajectory of `count` events."""
    store = Store.init(str(folder), durability="fast", disk=QuickDisk())
    with Repo(store, author="ada") as repo:
        state = repo.trajectories.start("Sign in", agent="ada")
        data = [event_data("note", f"note {number}") for number in range(count - 1)]
        events = [NewEvent(each, "ada") for each in data]
        Recorder(Writer(store)).record(state.id, events)
        repo.seal()
        pack(store)


def test_a_decision_costs_the_same_after_many_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def costs(size: int) -> list[Cost]:
        folder, disk = tmp_path / str(size), QuickRecordingDisk()
        with_events(folder, size)
        use_disk(monkeypatch, disk)
        monkeypatch.chdir(folder)
        place = Place(folder, disk)
        place.trace(*DECISION)
        place.trace(*DECISION)
        commands = (DECISION, ("tr", "status"), ("tr", "list"))
        return [cost_of(partial(place.trace, *words), disk) for words in commands]

    small, *larger = map(costs, SIZES)
    for large in larger:
        for few, many in zip(small, large, strict=True):
            assert grown(few, many) == set(), (few, many)
