"""Start-up is measured beside a bare interpreter, in an environment of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import installation, results
from benchmarks.__main__ import main
from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Sampler
from benchmarks.jobs import startup
from benchmarks.model import Unavailable
from benchmarks.runner import run
from benchmarks.samplers import Single
from tests.support.installed_here import InstalledHere


@pytest.mark.skipif(sys.platform == "win32", reason="the script is one of POSIX")
@pytest.mark.parametrize("job", ["start", "many"])
def test_every_command_runs(job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "installation", lambda work: InstalledHere(tmp_path))
    work = tmp_path / "work"
    asked = ["--rounds", "1", "--size", "30", "--work", str(work), "--job", job]
    assert main(asked) == 0
    found = results.read(work / "results.jsonl")
    assert not {key.contestant: line["note"] for key, line in found.items() if line["note"]}
    assert not list((work / "scratch").iterdir())


def test_each_sample_has_one_of_the_base_beside_it(tmp_path: Path) -> None:
    def fixed(name: str, peer: str, value: float) -> Contestant:
        def start(ground: Ground, peer: str) -> Sampler:
            return Single(1, value)

        return Contestant(name, peer, start)

    contestants = (fixed("one", "trace", 4.0), fixed("two", "trace", 8.0), fixed("base", "", 2.0))
    job = Job("job", "a job", "s", (1,), 3, contestants, base="base")
    ground = Ground(tmp_path, "repetitive", 1)
    one, two, base = run(job, ground, 3)
    assert (one.ratios, two.ratios) == ({}, {})
    assert {name: ratio["median"] for name, ratio in base.ratios.items()} == {
        "one": 0.5,
        "two": 0.25,
    }
    assert base.summary is not None
    assert base.summary["n"] == 6


def test_what_pip_fails_with_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise Unavailable("pip failed: no index")

    monkeypatch.setattr(installation, "_install", refuse)
    with pytest.raises(Unavailable, match="no index"):
        installation.installation(tmp_path)
    assert not list(tmp_path.iterdir())
