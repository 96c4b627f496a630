"""Automatic seals by plumbing commands, which keep the journal short."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import Run
from trace_store.store import unsealed


def test_sealing_and_packing_say_what_they_did_unless_they_are_to_be_quiet(
    ok: Run, repository: object
) -> None:
    ok("commit", "--no-seal", "--user", "x")
    assert ok("seal").text.startswith("sealed 1 change, ")
    for words in (["seal", "-q"], ["pack", "--quiet"]):
        ok("commit", "--no-seal", "--user", "y")
        outcome = ok(*words)
        assert (outcome.out, outcome.err) == (b"", "")
        assert json.loads(ok("status", "--json").out)["unsealed_transactions"] == 0


@pytest.mark.parametrize("words", [["update-ref", "refs/heads/x", "HEAD"], ["write-commit"]])
def test_plumbing_that_writes_seals_when_it_is_time(
    ok: Run, repository: object, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    ok("commit", "--no-seal", "--user", "x")
    spec = json.dumps({"ops": []}).encode()
    ok(*words, stdin=spec if words == ["write-commit"] else b"")
    assert json.loads(ok("status", "--json").out)["unsealed_transactions"] > 0
    monkeypatch.setattr(unsealed, "INTERVAL_MS", 0)
    ok(*words, stdin=spec if words == ["write-commit"] else b"")
    assert json.loads(ok("status", "--json").out)["unsealed_transactions"] == 0


def test_a_pack_of_small_frames_is_made_once(ok: Run, repository: object) -> None:
    ok("commit", "--user", "\n".join(f"line {number} of many" for number in range(3000)))
    assert ok("pack", "--frame-size", "8").text.startswith("packed ")
    assert ok("pack", "--frame-size", "8").err == "nothing to pack\n"
    assert ok("pack").err == "nothing to pack\n"
    assert ok("pack", "--frame-size", "256").text.startswith("packed ")
    assert ok("fsck").err == "no problems found\n"
