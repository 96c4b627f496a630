"""Change detection by stamps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trace_store.disk.files import SETTLED_MS, Disk, stamp, unchanged

DISK = Disk()

LONG_AGO = 1_600_000_000_123_456_789


def settle(path: Path, time: int = LONG_AGO) -> None:
    """Set a path's modification time, in nanoseconds."""
    os.utime(path, ns=(time, time))


def test_a_path_that_stays_has_one_stamp(tmp_path: Path) -> None:
    for path in (tmp_path / "file", tmp_path / "folder"):
        path.write_bytes(b"x") if path.name == "file" else path.mkdir()
        settle(path)
        assert unchanged(DISK, str(path), stamp(DISK, str(path)))


def test_what_changed_a_moment_ago_equals_nothing(tmp_path: Path) -> None:
    """A second change within the same kernel clock tick would be invisible."""
    path = tmp_path / "file"
    path.write_bytes(b"x")
    assert not unchanged(DISK, str(path), stamp(DISK, str(path)))


def test_times_in_whole_milliseconds_are_not_trusted(tmp_path: Path) -> None:
    """Some file systems store whole seconds only, and some record no directory changes."""
    path = tmp_path / "file"
    path.write_bytes(b"x")
    settle(path, LONG_AGO // 1_000_000 * 1_000_000)
    assert not unchanged(DISK, str(path), stamp(DISK, str(path)))


@pytest.mark.parametrize("change", ["add", "remove", "replace"])
def test_a_folder_shows_each_change_of_its_names(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one").touch()
    (tmp_path / "other").touch()
    settle(folder)
    before = stamp(DISK, str(folder))
    if change == "add":
        (folder / "two").touch()
    elif change == "remove":
        (folder / "one").unlink()
    else:
        (tmp_path / "other").rename(folder / "one")
    assert not unchanged(DISK, str(folder), before)


def test_absent_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "none"
    absent = stamp(DISK, str(path))
    assert unchanged(DISK, str(path), absent)
    assert not DISK.exists(str(path))
    path.touch()
    assert DISK.exists(str(path))
    assert not unchanged(DISK, str(path), absent)
    assert SETTLED_MS >= 20, "kernels note the time as seldom as every 10 ms"
