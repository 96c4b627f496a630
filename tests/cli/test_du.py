"""`trace du`, for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_cli.porcelain.demo import SAMPLE


def test_du_lists_sessions_branches_and_kinds(repository: Trace) -> None:
    assert repository("import", str(SAMPLE)).code == 0
    out = repository("du").text
    assert out.startswith("1 kept file: ")
    assert "times smaller than the files" in out
    assert "claude-code/" in out.splitlines()[-1]
    assert "sessions/claude-code/" in repository("du", "--by", "branch").text.splitlines()[-1]
    kinds = repository("du", "--by", "kind").text.split()
    assert {"blob", "commit", "list"} <= set(kinds)
    record = json.loads(repository("du", "--json").text)
    assert record["file_bytes"] == Path(SAMPLE).stat().st_size
    assert record["total"]["objects"] == sum(k["objects"] for k in record["kinds"].values())


def test_du_tells_larger_from_smaller(repository: Trace) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    assert repository("commit", "--no-seal", "--user", "x" * 40_000).code == 0
    assert "times smaller" not in repository("du").text
    assert " times the files" in repository("du").text
    assert repository("seal").code == 0
    assert "times smaller than the files" in repository("du").text


@pytest.mark.parametrize("words", [["--by", "colour"], ["extra"]])
def test_du_refuses_what_it_does_not_know(repository: Trace, words: list[str]) -> None:
    assert repository("du", *words).code == 2
