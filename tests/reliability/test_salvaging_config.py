"""`fsck --repair` where the configuration is gone or damaged, without which nothing else of a repository is read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import repository, trace
from tests.store.support.histories import append, new_store
from tests.support.command_line import Trace
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.errors import (
    FormatError,
    RepositoryNotFoundError,
    StorageError,
    UnsupportedFormatError,
    UntrustedRepositoryError,
)
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.repair_files import open_damaged, repair_config
from trace_store.store.discovery import find
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk

__all__ = ["repository", "trace"]

HERE = Environment(author="Ada", discovery=False)


@pytest.fixture
def config(repository: Trace, tmp_path: Path) -> Path:
    """The configuration of a repository with a commit, and a setting of each sort."""
    assert repository("commit", "-q", "--no-seal", "--user", "Plan the release.").code == 0
    assert repository("config", "budget", "200k").code == 0
    assert repository("config", "default_branch", "trunk").code == 0
    path = tmp_path / ".trace" / "config"
    path.write_text(path.read_text() + 'colour = "teal"\n')
    return path


def settings(path: Path) -> dict[str, object]:
    return dict(Store.open(str(path.parent)).config.items())


@pytest.mark.parametrize(
    "key", ["store_id", "format", "requires", "default_branch", "tokenizer", "budget", "colour"]
)
def test_one_damaged_line_costs_that_setting_alone(
    repository: Trace, config: Path, key: str
) -> None:
    before = settings(config)
    lines = config.read_bytes().splitlines(keepends=True)
    damaged = [b'\xff = "\x00\n' if line.startswith(key.encode()) else line for line in lines]
    config.write_bytes(b"".join(damaged))
    refused = repository("log")
    assert refused.code == 12
    assert "hint: `trace fsck --repair` rewrites it" in refused.err
    mended = repository("fsck", "--repair")
    assert mended.code == 0, mended.err
    assert mended.lines[0].startswith("file config: rewritten; kept: ")
    assert ("it has a new store id" in mended.text) == (key == "store_id")
    after = settings(config)
    default = {"format": 2, "requires": [], "default_branch": "main", "tokenizer": "o200k_base"}
    if key == "store_id":
        assert len(str(after.pop(key))) == 32
    assert after == {k: default.get(k) if k == key else v for k, v in before.items() if k in after}
    assert set(before) - set(after) <= {key}
    assert "Plan the release." in repository("compile", "main", "-f", "text").text
    (aside,) = (config.parent / "lost-found").glob("config-*")
    assert aside.read_bytes() == b"".join(damaged)
    again = repository("fsck", "--repair")
    assert (again.code, again.text) == (0, "")


def test_a_repository_without_its_configuration_is_not_passed_over(
    trace: Trace, repository: Trace, config: Path, tmp_path: Path
) -> None:
    """What is committed must not go to a repository of a folder above."""
    below = tmp_path / "below"
    shutil.copytree(config.parent, below / ".trace")
    (below / ".trace" / "config").unlink()
    around = Environment(author="Ada")
    for words in (["commit", "--user", "x"], ["fsck"], ["log"]):
        run = trace("-C", "below", *words, environment=around)
        assert run.code == 12
        assert "the configuration is missing: " in run.err
        assert "`trace fsck --repair`" in run.err
    assert trace("-C", "below", "fsck", "--repair", "-n", environment=around).code == 0
    assert not (below / ".trace" / "config").exists()
    run = trace("-C", "below", "fsck", "--repair", environment=around)
    assert run.code == 0, run.err
    assert "file config: rewritten; it has a new store id" in run.text
    assert "Plan the release." in trace("-C", "below", "log", environment=around).text
    assert settings(below / ".trace" / "config")["store_id"] != settings(config)["store_id"]


def test_another_copy_gives_the_configuration_back(
    repository: Trace, config: Path, tmp_path: Path
) -> None:
    shutil.copytree(config.parent, tmp_path / "copy" / ".trace")
    whole = config.read_bytes()
    for damage in (None, b"", b"[", bytes(len(whole))):
        config.unlink() if damage is None else config.write_bytes(damage)
        assert repository("fsck", "--repair", "--from", "copy", "--dry-run").code == 0
        assert not config.exists() if damage is None else config.read_bytes() == damage
        run = repository("fsck", "--repair", "--from", "copy")
        assert run.code == 0, run.err
        assert run.lines[0] == "file config: taken from the other copy"
        assert config.read_bytes() == whole


def test_of_a_merge_conflict_one_side_is_taken(repository: Trace, config: Path) -> None:
    text = config.read_text()
    sides = "<<<<<<< ours\nbudget = 1000\n=======\nbudget = 2000\n>>>>>>> theirs\n"
    config.write_text(text.replace("budget = 200000\n", sides))
    assert repository("fsck", "--repair").code == 0
    assert settings(config)["budget"] == 1000


def test_what_a_newer_version_wrote_is_left_alone(repository: Trace, config: Path) -> None:
    for text in ('format = 3\nstore_id = "', 'format = 2\nrequires = ["wings"]\n\xff'):
        config.write_text(text)
        with pytest.raises((UnsupportedFormatError, FormatError)) as caught:
            open_damaged(str(config.parent))
        assert isinstance(caught.value, UnsupportedFormatError)
        assert config.read_text() == text
        assert repository("fsck", "--repair").code == 13


def test_interrupted_anywhere_and_begun_again_it_ends_the_same(tmp_path: Path) -> None:
    store = new_store(tmp_path / "sound")
    append(store, "one")
    store.close()
    at, ended = 0, False
    while not ended:
        at += 1
        root = tmp_path / str(at) / ".trace"
        shutil.copytree(tmp_path / "sound" / ".trace", root)
        text = (root / "config").read_bytes()
        (root / "config").write_bytes(damaged := text.replace(b"requires", b"\xff"))
        try:
            with open_damaged(str(root), disk=FailingDisk(at)) as store:
                repair_config(store)
            ended = True
        except StorageError:
            assert (root / "config").read_bytes() in (damaged, text)
        with open_damaged(str(root)) as store:
            repair_config(store)
            assert fsck(store) == []
            assert store.config.get("requires") == []
        (aside,) = (root / "lost-found").glob("config-*")
        assert aside.read_bytes() == damaged
    assert at > 5


def test_only_what_was_a_repository_is_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / ".trace"
    (path / "objects" / "pack").mkdir(parents=True)
    (path / ".gitignore").touch()
    for place in (str(tmp_path), str(path)):
        with pytest.raises(RepositoryNotFoundError):
            find(place, HERE, explicit=place, damaged=True)
    (path / ".gitattributes").touch()
    with pytest.raises(FormatError, match="configuration is missing"):
        find(str(tmp_path), HERE)
    assert find(str(tmp_path), HERE, damaged=True) == str(path)
    assert find("", HERE, explicit=str(tmp_path), damaged=True) == str(path)
    if hasattr(os, "getuid"):
        other = Environment(author="Eve", discovery=False, user_ids=(os.getuid() + 1,))
        for explicit in (None, str(path)):
            with pytest.raises(UntrustedRepositoryError):
                find(str(tmp_path), other, explicit=explicit, damaged=True, disk=Disk())
