"""Pages of trajectories in a real browser; skipped without Chromium."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.exporters.support.pages import Page
from tests.exporters.support.sessions import ATTACK
from tests.exporters.test_html_browser import CHROMIUM, browse
from tests.trajectories.support.recorded import record_everything
from trace_store import Repo

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.mark.parametrize("form", ["page", "timeline-html"])
def test_nothing_runs_and_everything_can_be_read(repo: Repo, tmp_path: Path, form: str) -> None:
    id = record_everything(repo)
    attack = re.sub("[\ud800-\udfff]", "", ATTACK)
    repo.trajectories.reopen(id)
    repo.trajectories.decide(attack, attack, reasoning=attack, alternatives=[attack])
    repo.trajectories.record("finding", attack, trajectory=id)
    path = tmp_path / "page.html"
    path.write_bytes(repo.trajectories.exports.export(form, id).to_bytes())
    dom, console = browse(path, tmp_path / "profile")
    seen, written = Page(dom), Page(path.read_bytes())
    assert [(e.tag, e.attributes) for e in seen.elements] == [
        (e.tag, e.attributes) for e in written.elements
    ]
    assert seen.said().split() == written.said().split()
    assert not console, "the policy had something to refuse"
