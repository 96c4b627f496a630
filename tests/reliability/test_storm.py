"""A short storm: writers that are killed, locks and journals that are deleted. `nox -s storm` is the long one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORM = "tests.reliability.support.storm"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def rage(folder: Path, *options: str) -> dict[str, int]:
    """Run a storm and return its result."""
    done = subprocess.run(
        [sys.executable, "-m", STORM, "--json", "--folder", str(folder), *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    assert (found["lost"], found["bad reads"], done.returncode) == (0, 0, 0), found
    assert found["kills"] > 20
    assert found["acknowledged"] > 50
    assert found["lock deletions"] > 0
    return found


def test_what_was_acknowledged_stays_where_it_was(tmp_path: Path) -> None:
    """Where no journal is deleted each commit stays on its branch, in order, and readers never see less."""
    found = rage(tmp_path, "--seconds", "6", "--keep-journals")
    assert (found["rescued"], found["diverged"], found["journal deletions"]) == (0, 0, 0)


def test_what_was_acknowledged_outlives_its_journal(tmp_path: Path) -> None:
    """While one process that holds it lives on, all of it is on its branch, or is kept beside it."""
    found = rage(tmp_path, "--seconds", "9")
    assert found["journal deletions"] > 0
