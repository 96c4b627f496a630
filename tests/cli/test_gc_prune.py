"""`trace gc` and `trace prune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Trace


@pytest.fixture
def lone(repository: Trace, tmp_path: Path) -> str:
    """Return the id of a sealed, unreachable commit."""
    assert repository("commit", "--user", "kept").code == 0
    repository("commit", "--branch", "other", "--user", "abandoned")
    oid = repository("rev-parse", "other").text.strip()
    for words in (["update-ref", "-d", "refs/heads/other"], ["seal"], ["commit", "--user", "more"]):
        assert repository(*words).code == 0
    repository("seal")
    for path in (tmp_path / ".trace" / "logs").rglob("*.log"):
        path.unlink()
    return oid


def record(outcome: Outcome) -> dict[str, object]:
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.text)
    assert isinstance(found, dict)
    return found


def test_prune_says_what_goes_and_how_long_it_can_be_had(repository: Trace, lone: str) -> None:
    told = repository("prune", "--now", "--dry-run")
    assert told.lines[0].split() == ["dry", "run", "number", "bytes"]
    assert told.lines[1].startswith("objects to quarantine       2")
    assert told.lines[1].endswith("bytes")
    told = repository("prune", "--now")
    assert told.text.startswith("2 objects removed as unreachable, ")
    assert "`trace gc --grace 0`" in told.err
    assert repository("cat-file", "-t", lone).text == "commit\n"
    freed = repository("gc", "--grace", "0")
    assert "freed from quarantine" in freed.text
    assert repository("cat-file", "-t", lone).code == 4
    assert repository("fsck").code == 0


def test_gc_says_what_only_prune_takes(repository: Trace, lone: str) -> None:
    told = repository("gc", "--grace", "0")
    assert "2 objects in packs unreachable: `trace prune` deletes them" in told.err
    assert record(repository("gc", "--grace", "0", "--json"))["sealed"] == 2


def test_what_was_pruned_is_brought_back_by_a_branch(repository: Trace, lone: str) -> None:
    assert repository("prune", "--now", "-q").err == ""
    assert repository("update-ref", "refs/heads/rescued", lone).code == 0
    assert repository("gc", "--grace", "0", "-q").code == 0
    assert "abandoned" in repository("compile", "rescued", "--table").text
    assert repository("fsck").code == 0


def test_an_unreadable_root_is_refused_by_name(
    repository: Trace, lone: str, tmp_path: Path
) -> None:
    (tmp_path / ".trace" / "refs" / "heads" / "notes.txt").write_text("")
    for command in ("gc", "prune"):
        told = repository(command, "--grace", "0")
        assert (told.code, told.text) == (6, "")
        assert "refs/heads/notes.txt" in told.err
        assert "unknown-roots" in told.err or "`trace fsck`" in told.err
        assert len(told.err.splitlines()) <= 2


def test_two_ages_are_refused(repository: Trace) -> None:
    assert repository("prune", "--now", "--grace", "3").code == 2
