"""Repositories of two sizes on each axis, to compare costs with the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.growth.support.counting import Cost, cost_of, grown, use_disk
from tests.growth.support.stores import (
    AXES,
    FACTOR,
    LARGE,
    SMALL,
    Place,
    QuickRecordingDisk,
    build,
    copy,
)
from tests.growth.support.table import row_of
from trace_store.commit_table import table
from trace_store.disk import files
from trace_store.journal import published
from trace_store.odb import pack_index
from trace_store.refs import summary


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of a small repository and of one that is larger on each axis."""
    base = tmp_path_factory.mktemp("growth")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            published, "MAXIMUM_CHANGED", 16
        )  # so that the small one has a table of refs, too
        for name, size in {"small": SMALL, **LARGE}.items():
            build(base / name, size)
    return {name: base / name for name in ("small", *AXES)}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrink read units, so that even the small repository has several of each."""
    monkeypatch.setattr(table, "CHUNK_ROWS", 16)
    monkeypatch.setattr(table, "RECENT_ROWS", 32)
    monkeypatch.setattr(pack_index, "FEW_LOOK_UPS", 1_000_000)
    monkeypatch.setattr(summary, "ALWAYS_READ", 4)


def looked(place: Place) -> None:
    """Read the refs once after the copy, as an earlier command would have; close it."""
    place.repo.status()
    place.close()


Right = str | Callable[[Place, Any], object]
"""What the result of an operation must be: a pattern in the text that it returned, or a test of place and result."""


def commits(place: Place) -> int:
    """Return the number of commits on the branch at hand."""
    return len(list(place.repo.log()))


def messages(place: Place) -> int:
    """Return the number of messages shown on the branch at hand."""
    return len(place.repo.compile())


def branches(place: Place) -> int:
    """Return the number of branches."""
    return len(place.repo.branches.list())


def lines(count: Callable[[Place], int], beside: int = 0) -> Right:
    """Return a check that a text has one line for each counted item, and `beside` further lines."""
    return lambda place, said: len(said.splitlines()) == count(place) + beside


def ends_with(*texts: str) -> Right:
    """Return the test for a context that ends with these messages."""
    return lambda place, _: (
        tuple(m.text for m in place.repo.compile().messages[-len(texts) :]) == texts
    )


class Growth:
    """Compares an operation's costs on repositories of two sizes with the table."""

    def __init__(
        self,
        test: str,
        repositories: dict[str, Path],
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._test = test
        self._repositories = repositories
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._disk = QuickRecordingDisk()
        self._runs = 0
        self._right: Right | None = None

    def check(
        self,
        run: Callable[[Place], object],
        *,
        before: Callable[[Place], object] | None = None,
        right: Right | None = None,
    ) -> None:
        """Check an operation.

        Args:
            run: does it; it is run on the small repository first for what the process does only once.
            before: gets ready, uncounted; by default nothing is open.
            right: what the result must be, looked at uncounted; by default it is enough that nothing failed.
        """
        self._right = right
        claimed = row_of(self._test).grows
        self._cost("small", run, before)
        small = self._cost("small", run, before)
        for axis in AXES:
            large = self._cost(axis, run, before)
            found = grown(small, large)
            assert found <= claimed[axis], f"{axis}: {sorted(found)} grow: {small} → {large}"
            above = grown(small, large, FACTOR)
            assert not above, f"{axis}: {sorted(above)} more than in proportion: {small} → {large}"

    def _cost(
        self, name: str, run: Callable[[Place], object], before: Callable[[Place], object] | None
    ) -> Cost:
        self._runs += 1
        use_disk(
            self._monkeypatch, self._disk
        )  # also modules that the last run was the first to need
        folder = self._folder / str(self._runs)
        copy(self._repositories[name], folder)
        place = Place(folder, self._disk)
        try:
            if before is not None:
                before(place)
            results: list[object] = []
            cost = cost_of(lambda: results.append(run(place)), self._disk)
            self._look_at(place, *results)
            return cost
        finally:
            place.close()

    def _look_at(self, place: Place, result: object) -> None:
        right = self._right
        if isinstance(right, str):
            assert isinstance(result, str)
            assert re.search(right, result), result[:2000]
        elif right is not None:
            assert right(place, result), str(result)[:2000]


@pytest.fixture(autouse=True)
def settled_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the times of files at once, so that counts do not depend on the speed of the machine.

    Trace rereads a file that changed less than 50 ms ago. How many files are that new depends on the machine's load.
    """
    monkeypatch.setattr(files, "SETTLED_MS", -1)


@pytest.fixture
def growth(
    request: pytest.FixtureRequest,
    repositories: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Growth:
    """What a test of the table measures with."""
    return Growth(request.node.originalname, repositories, tmp_path, monkeypatch)
