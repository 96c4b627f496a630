"""`trace doctor`: checks and reports on the environment, without changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.reliability.support.small_repository import say
from tests.store.support.histories import new_store, reopen
from tests.support.subjects import upkeep
from trace_store.base.environment import Environment
from trace_store.base.ident import Clock
from trace_store.disk.file_systems import FileSystem
from trace_store.maintenance import doctor
from trace_store.maintenance.doctor import Diagnosis, diagnose
from trace_store.maintenance.repair_store import StoreRepair
from trace_store.store.store import Store


class Fixed(Clock):
    __slots__ = ("_now",)

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        return self._now


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(doctor, "kind_of", lambda path: FileSystem("ext4"))
    with new_store(tmp_path) as store:
        say(store, "one")
    return tmp_path


def examined(folder: Path, **surroundings: str) -> list[Diagnosis]:
    with reopen(folder) as store:
        return diagnose(store, Environment(**surroundings))  # type: ignore[arg-type]


def codes_of(folder: Path, **surroundings: str) -> set[str]:
    return {each.code for each in examined(folder, **surroundings)}


def test_nothing_to_do(place: Path) -> None:
    assert examined(place) == []
    with reopen(place) as store:
        told = upkeep(store).versions()
    assert {"python", "msgpack", "blake3", "zstd", "file_system", "platform"} <= told.keys()


def test_a_file_system_where_locks_lie(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = FileSystem("nfs4", locks=False, durable=False, note="locks here do not exclude")
    monkeypatch.setattr(doctor, "kind_of", lambda path: kind)
    found = {each.code: each for each in examined(place)}
    assert found.keys() == {"file-system-locks", "file-system-not-durable"}
    assert "one machine write at a time" in found["file-system-locks"].advice


def test_rights_of_files(place: Path) -> None:
    config = place / ".trace/config"
    config.chmod(0o646)
    (found,) = examined(place)
    assert (found.code, found.what) == ("writable-by-all", "config")
    config.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(config, 12345, -1)
        (found,) = examined(place)
        assert (found.code, found.what) == ("owned-by-others", "config")
    else:
        (place / ".trace/refs").chmod(0o500)
        assert "not-writable" in codes_of(place)
        (place / ".trace/refs").chmod(0o700)


def test_a_commit_of_the_future(place: Path) -> None:
    with Store.open(str(place / ".trace"), clock=Fixed(1_600_000_000_000)) as store:
        (found,) = diagnose(store, Environment())
    assert (found.code, found.what) == ("clock", "refs/heads/main")
    assert "in the future" in found.detail


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        (".gitattributes", "*.pack filter=lfs diff=lfs -text\n* ident\n* text=auto\n", ""),
        (".git/info/attributes", "* ident\n", "git-filter"),
        (".git/info/attributes", "*.pack filter=lfs\n", "git-filter"),
        (".git/info/attributes", "/.trace/** text=auto\n", "git-filter"),
        (".git/info/attributes", "**/pack/* working-tree-encoding=UTF-16\n", "git-filter"),
        (".git/info/attributes", "* eol=crlf\n*.md text\n", ""),
        (".git/info/attributes", "* ident filter=x\n.trace/** -ident -filter\n", ""),
        (".trace/objects/pack/.gitattributes", "*.pack filter=lfs\n", "git-filter"),
        (".gitignore", "# ours\n.trace/\n", "git-ignored"),
        (".gitignore", ".*\n", "git-ignored"),
        (".gitignore", "*\n!.trace\n", ""),
        (".gitignore", ".trace/*\n*.pack\nobjects/\n", ""),
        (".git/info/exclude", "/.trace\n", "git-ignored"),
        ("home/.gitconfig", "[user]\n\tname = x\n[core]\n\tautocrlf = true\n", "git-line-ends"),
        (".git/config", "[core]\n\tautocrlf = input\n", "git-line-ends"),
    ],
)
def test_what_git_is_told(place: Path, file: str, text: str, code: str) -> None:
    path = place / file
    path.parent.mkdir(parents=True, exist_ok=True)
    (place / ".git/info").mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if code == "git-line-ends":
        assert codes_of(place, home=str(place / "home")) == set(), ".gitattributes switches it off"
        (place / ".trace/.gitattributes").unlink()
        assert codes_of(place, home=str(place / "home")) == {code, "git-file"}
    else:
        assert codes_of(place) == ({code} if code else set())


def test_a_linked_work_tree_has_the_settings_of_the_main_one(place: Path) -> None:
    git, own = place / "main/git", place / "main/git/worktrees/linked"
    (git / "info").mkdir(parents=True)
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (place / ".git").write_text(f"gitdir: {own}\n")
    (git / "info/exclude").write_text("/.trace\n")
    (git / "info/attributes").write_text("* ident\n")
    (git / "config").write_text("[core]\n\tautocrlf = true\n")
    (place / ".trace/.gitattributes").unlink()
    found = {"git-ignored", "git-filter", "git-line-ends", "git-file"}
    assert codes_of(place) == found
    (own / "commondir").unlink()  # as in a submodule, whose settings are its own
    assert codes_of(place) == {"git-file"}
    git.rename(place / "moved")
    assert codes_of(place) == {"git-file"}


def test_attributes_that_those_of_an_earlier_version_did_not_override(place: Path) -> None:
    (place / ".git").mkdir()
    (place / ".gitattributes").write_text("* ident\n")
    (place / ".trace/.gitattributes").write_text("* -text -diff\n")
    assert codes_of(place) == {"git-file", "git-filter"}
    with reopen(place) as store:
        StoreRepair(store).run()
    assert codes_of(place) == {"lost-found"}


def test_what_was_left_and_set_aside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = place / ".trace"
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp/object-1-2").write_bytes(b"")
    os.utime(root / "tmp/object-1-2", (1, 1))
    (root / "lost-found").mkdir()
    (root / "lost-found/report.txt-1").write_bytes(b"")
    monkeypatch.setattr(doctor, "MUCH_UNSEALED_BYTES", 10)
    assert codes_of(place) == {"leftovers", "lost-found", "unsealed"}


def test_little_room_and_few_descriptors(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LITTLE_ROOM_BYTES", 1 << 62)
    monkeypatch.setattr(doctor, "FEW_DESCRIPTORS", 1 << 31)
    assert codes_of(place) >= {"little-room"}


def test_nothing_is_changed(place: Path) -> None:
    (place / ".trace/.gitattributes").write_bytes(b"* text\n")
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    assert codes_of(place) == {"git-file"}
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before
