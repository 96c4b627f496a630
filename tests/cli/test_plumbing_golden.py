"""The output of plumbing, byte for byte, compared with golden files.

A golden file is a session in one folder: `$ command` lines, `< text` lines for the command's standard input, then what
it printed, and `? code` when the exit code is not 0; only then is there something on standard error. In output a
backslash is written `\\\\`, a tab `\\t`, any other byte that is no text `\\x00`, an empty line `\\n`, and an end
without a newline `\\c`. With TRACE_WRITE_GOLDEN=1 in the environment the files are written anew; look at the
difference before you commit it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Trace

FILES = sorted((Path(__file__).parent / "golden").glob("*.txt"))
ESCAPES = {
    **{code: f"\\x{code:02x}" for code in [*range(32), 127] if code != 10},
    **{0xDC00 + byte: f"\\x{byte:02x}" for byte in range(128, 256)},
    ord("\\"): "\\\\",
    ord("\t"): "\\t",
}


def shown(outcome: Outcome) -> list[str]:
    text = outcome.out.decode("utf-8", "surrogateescape").translate(ESCAPES)
    text = text if text.endswith("\n") or not text else text + "\\c\n"
    lines = [line or "\\n" for line in text.split("\n")[:-1]]
    assert outcome.err.startswith("trace: error: ") if outcome.code else not outcome.err
    return [*lines, f"? {outcome.code}"] if outcome.code else lines


def session(trace: Trace, text: str) -> str:
    """Run the commands of a session and return it with their current output."""
    written: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#") or not line:
            written.append(line)
        if not line.startswith("$ trace "):
            continue
        given: list[str] = []
        for following in lines[number + 1 :]:
            if not following.startswith("<"):
                break
            given.append(following)
        stdin = "".join(each[2:] + "\n" for each in given)
        words = shlex.split(line.removeprefix("$ trace "))
        written += [line, *given, *shown(trace(*words, stdin=stdin.encode()))]
    return "\n".join(written) + "\n"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_session(path: Path, repository: Trace) -> None:
    expected = path.read_text(encoding="utf-8")
    found = session(repository, expected)
    if os.environ.get("TRACE_WRITE_GOLDEN") == "1":
        path.write_text(found, encoding="utf-8", newline="\n")
    else:
        assert found == expected


def test_every_plumbing_command_has_a_session() -> None:
    from trace_cli.commands import COMMANDS, PLUMBING

    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    for command in COMMANDS:
        if command.category == PLUMBING:
            assert f"$ trace {command.name} " in text + " ", command.name
