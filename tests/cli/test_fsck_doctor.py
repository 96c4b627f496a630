"""`trace fsck --repair` and `trace doctor`: output and exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from tests.support.files import flip
from trace_store.disk.file_systems import FileSystem
from trace_store.maintenance import doctor


@pytest.fixture
def place(trace: Trace, tmp_path: Path) -> Path:
    """Make a repository with one sealed commit, and a copy of it in `copy`."""
    assert trace("init").code == 0
    assert trace("commit", "--user", "Plan the release. " * 20).code == 0
    shutil.copytree(tmp_path / ".trace", tmp_path / "copy/.trace")
    return tmp_path / ".trace"


def lose(place: Path) -> None:
    """Damage the only pack, and delete the journal that still has its objects."""
    (pack,) = (place / "objects/pack").glob("*.pack")
    flip(pack, 50)
    shutil.rmtree(place / "journal")


def test_repair_of_a_sound_repository(trace: Trace, place: Path) -> None:
    outcome = trace("fsck", "--repair")
    assert (outcome.code, outcome.out, outcome.err) == (0, b"", "no problems found\n")
    assert not (place / "lost-found").exists()


def test_repair_from_another_copy(trace: Trace, place: Path) -> None:
    lose(place)
    assert trace("fsck").code == 12
    dry = trace("fsck", "--repair", "--dry-run", "--from", "copy")
    assert dry.code == 12, "it is as damaged as before"
    assert "nothing was written" in dry.err
    outcome = trace("fsck", "--repair", "--from", "copy")
    assert outcome.code == 0
    assert outcome.lines[0].startswith("pack objects/pack/")
    assert "set aside in .trace/lost-found; the report is lost-found/report-" in outcome.err
    assert trace("fsck").code == 0
    assert trace("compile").code == 0


def test_what_is_lost_is_said(trace: Trace, place: Path) -> None:
    lose(place)
    outcome = trace("fsck", "--repair")
    assert outcome.code == 12
    lost = [line for line in outcome.lines if line.startswith("lost ")]
    assert lost
    assert all("refs/heads/main" in line for line in lost)
    outcome = trace("fsck", "--repair", "--json")
    assert outcome.code == 12, "errors remain"
    again = json.loads(outcome.out)
    assert again["mended"] == []
    assert "object-missing" in {each["code"] for each in again["remaining"]}


def test_with_json_the_exit_code_is_the_same(trace: Trace, place: Path) -> None:
    assert trace("fsck", "--json").code == 0
    assert trace("fsck", "--repair", "--json").code == 0
    lose(place)
    found = trace("fsck", "--json")
    assert found.code == 12
    assert "error" in {json.loads(line)["severity"] for line in found.lines}
    dry = trace("fsck", "--repair", "--dry-run", "--json", "--from", "copy")
    assert (dry.code, bool(json.loads(dry.out)["remaining"])) == (12, True)
    repaired = trace("fsck", "--repair", "--json", "--from", "copy")
    assert (repaired.code, json.loads(repaired.out)["remaining"]) == (0, [])


@pytest.mark.parametrize("words", [("--from", "copy"), ("--dry-run",), ("-n", "--json")])
def test_options_that_go_with_repair(trace: Trace, place: Path, words: tuple[str, ...]) -> None:
    outcome = trace("fsck", *words)
    assert (outcome.code, outcome.out) == (2, b"")
    assert "--from and --dry-run require --repair" in outcome.err


def test_another_copy_has_to_be_there(trace: Trace, place: Path) -> None:
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    outcome = trace("fsck", "--repair", "--from", "nowhere")
    assert outcome.code in (4, 10)
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before


def test_doctor(trace: Trace, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "kind_of", lambda path: FileSystem("ext4"))
    outcome = trace("doctor")
    assert (outcome.code, outcome.out) == (0, b"")
    assert "nothing to do" in outcome.err
    (place / ".gitignore").unlink()
    outcome = trace("doctor")
    assert outcome.code == 7
    assert outcome.lines == [
        "git-file .gitignore: it is missing",
        "    `trace fsck --repair` restores it",
    ]
    record = json.loads(trace("doctor", "--json").out)
    assert [each["code"] for each in record["findings"]] == ["git-file"]
    assert record["facts"]["trace"]
