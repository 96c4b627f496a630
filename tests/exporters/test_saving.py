"""Exported files on disk: complete or absent, and never over existing files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store.disk.files import Disk
from trace_store.errors import AlreadyExistsError, StorageError
from trace_store.exporters.contract import Exported
from trace_store.exporters.files import save_file

EXPORTED = Exported([b"one", b"two"], (), "session.txt")


def test_a_file_is_written_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "session.txt"
    assert save_file(Disk(), str(path), EXPORTED) == 6
    assert path.read_bytes() == b"onetwo"
    assert os.listdir(tmp_path) == ["session.txt"]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "session.txt"
    path.write_bytes(b"mine")
    with pytest.raises(AlreadyExistsError):
        save_file(Disk(), str(path), EXPORTED)
    assert path.read_bytes() == b"mine"
    save_file(Disk(), str(path), EXPORTED, overwrite=True)
    assert path.read_bytes() == b"onetwo"
    assert os.listdir(tmp_path) == ["session.txt"]


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "session.txt"

    def chunks() -> Iterator[bytes]:
        path.write_bytes(b"theirs")
        yield b"ours"

    with pytest.raises(AlreadyExistsError):
        save_file(Disk(), str(path), Exported(chunks(), (), ""))
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["session.txt"]


def test_a_disk_without_links_will_do(tmp_path: Path) -> None:
    class Unlinked(Disk):
        __slots__ = ()

        def link(self, source: str, target: str) -> bool:
            return False

    path = tmp_path / "session.txt"
    save_file(Unlinked(), str(path), EXPORTED)
    assert path.read_bytes() == b"onetwo"
    with pytest.raises(AlreadyExistsError):
        save_file(Unlinked(), str(path), EXPORTED)
    assert os.listdir(tmp_path) == ["session.txt"]


@pytest.mark.parametrize("failing", ["write", "sync", "rename", "link"])
def test_nothing_half_written_is_left(tmp_path: Path, failing: str) -> None:
    class Failing(Disk):
        __slots__ = ()

    def fail(*_: object, **__: object) -> bool:
        raise StorageError("the disk is full")

    setattr(Failing, failing, fail)
    path = tmp_path / "session.txt"
    path.write_bytes(b"mine")
    with pytest.raises(StorageError):
        save_file(Failing(), str(tmp_path / "other.txt"), EXPORTED, overwrite=failing != "link")
    assert os.listdir(tmp_path) == ["session.txt"]
    if failing != "link":
        with pytest.raises(StorageError):
            save_file(Failing(), str(path), EXPORTED, overwrite=True)
    assert path.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["session.txt"]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"begun"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        save_file(Disk(), str(tmp_path / "session.txt"), Exported(chunks(), (), ""))
    assert os.listdir(tmp_path) == []
