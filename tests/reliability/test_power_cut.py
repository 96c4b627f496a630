"""Real power cuts on real file systems, a few of them; `nox -s powercut` makes more.

They mount images, which no test run should do unasked: TRACE_TEST_POWER_CUT=1 asks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.support.power_machine import KINDS, missing

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"\| (\S+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|")

pytestmark = pytest.mark.skipif(
    os.environ.get("TRACE_TEST_POWER_CUT") != "1", reason="TRACE_TEST_POWER_CUT=1 mounts images"
)


def cut(folder: Path, kind: str, *options: str) -> dict[str, int]:
    """Cut the power some times, and return the row of the table."""
    if reason := missing(kind):
        pytest.skip(reason)
    words = ["-m", "tests.reliability.support.power", kind, "--folder", str(folder), *options]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])},
        capture_output=True,
        text=True,
        timeout=200,
    )
    row = ROW.search(done.stdout)
    assert row, done.stdout + done.stderr
    names = ("cuts", "acknowledged", "lost", "violations")
    found = {n: int(v.replace(",", "")) for n, v in zip(names, row.groups()[1:], strict=True)}
    assert done.returncode == int(found["lost"] + found["violations"] > 0), done.stdout
    assert not list(folder.iterdir()), "an image or a mount is left"
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_promised_is_there(kind: str, tmp_path: Path) -> None:
    found = cut(tmp_path, kind, "--cuts", "3")
    assert (found["cuts"], found["lost"], found["violations"]) == (3, 0, 0)
    assert found["acknowledged"] > 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_does_not_sync_is_found_out(kind: str, tmp_path: Path) -> None:
    found = cut(tmp_path, kind, "--cuts", "3", "--without", "files")
    assert found["lost"] > 0
