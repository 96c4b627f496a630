"""What git does to a repository that it carries: named in plain words where it harms, and else harmless."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.reliability.support.small_repository import MAIN, say
from tests.store.support.histories import codes, new_store, reopen
from tests.support.git import git
from trace_store.errors import FormatError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.maintenance.repair_store import StoreRepair
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a repository with a sealed commit and a loose object, in git."""
    folder = tmp_path / "work"
    folder.mkdir()
    with new_store(folder) as store:
        say(store, "one")
        seal(store)
        store.objects.write(encode_blob(b"line by line\n" * 15))
    git(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def clone(folder: Path, *options: str) -> Path:
    target = folder.parent / "clone"
    git(folder.parent, "clone", "-q", *options, str(folder), str(target))
    return target


def test_a_clone_lacks_folders_modes_and_times_and_is_in_order(place: Path) -> None:
    (place / ".trace/refs/heads/empty").mkdir()
    commit(place, "all")
    copy = clone(place, "-c", "core.autocrlf=true")
    for path in (copy / ".trace").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (5, 5))
    with reopen(copy) as store:
        assert fsck(store) == []
        assert store.refs.read(MAIN) is not None


def test_converted_line_ends_are_named_and_mended(place: Path) -> None:
    (place / ".trace/.gitattributes").unlink()
    commit(place, "without attributes")
    copy = clone(place, "-c", "core.autocrlf=true")
    with reopen(copy) as store:
        found = {finding.code: finding.detail for finding in fsck(store)}
        assert "git may convert" in found["root-file-missing"]
        assert "git seems to have converted its line ends" in found["object-damaged"]
        assert StoreRepair(store).run().lost == ()
    with reopen(copy) as store:
        assert fsck(store) == []
        assert set(store.objects.iterate()) == set(reopen(place).objects.iterate())


def test_a_merge_conflict_in_the_configuration_is_named(place: Path) -> None:
    config = place / ".trace/config"
    text = config.read_text(encoding="utf-8")
    commit(place, "all")
    git(place, "checkout", "-q", "-b", "other")
    config.write_text(text.replace("o200k_base", "cl100k_base"), encoding="utf-8")
    commit(place, "theirs")
    git(place, "checkout", "-q", "main")
    config.write_text(text.replace('"main"', '"trunk"').replace("o200k", "p50k"), encoding="utf-8")
    commit(place, "ours")
    git(place, "merge", "-q", "other", code=None)
    if b"<<<<<<<" not in config.read_bytes():
        pytest.skip("this git merges such lines")
    with pytest.raises(FormatError, match="unresolved git merge conflicts"):
        reopen(place)


def test_a_half_done_checkout_is_incomplete_and_no_damage(place: Path) -> None:
    commit(place, "one")
    git(place, "checkout", "-q", "-b", "other")
    with reopen(place) as store:
        say(store, "two, of which more is said so that it has a pack of its own. " * 700)
        seal(store)
    commit(place, "two")
    git(place, "checkout", "-q", "main")
    git(place, "checkout", "other", "--", ".trace/refs")
    with reopen(place) as store:
        found = fsck(store)
        assert "ref-incomplete" in {finding.code for finding in found}
        assert not [f for f in found if f.severity == ERROR and f.code.startswith("object-dam")]
    git(place, "checkout", "other", "--", ".trace")
    with reopen(place) as store:
        assert not codes(store) & {"ref-incomplete", "object-missing", "pack-damaged"}


def test_what_repair_set_aside_outlives_a_clean(place: Path) -> None:
    (place / ".trace/.gitattributes").write_bytes(b"* text\n")
    commit(place, "all")
    with reopen(place) as store:
        kept = StoreRepair(store).run().kept
    assert kept
    git(place, "add", ".trace")
    git(place, "clean", "-fdxq")
    assert all((place / ".trace" / name).exists() for name in kept)
