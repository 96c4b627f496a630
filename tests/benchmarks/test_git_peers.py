"""git, pygit2 and dulwich hold the messages that they were given, and read each other's."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from benchmarks.messages import characters
from benchmarks.model import Turn, Unavailable, Work
from benchmarks.peers import load
from benchmarks.sources import Corpus
from benchmarks.transcripts import turns

COUNT = 30


@pytest.fixture(scope="module")
def given() -> list[Turn]:
    files = [file for file in Corpus.installed().files if "/" not in file.name][:40]
    return list(islice(turns("repetitive", 1, Corpus(files)), COUNT + 2))


def peer(name: str) -> Any:
    try:
        return load(name)
    except Unavailable as reason:
        pytest.skip(f"{name}: {reason}")


@pytest.fixture
def store(tmp_path: Path, given: list[Turn]) -> Path:
    peer("git").build(tmp_path, iter(given[:COUNT]))
    return tmp_path


@pytest.mark.parametrize(("name", "mode"), [("git", "all"), ("pygit2", "fsync"), ("dulwich", "")])
def test_what_is_appended_is_there(name: str, mode: str, store: Path, given: list[Turn]) -> None:
    writer = peer(name).writer(store, mode)
    writer.append([writer.prepare(turn) for turn in given[COUNT:]])
    assert writer.count() == COUNT + 2
    writer.close()
    assert peer("git").compile(store)() == Work(COUNT + 2, characters(given))
    assert peer("git").verify(store)().messages == COUNT + 2


@pytest.mark.parametrize("name", ["git", "pygit2", "dulwich"])
def test_reading_does_what_it_says(name: str, store: Path, given: list[Turn]) -> None:
    assert peer(name).compile(store)() == Work(COUNT, characters(given[:COUNT]))
    assert peer(name).log(store)().messages == COUNT
    assert peer(name).log(store, limit=7)().messages == 7
    ids = str(store / "blobs.txt")
    assert peer(name).read(store, ids)() == peer("git").read(store, ids)()


def test_what_git_refuses_is_said(tmp_path: Path) -> None:
    git = peer("git")
    (tmp_path / "repository.git").mkdir()
    with pytest.raises(Unavailable, match="git"):
        git.verify(tmp_path)
