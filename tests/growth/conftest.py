"""Repositories of two sizes on each axis, to compare costs with the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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

    def check(
        self,
        run: Callable[[Place], object],
        *,
        before: Callable[[Place], object] | None = None,
    ) -> None:
        """Check an operation.

        Args:
            run: does it; it is run on the small repository first for what the process does only once.
            before: gets ready, uncounted; by default nothing is open.
        """
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
            return cost_of(lambda: run(place), self._disk)
        finally:
            place.close()


@pytest.fixture
def growth(
    request: pytest.FixtureRequest,
    repositories: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Growth:
    """What a test of the table measures with."""
    return Growth(request.node.originalname, repositories, tmp_path, monkeypatch)
