"""Commands and programs in a process of their own, with the memory they took at most."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]

# What a process has taken at most, in bytes; a child of a large process begins with its size in getrusage.
_PEAK = """
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
"""
_COMMAND = """
from trace_cli.main import main
code = main(sys.argv[1:])
"""


class Outcome(NamedTuple):
    """What a process left behind; `peak` is the memory it took at most, in bytes."""

    code: int
    out: bytes
    err: str
    peak: int


def run(program: str, folder: Path, *words: str, stdin: Path | None = None) -> Outcome:
    """Run a program, which may set `code`, in a folder."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc to tell the memory of a process")
    text = f"import sys\ncode = 0\n{_PEAK}\n{program}\nsys.stdout.flush()\n"
    text += "print(f'\\npeak {peak()}', file=sys.stderr)\nsys.exit(code)\n"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "cli"))),
        "TRACE_AUTHOR": "ada",
    }
    with open(os.devnull if stdin is None else stdin, "rb") as given:
        done = subprocess.run(
            [sys.executable, "-c", text, *words],
            cwd=folder,
            stdin=given,
            capture_output=True,
            env=environment,
            check=False,
        )
    err, _, peak = done.stderr.decode().rpartition("\npeak ")
    assert peak.strip().isdecimal(), done.stderr.decode()
    return Outcome(done.returncode, done.stdout, err, int(peak))


def trace(folder: Path, *words: str, stdin: Path | None = None, code: int = 0) -> Outcome:
    """Run a command of Trace that has to end with this exit code."""
    outcome = run(_COMMAND, folder, *words, stdin=stdin)
    assert outcome.code == code, outcome.err
    return outcome
