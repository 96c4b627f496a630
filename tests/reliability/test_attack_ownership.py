"""Repositories of other users, and above the home folder: opened when the user says so, and only then."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_json_shapes import documented
from tests.support.command_line import Outcome, Trace
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.errors import (
    InvalidInputError,
    RepositoryNotFoundError,
    StateError,
    UntrustedRepositoryError,
)
from trace_store.store.discovery import find
from trace_store.store.store import Store
from trace_store.store.trust import Trust
from trace_store.testing.disks import RecordingDisk

OTHER = 65_534
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
has_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners of files here")
pytestmark = has_owners


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    Store.init(str(folder)).close()
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Environment:
    """A user who owns nothing here."""
    return surroundings(tmp_path, user_ids=(os.geteuid() + 1,))


def surroundings(
    folder: Path, *, home: str = "", user_ids: tuple[int, ...] | None = (os.geteuid(),)
) -> Environment:
    return Environment(
        home=home, config_dir=str(folder / "settings"), author="x", user_ids=user_ids
    )


Ways = Callable[[Path, Environment], object]
WAYS: dict[str, Ways] = {
    "looked for": lambda place, e: find(str(place), e),
    "looked for from below": lambda place, e: find(str(place / "deep" / "er"), e),
    "named": lambda place, e: find("/", e, explicit=str(place)),
    "its directory named": lambda place, e: find("/", e, explicit=str(place / ".trace")),
    "TRACE_DIR": lambda place, e: find("/", with_directory(e, str(place))),
    "through a link": lambda place, e: find("/", e, explicit=str(link_to(place))),
    "Repo.open": lambda place, e: Repo.open(str(place), environment=e),
    "Repo.open of its directory": lambda place, e: Repo.open(
        directory=str(place / ".trace"), environment=e
    ),
}


def with_directory(environment: Environment, path: str) -> Environment:
    return Environment(
        trace_dir=path, config_dir=environment.config_dir, user_ids=environment.user_ids
    )


def link_to(place: Path) -> Path:
    path = place.with_name("a link")
    if not path.is_symlink():
        path.symlink_to(place / ".trace")
    return path


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_repository_of_another_user(place: Path, victim: Environment, way: Ways) -> None:
    (place / "deep" / "er").mkdir(parents=True)
    before = sorted(place.rglob("*"))
    for _ in range(2):
        with pytest.raises(UntrustedRepositoryError) as caught:
            way(place, victim)
        assert caught.value.code == "untrusted-repository"
        assert sorted(place.rglob("*")) == before
        assert not os.path.exists(victim.settings_file("trusted"))
    trust_own(place, victim)
    way(place, victim)


def trust_own(place: Path, environment: Environment) -> None:
    """Trust it, as a user whose list is theirs: in these tests all files have one owner."""
    Trust(surroundings(place.parent)).add(place)
    if os.geteuid() != 0 or environment.user_ids is None:
        pytest.skip("only root can show the other half")
    os.chown(environment.settings_file("trusted"), environment.user_ids[0], -1)


@as_root
@pytest.mark.parametrize("given", ["directory", "config", "both"])
def test_whatever_part_of_it_is_another_users(place: Path, tmp_path: Path, given: str) -> None:
    me = surroundings(tmp_path)
    parts = {"directory": [".trace"], "config": [".trace/config"]}
    for name in parts.get(given, [".trace", ".trace/config"]):
        os.chown(place / name, OTHER, OTHER)
    with pytest.raises(UntrustedRepositoryError):
        find(str(place), me)
    Trust(me).add(place)
    assert find(str(place), me) == str(place / ".trace")


@as_root
def test_root_behind_sudo_is_also_the_user_who_called_it(place: Path, tmp_path: Path) -> None:
    for path in (place / ".trace", place / ".trace" / "config"):
        os.chown(path, OTHER, OTHER)
    settings = {"XDG_CONFIG_HOME": str(tmp_path)}
    with pytest.raises(UntrustedRepositoryError):
        find(str(place), Environment.read(settings))
    behind = Environment.read({**settings, "SUDO_UID": str(OTHER)})
    assert behind.user_ids == (0, OTHER)
    assert find(str(place), behind) == str(place / ".trace")
    for lie in ("", "x", "-1", "65534 ", "٣", "9" * 30, str(OTHER + 1)):
        with pytest.raises(UntrustedRepositoryError):
            find(str(place), Environment.read({**settings, "SUDO_UID": lie}))


def test_what_sudo_says_is_believed_of_root_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Environment.read({"SUDO_UID": "0"}).user_ids == (1000,)


@pytest.mark.parametrize("linked", [False, True], ids=["plain", "linked home"])
def test_above_the_home_folder(tmp_path: Path, linked: bool) -> None:
    top = tmp_path / "top"
    home = top / "home" / "ada"
    home.mkdir(parents=True)
    Store.init(str(top)).close()
    written = home
    if linked:
        written = tmp_path / "link"
        written.symlink_to(home)
    me = surroundings(tmp_path, home=str(written))
    for start in (home, top / "home", top):
        with pytest.raises(UntrustedRepositoryError, match="above your home folder"):
            find(str(start), me)
    assert find(str(home), me, explicit=str(top)) == str(top / ".trace"), "it is named"
    Trust(me).add(top)
    assert find(str(home), me) == str(top / ".trace")
    for inside in (home, home / "work"):
        Store.init(str(inside)).close()
        assert find(str(inside), me) == str(inside / ".trace"), "it is not above"
    beside = tmp_path / "elsewhere"
    Store.init(str(beside)).close()
    assert find(str(beside), me) == str(beside / ".trace")


class TestTheList:
    def test_it_is_the_users_alone(self, place: Path, tmp_path: Path) -> None:
        me = surroundings(tmp_path)
        Trust(me).add(place)
        path = Path(me.settings_file("trusted"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.listdir(path.parent) == ["trusted"]
        path.chmod(0o666)
        with pytest.raises(StateError, match="other users can write to your list"):
            Trust(me).list()

    @as_root
    def test_one_of_another_user_is_not_believed(self, place: Path, tmp_path: Path) -> None:
        me = surroundings(tmp_path)
        Trust(me).add(place)
        os.chown(me.settings_file("trusted"), OTHER, OTHER)
        with pytest.raises(StateError, match="other users can write to your list"):
            Trust(me).list()

    def test_it_says_each_once_and_forgets(self, place: Path, tmp_path: Path) -> None:
        me = surroundings(tmp_path)
        one = Trust(me).add(place)
        assert Trust(me).add(place / ".." / "project") == one
        two = Trust(me).add_below(place)
        assert Trust(me).list() == [one, two]
        assert Trust(me).remove(place / ".trace") == [one]
        assert Trust(me).list() == [two]
        assert Trust(me).remove(place / ".trace") == []

    def test_a_line_is_a_line(self, tmp_path: Path) -> None:
        me = surroundings(tmp_path)
        odd = tmp_path / "a\n0 " / "x"
        odd.mkdir(parents=True)
        with pytest.raises(InvalidInputError, match="line break"):
            Trust(me).add_below(odd)
        assert Trust(me).list() == []

    def test_remarks_and_rubbish_are_passed_over(self, place: Path, tmp_path: Path) -> None:
        me = surroundings(tmp_path)
        one = Trust(me).add(place)
        path = Path(me.settings_file("trusted"))
        path.write_bytes(b"# mine\n\nx /y\n1 relative\n\xff\xfe\n" + path.read_bytes() + b"1")
        assert Trust(me).list() == [one]

    @as_root
    def test_it_holds_for_one_place_and_one_owner(self, place: Path, tmp_path: Path) -> None:
        me = surroundings(tmp_path)
        inner = place / "inner"
        Store.init(str(inner)).close()
        for path in (place / ".trace", inner / ".trace"):
            os.chown(path, OTHER, OTHER)
        Trust(me).add(place)
        assert find(str(place), me)
        with pytest.raises(UntrustedRepositoryError):
            find(str(inner), me)
        Trust(me).add_below(place.parent)  # which is root's
        with pytest.raises(UntrustedRepositoryError):
            find(str(inner), me)
        os.chown(place, OTHER, OTHER)
        Trust(me).add_below(place)
        assert find(str(inner), me)
        os.chown(inner / ".trace", OTHER + 1, OTHER)
        with pytest.raises(UntrustedRepositoryError):
            find(str(inner), me)

    def test_without_a_folder_for_settings_nothing_is_trusted(self, place: Path) -> None:
        nobody = Environment(user_ids=(os.geteuid() + 1,))
        with pytest.raises(UntrustedRepositoryError):
            find(str(place), nobody)


def test_nothing_is_read_before_and_no_more_is_looked_at(place: Path, tmp_path: Path) -> None:
    disk = RecordingDisk()
    find(str(place), surroundings(tmp_path), disk=disk)
    assert (disk.opened, disk.read_bytes) == (0, 0)
    assert disk.touched <= 3
    disk.reset()
    find("/", surroundings(tmp_path), disk=disk, explicit=str(place / ".trace"))
    assert (disk.opened, disk.touched) == (0, 2)


def test_systems_without_owners(place: Path, tmp_path: Path) -> None:
    assert find(str(place), surroundings(tmp_path, user_ids=None))


def test_the_command(trace: Trace, tmp_path: Path) -> None:
    project = tmp_path / "project"
    me = surroundings(tmp_path)
    assert trace("init", "-q", str(project)).code == 0

    def run(*words: str) -> Outcome:
        return trace(*words, environment=me)

    assert run("trust", "--list").text == ""
    told = run("trust", str(project)).text
    assert told == f"{project}/.trace of user {os.geteuid()}\n"
    assert run("trust", "--list").text == told
    (keys,) = documented("trust")
    assert set(json.loads(run("trust", "--list", "--json").text)) == set(keys)
    assert run("trust", "--below", str(tmp_path)).code == 0
    assert [line.split(" of ")[0] for line in run("trust", "--list").lines] == [
        f"{project}/.trace",
        f"{tmp_path}/*",
    ]
    assert run("trust", "--remove", str(project)).text == told
    assert run("trust", "--remove", str(project)).code == 4
    assert run("trust", "--list", str(project)).code == 2
    assert run("trust", str(tmp_path / "nothing")).code == 10
    with pytest.raises(RepositoryNotFoundError):
        find(str(tmp_path), me, explicit=str(tmp_path / "nothing"))


def test_what_a_command_says(trace: Trace, tmp_path: Path) -> None:
    project = tmp_path / "it's; a project"
    assert trace("init", "-q", str(project)).code == 0
    other = surroundings(tmp_path, user_ids=(os.geteuid() + 1,))
    for words in (["status"], ["log"], ["rev-parse", "HEAD"], ["commit", "--user", "x"], ["fsck"]):
        outcome = trace("--dir", str(project), *words, environment=other)
        assert outcome.code == 6
        error, hint = outcome.err.splitlines()
        assert error.endswith("belongs to another user, and is not trusted")
        quoted = str(project / ".trace").replace("'", "'\"'\"'")
        assert f"`trace trust '{quoted}'`" in hint
