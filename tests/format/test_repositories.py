"""Repositories of earlier versions: read, verified, compiled, and continued."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tools.make_fixture import expected
from trace_store import __version__
from trace_store.maintenance.fsck import check_derived, fsck
from trace_store.maintenance.fsck_objects import ERROR, WARNING
from trace_store.maintenance.repack import pack
from trace_store.maintenance.repair_store import StoreRepair
from trace_store.maintenance.seal import seal
from trace_store.repo.repository import Repo
from trace_store.store.store import Store

FIXTURES = Path(__file__).parent / "repositories"
VERSIONS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


def test_this_version_has_one() -> None:
    """A release leaves its repository behind: `python tools/make_fixture.py`, before the version goes up."""
    assert __version__ in VERSIONS


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Path:
    return FIXTURES / str(request.param)


@pytest.fixture
def place(version: Path, tmp_path: Path) -> Path:
    shutil.copytree(version / "repository", tmp_path / ".trace")
    return tmp_path


def recorded(version: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((version / "expected.json").read_text(encoding="utf-8"))
    return found


def wrong(store: Store) -> list[str]:
    found = fsck(store, also=[check_derived])
    return [f"{f.code} {f.what}" for f in found if f.severity in (ERROR, WARNING)]


def test_it_holds_something_of_everything(version: Path) -> None:
    root = version / "repository"
    for pattern in (
        *("objects/pack/*.pack", "objects/??/*", "journal/*", "logs/**/*.log", "index/*.messages"),
        *("index/*.tokens", "index/commits.table", "cache/tokens/*", "local/published", "HEAD"),
        *("refs/heads/shared/*", "refs/tags/*/*", "refs/checkpoints/*/*", "refs/trash/**/*"),
        "refs/heads/sessions/**/*",
    ):
        assert list(root.glob(pattern)), pattern
    assert len(list((root / "refs/heads/shared").iterdir())) == 2, "a diverged branch"


def test_it_is_read_as_it_was_written(place: Path, version: Path) -> None:
    with Store.open(str(place / ".trace")) as store:
        assert wrong(store) == []
        assert expected(store) == recorded(version)


def test_it_is_whole_without_what_is_derived(place: Path, version: Path) -> None:
    for name in ("index", "cache", "logs"):
        shutil.rmtree(place / ".trace" / name)
    for path in (place / ".trace/objects/pack").glob("*.idx"):
        path.unlink()
    with Store.open(str(place / ".trace")) as store:
        assert expected(store) == recorded(version)


def test_it_can_be_gone_on_with(place: Path, version: Path) -> None:
    with Repo.open(place, create=False) as repo:
        before = len(repo.compile("main"))
        repo.append("user", "Thank you.")
        assert len(repo.compile("main")) == before + 1
        seal(repo.store)
        pack(repo.store)
        assert wrong(repo.store) == []
        after = expected(repo.store)
    for name, branch in recorded(version)["branches"].items():
        if name != "refs/heads/main":
            assert after["branches"][name] == branch


def test_a_repair_finds_nothing_to_do(place: Path) -> None:
    with Store.open(str(place / ".trace")) as store:
        mended = StoreRepair(store).run().mended
        # Older repositories have shorter files.
        assert {each.what for each in mended} <= {".gitignore", ".gitattributes"}
        assert StoreRepair(store).run().mended == ()
