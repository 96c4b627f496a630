"""Lines of code after git operations lead to their decisions; `support.histories` counts more of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.trajectories.support.histories import (
    KINDS,
    NONE_RIGHT,
    RIGHT,
    TRAILERS,
    History,
    judge,
)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.mark.parametrize(
    "kind",
    [
        "amend after second decision",
        "squash merge",
        "squash in a rebase",
        "break",
        "edit",
        "split commit",
        "revert without a decision",
        "stash",
        "two agents",
        "copy and split",
        "after complete",
        "clone with trailers",
    ],
)
def test_each_line_leads_to_its_decision(tmp_path: Path, kind: str) -> None:
    history = History(tmp_path / "p", 1, trailer=kind in TRAILERS)
    counts = judge(KINDS[kind](history) or history, verbose=True)
    assert set(counts) <= {RIGHT, NONE_RIGHT}
