"""Take the pictures of the web page in docs/images, of the sample session and of a run: light, dark and narrow.

python -m tools.website.pictures            needs Playwright and Chromium
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.browser import TRACE, chromium, trace_page
from tools.website.pages import DOCS
from trace_store import Repo

IMAGES = DOCS / "images"
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 420, "height": 900}


def example(folder: Path) -> str:
    """Import the sample session into a new repository, and return its name."""
    sample = subprocess.run([*TRACE, "demo", "--sample"], check=True, capture_output=True).stdout
    (folder / "session.jsonl").write_bytes(sample)
    with Repo.init(folder) as repo:
        subprocess.run([*TRACE, "import", "-q", "session.jsonl"], cwd=folder, check=True)
        return next(each.name for each in repo.branches.list() if "/" in each.name)


def begin_run(repo: Repo, session: str) -> Any:
    """Record a run with an unfinished last step, and return this step."""
    first = str(repo.compile(session).messages[0].address)
    run = repo.runs.start(
        "Fix the parser", id="nightly", agent="coder", session=session, message=first
    )
    with run.step("thinking", "Reading the failing test", model="claude-opus-4-6") as step:
        step.source("pytest: assertions", "https://docs.pytest.org")
        step.source("tests/test_wordcount.py")
        step.complete(
            "The test expects three lines, and the parser returns two.",
            tokens={"input": 1840, "output": 96},
        )
    failed = run.step("tool_call", "pytest -q tests/test_wordcount.py")
    failed.fail("1 failed, 4 passed")
    failed.retry("pytest -q tests/test_wordcount.py::test_last_line").complete("a line\n" * 60)
    with run.step("web_search", "splitlines keepends python") as step:
        step.source("str.splitlines", "https://docs.python.org/3/library/stdtypes.html")
    return run.step("thinking", "Plan the change")


def take(context: Any, url: str, name: str, then: Callable[[], object] = lambda: None) -> None:
    """Write the picture of one page, after what happens once it is open."""
    page = context.new_page()
    page.goto(url)
    page.locator("#live.on").wait_for()
    then()
    page.wait_for_timeout(1000)  # the outline, and the heat
    page.screenshot(path=IMAGES / f"{name}.png")
    page.close()
    print(IMAGES / f"{name}.png")


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        folder = Path(home, "project")
        folder.mkdir()
        name = example(folder)
        with Repo.open(folder) as repo:
            step = begin_run(repo, name)
            asked = [each for each in repo.compile(name).messages if each.role == "assistant"]
            place = f"name={name}&commit={asked[-2].record.home_commit.hex()}"
            until = f"&until={asked[-2].address}"
            with trace_page(browser, folder, Path(home), viewport=WIDE) as (light, address):
                take(light, f"{address}/session?name={name}", "web-session")
                take(
                    *(light, f"{address}/run?id=nightly", "web-run"),
                    lambda: step.progress("I read splitlines again: it keeps the last piece. So "),
                )
            step.complete("One line.")
            step.run.complete()
            dark = {"viewport": WIDE, "color_scheme": "dark"}
            with trace_page(browser, folder, Path(home), **dark) as (context, address):
                take(context, f"{address}/context?{place}{until}", "web-context")
            with trace_page(browser, folder, Path(home), viewport=NARROW) as (narrow, address):
                take(narrow, f"{address}/session?name={name}", "web-narrow")


if __name__ == "__main__":
    main()
