"""Commands on branches run beside git, and each begins where the one before began."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import commands, results
from benchmarks.__main__ import main
from benchmarks.commands import Commands, Task
from benchmarks.ground import Ground
from benchmarks.model import Unavailable, Work
from benchmarks.peers.git import git
from benchmarks.peers.parted import FEW, FOLDER
from benchmarks.places import GitPlace, Saved, TracePlace
from tests.support.examples import LONG_FORM
from tests.support.installed_here import InstalledHere

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="the script is one of POSIX"),
]
SIZE = 30
MORE_JOBS = ("merge-then-status", "merge-conflict", "log-whole", "cherry-pick", "switch-memory")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a work folder, whose stores the tests share."""
    return tmp_path_factory.mktemp("branches")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstalledHere:
    found = InstalledHere(tmp_path)
    monkeypatch.setattr(commands, "installation", lambda work: found)
    return found


@pytest.fixture
def trace(work: Path, here: InstalledHere) -> TracePlace:
    return TracePlace(Ground(work, "repetitive", SIZE).copy("trace-parted").folder, here, "main")


@pytest.mark.parametrize(
    "job",
    [
        *("merge", "diff-edit", "rebase"),
        *(pytest.param(job, marks=LONG_FORM) for job in MORE_JOBS),
    ],
)
def test_both_do_the_same(job: str, work: Path, here: InstalledHere, tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    asked = ["--rounds", "1", "--size", str(SIZE), "--work", str(work), "--job", job]
    assert main([*asked, "--output", str(output)]) == 0
    found = results.read(output)
    assert not {key.contestant: line["note"] for key, line in found.items() if line["note"]}
    assert len({tuple(line["work"]) for line in found.values()}) == 1
    assert all(line["summary"]["median"] > 0 for line in found.values())
    assert not list((work / "scratch").iterdir())


@LONG_FORM
def test_growth_is_told_of_git_too(work: Path, here: InstalledHere, tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    asked = ["--rounds", "1", "--size", "300", "--work", str(work), "--job", "growth-switch"]
    assert main([*asked, "--output", str(output)]) == 0
    found = {key.contestant: line for key, line in results.read(output).items()}
    assert found["Trace, a tenth of the history"]["reached"] == SIZE
    for name in ("Trace", "git", "git, sparse"):
        assert name in found[f"{name}, a tenth of the history"]["ratios"]


def test_branches_part_where_it_says(work: Path, trace: TracePlace) -> None:
    folder = Ground(work, "repetitive", SIZE).store("git-parted").folder / FOLDER
    for asked in ("side..main", "main..side", "main..edited", "side..other"):
        [ours, theirs] = [
            len(git(folder, "rev-list", asked).split()),
            len(_run(trace, "rev-list", asked).split()),
        ]
        assert ours == theirs == (FEW if "main" in asked and "side" in asked else 1), asked


def test_trace_is_put_back(trace: TracePlace) -> None:
    root = trace.folder / ".trace"
    before = _content(root)
    _run(trace, "merge", "side")
    assert trace.work() == Work(SIZE + FEW, SIZE + FEW + 1)
    trace.restore()
    assert _content(root) == before
    assert trace.work() == Work(SIZE, SIZE)
    trace.remove_caches()
    assert not any((root / name).exists() for name in ("index", "cache"))
    assert trace.work() == Work(SIZE, SIZE)


@pytest.mark.parametrize("sparse", [False, True])
def test_git_is_put_back(work: Path, sparse: bool) -> None:
    place = GitPlace(
        Ground(work, "repetitive", SIZE).copy("git-parted").folder, "edited", sparse=sparse
    )
    assert len(list(place.folder.rglob("*.json"))) == (0 if sparse else SIZE)
    objects = place.folder / ".git" / "objects"
    before = sorted(objects.rglob("*"))
    with pytest.raises(Unavailable):
        git(place.folder, "merge", "--no-edit", "other")
    place.restore()
    assert git(place.folder, "status", "--porcelain") == b""
    assert sorted(objects.rglob("*")) == before
    git(place.folder, "switch", "-q", "side")
    place.restore()
    assert git(place.folder, "symbolic-ref", "HEAD").strip() == b"refs/heads/edited"
    assert place.work() == Work(SIZE, SIZE + 1)


def test_what_changed_came_and_went_is_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name in ("objects/pack/one", "logs/two", "three"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    before = _content(folder)
    saved = Saved(folder, tmp_path / "saved")
    (folder / "objects/pack/one").unlink()
    (folder / "objects/pack/new").write_text("new")
    (folder / "logs/two").write_text("changed")
    shutil.rmtree(folder / "logs")
    (folder / "three").write_text("THREE")
    saved.restore()
    assert _content(folder) == before


def test_a_command_that_fails_is_told(work: Path, trace: TracePlace) -> None:
    ground = Ground(work, "repetitive", SIZE)
    asked = Task("main", (("merge", "nowhere"),))
    with pytest.raises(Unavailable, match=r"merge ended with \d+: hint"):
        Commands(ground, trace, asked, memory=False, fresh=False, conflict_code=3)


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="this system does not tell")
def test_memory_is_that_of_the_command_alone(work: Path, trace: TracePlace) -> None:
    held = bytearray(200_000_000)
    ground = Ground(work, "repetitive", SIZE)
    asked = Task("main", (("--version",),))
    found = Commands(ground, trace, asked, memory=True, fresh=False, conflict_code=3).sample()
    assert 1_000_000 < found < 100_000_000 < len(held)


def _run(place: TracePlace, *words: str) -> bytes:
    return subprocess.run(
        [place.program, *words],
        cwd=place.folder,
        env=place.environment,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
