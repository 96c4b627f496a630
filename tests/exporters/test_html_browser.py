"""HTML pages in a real browser: hostile sessions run no code, text is readable.

It needs Chromium; without one these tests are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.exporters.support.pages import Page
from tests.exporters.support.sessions import ATTACKS, hostile_session, rich_session
from trace_store import Repo
from trace_store.exporters.contract import ExportSession
from trace_store.exporters.html import write
from trace_store.exporters.html.page import anchor
from trace_store.exporters.session import read_session

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-extensions", "--virtual-time-budget=3000"),
    # Host names do not resolve, so that a test never leaves the machine.
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--log-level=0"),
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


def browse(path: Path, profile: Path, *flags: str, fragment: str = "") -> tuple[bytes, str]:
    """Return the page's DOM after a while, and the browser's log."""
    run = subprocess.run(
        [
            *(str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, "--dump-dom"),
            path.as_uri() + (f"#{fragment}" if fragment else ""),
        ],
        capture_output=True,
        check=False,
        timeout=120,
    )
    log = run.stderr.decode("utf-8", "replace")
    assert run.returncode == 0, log
    return run.stdout, "\n".join(line for line in log.splitlines() if "CONSOLE" in line)


def page_of(session: ExportSession, folder: Path) -> Path:
    path = folder / "page.html"
    path.write_bytes(write(session).to_bytes())
    return path


def test_nothing_of_a_hostile_session_runs(tmp_path: Path) -> None:
    path = page_of(hostile_session(), tmp_path)
    dom, console = browse(path, tmp_path / "profile")
    seen, written = Page(dom), Page(path.read_bytes())
    # The browser built exactly the elements that were written: nothing ran, and nothing broke out.
    assert [(e.tag, e.attributes) for e in seen.elements] == [
        (e.tag, e.attributes) for e in written.elements
    ]
    assert seen.said_in("title") == written.said_in("title")
    assert seen.said_in("title")[0].startswith("</script>")
    said = "".join(seen.said().split())
    for attack in ATTACKS[:11]:
        assert "".join(attack.split()) in said, attack
    assert not console, "the policy had something to refuse"


def test_the_style_sheet_passes_the_policy(tmp_path: Path) -> None:
    path = page_of(rich_session(hidden=True), tmp_path)
    dom, console = browse(path, tmp_path / "profile")
    assert not console
    assert Page(dom).said().split() == Page(path.read_bytes()).said().split()


def test_the_policy_refuses_what_the_page_would_never_write(tmp_path: Path) -> None:
    """The second line of defence: a script, a style and an image that are put in by force do nothing."""
    path = page_of(rich_session(), tmp_path)
    forced = (
        b"<script>document.title='pwned'</script>"
        b"<img src='https://attacker.example/x.png' onerror=\"document.title='pwned'\">"
        b"<style>main{display:none}</style><body onload=\"document.title='pwned'\">"
    )
    path.write_bytes(path.read_bytes().replace(b"<main>", forced + b"<main>", 1))
    dom, console = browse(path, tmp_path / "profile")
    (title,) = re.findall(rb"<title>(.*?)</title>", dom)
    assert title == b"Which tags are there? See the picture."
    refused = re.findall(r"directive:? [\"']([a-z-]+)", console)
    assert {"default-src", "img-src", "style-src"} <= set(refused), console


@pytest.mark.parametrize("number", [3, 1_500])
def test_a_link_to_a_message_lands_on_it(tmp_path: Path, number: int) -> None:
    """A page of 2,000 messages, of which the browser lays out only the visible ones."""
    with Repo.memory() as repo:
        with repo.batch("long") as batch:
            for at in range(2_000):
                batch.append("assistant" if at % 2 else "user", f"{at}\n" + "word " * (at % 97 * 9))
        session = read_session(repo.store)
        path = page_of(session, tmp_path)
    address = anchor(session.turns[number])
    # The copy may run one script, which tells where the message came to be.
    page = re.sub(rb"<meta http-equiv[^>]*>", b"", path.read_bytes())
    told = (
        b"document.title=Math.round(document.querySelector(':target').getBoundingClientRect().top)"
    )
    script = b"<script>setTimeout(()=>{%b},1500)</script></body>" % told
    path.write_bytes(page.replace(b"</body>", script))
    dom, _ = browse(path, tmp_path / "profile", "--window-size=1000,700", fragment=address)
    (top,) = re.findall(rb"<title>(-?\d+)</title>", dom)
    assert 0 <= int(top) <= 40
