"""From the code to the decisions behind it, in a large repository."""

from __future__ import annotations

import shutil
import time

import pytest

from tests.growth.conftest import Growth, looked
from tests.growth.support.stores import Place
from tests.support.git import git
from trace_store.disk.files import SETTLED_MS

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def test_why_command(growth: Growth) -> None:
    def committed(place: Place) -> None:
        (place.folder / "code.py").write_text("one\n", encoding="utf-8")
        for words in (("init", "-q"), ("add", "code.py"), ("commit", "-qm", "begin")):
            git(place.folder, *words)
        time.sleep(2 * SETTLED_MS / 1000)  # after a recent change of git's index, all refs are read
        place.trace("trajectory", "start", "Sign in", "-q")
        looked(place)

    def run(place: Place) -> str:
        place.trace("trajectory", "link", "-q")
        return place.trace("why", "code.py")

    growth.check(run, before=committed, right="Sign in")


def test_brief_command(growth: Growth) -> None:
    def begun(place: Place) -> None:
        place.trace("trajectory", "start", "Sign in", "-q")
        place.trace("trajectory", "decision", "Which?|this one", "-q")
        place.trace("brief")
        looked(place)

    growth.check(lambda place: place.trace("brief"), before=begun, right="Which\\? → this one")
