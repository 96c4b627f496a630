"""`trace diff`."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_bad_input import refused
from tests.support.command_line import Run, Trace


@pytest.fixture
def two(ok: Run) -> Run:
    """Two branches with a beginning in common."""
    ok("commit", "--user", "Count the words.", "-q")
    ok("commit", "--assistant", "There are ten words in it.", "-q")
    ok("update-ref", "refs/heads/other", "HEAD")
    ok("commit", "--user", "And the lines?", "-q")
    ok("symbolic-ref", "HEAD", "refs/heads/other")
    ok("edit", "HEAD.0", "There are twelve words in it.", "-q")
    return ok


def test_messages_and_words(two: Run) -> None:
    text = two("diff", "main", "other").text
    assert "There are [-ten-]{+twelve+} words in it." in text
    assert "- And the lines?" in text
    assert "different from message 1 on" in text
    assert two("diff", "main..other").text == text
    assert two("diff", "main", "main").text == ""


def test_ways_to_show_it(two: Run) -> None:
    assert [line.split("\t")[0] for line in two("diff", "--name-only", "main", "other").lines] == [
        "M",
        "D",
    ]
    assert "2 messages differ (1 removed, 1 edited)" in two("diff", "--stat", "main", "other").text
    side = two("diff", "--side", "main", "other").text
    assert "There are ten words in it.  " in side
    assert "| There are twelve words in it." in side
    record = json.loads(two("diff", "--json", "main", "other").out)
    assert [change["changes"] for change in record["changes"]] == [["edited"], ["removed"]]
    assert ["-", "ten"] in record["changes"][0]["words"]


def test_what_is_compared_when_less_is_said(two: Run) -> None:
    both = two("diff", "--name-only", "main", "other").text
    assert two("diff", "--name-only", "main").text == both
    assert two("diff", "--name-only", "main..").text == both
    assert two("diff", "--name-only").text.startswith("M\t")
    (only,) = two("diff", "--name-only", "other...main").lines
    assert only.startswith("A\t")


@pytest.mark.parametrize("form", ["text", "openai", "anthropic"])
def test_requests(two: Run, form: str) -> None:
    lines = two("diff", "--compiled", "-f", form, "main", "other").lines
    assert any(line.startswith("-") and "ten words" in line for line in lines)
    assert any(line.startswith("+") and "twelve words" in line for line in lines)
    assert lines[0].startswith("@@ -")
    assert lines[-1].startswith(f"{form}: ")
    assert two("diff", "--compiled", "-f", form, "main", "main").text == ""
    record = json.loads(two("diff", "--compiled", "-f", form, "main", "other", "--json").out)
    assert 0 < record["same_bytes"] < record["size_before"]


def test_a_terminal_obeys_nothing_of_it(ok: Run) -> None:
    ok("commit", "--user", "plain", "-q")
    ok("edit", "HEAD.0", "pl\x1b[2Jain\u202e", "-q")
    ok("commit", "--user", "\n".join(f"line {n}" for n in range(40)), "-q")
    shown = ok("diff", "HEAD~2", terminal=True).out
    assert b"\x1b[2J" not in shown
    assert "\u202e" not in shown.decode()
    assert b"line 11" in shown
    assert b"line 12" not in shown
    assert b"28 more lines" in shown
    assert b"line 39" in ok("diff", "HEAD~2").out


def test_mistakes(repository: Trace, two: Run) -> None:
    refused(repository("diff", "nowhere"), 4, "nowhere")
    refused(repository("diff", "a", "b", "c"), 2, "give two revisions")
    refused(repository("diff", "--stat", "--side"), 2, "give only one")
    refused(repository("diff", "--format", "openai"), 2, "--compiled")
    refused(repository("diff", "--compiled", "--format", "nothing"), 2, "unknown format")
