"""Checks, repairs, purges and bundles from Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trace_store import Environment, ErrorCode, ObjectId, Repo
from trace_store.errors import (
    FormatError,
    InvalidInputError,
    ObjectNotFoundError,
    RepositoryNotFoundError,
)
from trace_store.objects.codec import encode_blob

SECRET = "sk-ant-api03-" + "Ab3dEf9hIj" * 9 + "AA"
ADA = Environment(author="Ada", discovery=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a message and a setting, on a branch that is not checked out."""
    with Repo.init(tmp_path / "here", environment=ADA) as repo:
        repo.line("idea").append("user", "Plan the release.")
        repo.store.config.set("budget", "200k")
    return tmp_path / "here"


def test_a_repository_with_a_damaged_configuration_is_opened_and_repaired(folder: Path) -> None:
    config = folder / ".trace" / "config"
    damage = config.read_bytes().replace(b"default_branch", b"\xff")
    config.write_bytes(damage)
    with pytest.raises(FormatError):
        Repo.open(folder, environment=ADA)
    with Repo.open(folder, environment=ADA, damaged=True) as repo:
        assert [each.what for each in repo.maintenance.repair(dry_run=True).mended] == ["config"]
        assert config.read_bytes() == damage
        assert [each.what for each in repo.maintenance.repair().mended] == ["config"]
        assert repo.maintenance.repair().mended == ()
    with Repo.open(folder, environment=ADA) as repo:
        assert repo.store.config.budget == 200_000
        assert repo.maintenance.fsck() == []
        assert len(repo.line("idea").compile()) == 1


def test_a_repair_takes_what_is_lost_from_another_copy(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    config = folder / ".trace" / "config"
    before = config.read_bytes()
    config.write_bytes(b"[")
    for pack in (folder / ".trace" / "objects" / "pack").glob("*.pack"):
        pack.write_bytes(b"\0" * 40)
    with Repo.open(folder, environment=ADA, damaged=True) as repo:
        with pytest.raises(RepositoryNotFoundError):
            repo.maintenance.repair(tmp_path / "nowhere")
        assert config.read_bytes() == b"["
        assert repo.maintenance.repair(tmp_path / "copy").lost == ()
    assert config.read_bytes() == before
    with Repo.open(folder, environment=ADA) as repo:
        assert len(repo.line("idea").compile()) == 1


def test_a_plan_says_what_a_purge_would_do(folder: Path) -> None:
    (folder / ".git").mkdir()
    with Repo.open(folder, environment=ADA) as repo:
        said = repo.line("idea").append("user", "yes")
        [message] = repo.get(said).operations[0].fields["messages"]
        plan = repo.maintenance.plan_purge(ObjectId(message["parts"][0]["blob"]))
        with pytest.raises(InvalidInputError) as caught:
            plan.check_common()
        assert caught.value.code == ErrorCode.COMMON_CONTENT
        plan = repo.maintenance.plan_purge(texts=["the release"])
        plan.check_common()
        report = repo.maintenance.purge(plan, why="a slip", verify=True)
        assert report.git_folder == ".trace"
        assert report.absence is not None
        assert report.absence.is_proven
        assert (report.absence.purged, report.absence.purged_texts) == (1, 1)
        assert repo.maintenance.plan_purge().reappeared == ()


def test_packing_tells_how_many_objects_are_done(folder: Path) -> None:
    with Repo.open(folder, environment=ADA) as repo:
        for number in range(3):
            repo.store.objects.write(encode_blob(b"loose %d" % number))
        told: list[tuple[int, int]] = []
        report = repo.maintenance.pack(progress=lambda *done: told.append(done))
    assert report.loose == 3
    assert told == [(count, report.objects) for count in range(1, report.objects + 1)]


def test_a_bundle_is_searched_for_secrets_and_checked_alone(folder: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "week.bundle")
    with Repo.open(folder, environment=ADA, secrets="off") as repo:
        before = repo.line("idea").resolve("HEAD")
        repo.line("idea").append("user", f"The key is {SECRET}.")
        report = repo.bundles.create(file, "idea", since=[before], scan=True)
        assert report.secrets == 1
        assert repo.bundles.create(file, "idea", overwrite=True).secrets is None
        repo.bundles.create(file, "idea", since=[before], overwrite=True)
        assert repo.bundles.verify(file).prerequisites == (before,)
    with Repo.memory() as anywhere:
        assert [each.name for each in anywhere.bundles.list(file).refs] == ["refs/heads/idea"]
        assert anywhere.bundles.verify(file, alone=True).prerequisites == (before,)
        with pytest.raises(ObjectNotFoundError):
            anywhere.bundles.verify(file)
