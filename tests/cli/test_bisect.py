"""`trace bisect`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_bad_input import refused
from tests.support.command_line import Run, Trace


def program(text: str) -> list[str]:
    """Return a command that runs a program with its input in the variable `said`."""
    return [sys.executable, "-c", f"import sys; said = sys.stdin.read(); {text}"]


FAILS_ON_FIVE = program("sys.exit('message 5' in said)")


@pytest.fixture
def talk(ok: Run) -> Run:
    for number in range(9):
        ok("commit", "--user", f"message {number}", "-q")
    return ok


def test_by_hand(repository: Trace, talk: Run) -> None:
    assert "8 commits left" in talk("bisect", "start", "HEAD", "HEAD~8").text
    wanted = talk("rev-parse", "--short", "HEAD~3").text.strip()
    while (lines := talk("bisect", "next").lines)[0] != "the first bad commit:":
        number = int(lines[1].rpartition(" ")[2])
        talk("bisect", "bad" if number >= 5 else "good")
    assert lines[1].startswith(wanted)
    assert talk("bisect", "log").lines[1].startswith("good ")
    refused(repository("bisect", "good"), 6, "the search is finished")
    refused(repository("bisect", "good", "HEAD~1"), 2, "is good but comes after")
    talk("bisect", "reset")
    refused(repository("bisect", "next"), 6, "no search is in progress")


def test_with_a_command(talk: Run) -> None:
    talk("bisect", "start")
    found = talk("bisect", "run", "--", *FAILS_ON_FIVE)
    assert found.lines[0] == "the first bad commit:"
    assert "user: message 5" in found.lines[1]
    assert "(1 of 1 failed)" in found.lines[1]
    assert "1 of 1 failed, bad" in found.err
    (record,) = map(json.loads, talk("bisect", "next", "--json").lines)
    assert record["found"] == [talk("rev-parse", "HEAD~3").text.strip()]
    assert {each["word"] for each in record["told"]} == {"good", "bad"}
    (first, *_) = map(json.loads, talk("bisect", "log", "--json").lines)
    assert first["word"] == "bad"


def test_a_command_needs_no_dashes_before_it(talk: Run) -> None:
    """Its own options are its own."""
    talk("bisect", "start")
    found = talk("bisect", "run", "--repeat", "2", "sh", "-c", "! grep -q 'message 5'", "--json")
    assert found.lines[0] == "the first bad commit:"
    assert "(2 of 2 failed)" in found.lines[1]


def test_among_messages_with_a_file(talk: Run, tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text(
        "import json, sys\n"
        "said = json.load(open(sys.argv[1]))['messages']\n"
        "sys.exit(any('5' in each['content'] for each in said))\n"
    )
    talk("commit", "--user", "later", "--assistant", "much later", "-q")
    talk("bisect", "start", "--messages")
    command = [sys.executable, str(script), "{}"]
    found = talk("bisect", "run", "-f", "openai", "--repeat", "2", "--", *command)
    assert found.lines[0] == "the first bad message:"
    assert found.lines[1].startswith("6 messages, the last of them ")
    assert found.lines[1].endswith("user: message 5  (2 of 2 failed)")


def test_what_cannot_be_told(repository: Trace, talk: Run) -> None:
    talk("bisect", "start", "HEAD", "HEAD~8")
    skips = program("n = said.count('message'); sys.exit(125 if n in (6, 7) else n > 6)")
    found = repository("bisect", "run", "--", *skips)
    assert (found.code, "any of 3 may be the first bad one" in found.err) == (3, True)
    assert "among these" in found.lines[0]
    assert len(found.lines) == 4
    talk("bisect", "start", "HEAD", "HEAD~8")
    killed = program("import os; os.kill(os.getpid(), 9)")
    refused(repository("bisect", "run", "--", *killed), 6, "was killed")
    refused(repository("bisect", "run", "--", "no-such-program"), 6, "cannot run")
    outcome = repository("bisect", "run", "--", *program("sys.exit(0)"))
    assert outcome.code == 6
    assert "was marked bad, but the test says good" in outcome.err


def test_a_command_that_is_not_deterministic(repository: Trace, talk: Run, tmp_path: Path) -> None:
    """It fails once of three times up to message 5, and twice from there on."""
    count = tmp_path / "count"
    count.write_text("0")
    text = (
        f"from pathlib import Path; p = Path({str(count)!r}); n = int(p.read_text()); "
        "p.write_text(str(n + 1)); sys.exit(n % 3 < (2 if 'message 5' in said else 1))"
    )
    talk("bisect", "start", "HEAD", "HEAD~8")
    outcome = repository("bisect", "run", "--repeat", "3", "--", *program(text))
    assert outcome.code == 3
    assert "inconclusive: 2 of 3 runs failed" in outcome.err
    assert "--threshold K" in outcome.err
    talk("bisect", "start", "HEAD", "HEAD~8")
    decided = talk("bisect", "run", "--repeat", "3", "--threshold", "2", "--", *program(text))
    assert "user: message 5" in decided.lines[1]
    assert "(2 of 3 failed)" in decided.lines[1]


def test_mistakes(repository: Trace, talk: Run) -> None:
    refused(repository("bisect", "start", "HEAD~3", "HEAD"), 2, "is good but comes after")
    refused(repository("bisect", "start", "HEAD", "HEAD"), 2, "both good and bad")
    refused(repository("bisect", "start", "nowhere"), 4, "nowhere")
    refused(repository("bisect", "start", "--messages", "HEAD", "HEAD~1"), 2, "one commit")
    talk("bisect", "start", "--messages")
    refused(repository("bisect", "bad", "99"), 2, "not a message number")
    refused(repository("bisect", "run", "-f", "nothing", "--", "true"), 2, "unknown format")
    refused(repository("bisect", "run", "--threshold", "2", "--", "true"), 2, "--repeat")
