"""What a session costs on the page, by its length: `python -m benchmarks.web_pages --messages 1000 100000`.

For each length: the time to build the repository and to start `trace web`; then, as medians of `--rounds` new tabs of
Chromium, requests, KiB and elements of the first screen, first paint, and the time until its messages, its outline, a
message in the middle that a link leads to, and a message that is appended meanwhile are on the screen. Needs Playwright
and Chromium.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.browser import Screen, chromium, trace_page
from trace_store import Message, Repo

ROLES = ("user", "assistant")
WORDS = "some words of the session. " * 8
NODES = "document.querySelectorAll('*').length"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
JUMP = """(at) => {
  const link = document.querySelector("#outline ol a");
  link.href = `/session?name=main&at=${at}`;
  link.click();
}"""


def build(folder: Path, count: int) -> str:
    """Write a session of so many messages, a commit for each turn; return the address of the one in the middle."""
    with Repo.init(folder, durability="fast") as repo:
        for first in range(0, count, len(ROLES)):
            repo.commit(
                [Message(role, f"Message {first + n:,}: {WORDS}") for n, role in enumerate(ROLES)]
            )
        repo.maintenance.seal()
        return str(repo.compile().messages[count // 2].address)


def one_tab(context: Any, address: str, folder: Path, middle: str) -> dict[str, float]:
    """Return what a new tab costs."""
    screen = Screen(context.new_page())
    page = screen.page
    shown, requests, size = screen.until(
        lambda: page.goto(f"{address}/session?name=main"), "#messages article"
    )
    page.locator("#outline ol a").first.wait_for(timeout=60_000)
    found = {
        "requests": requests,
        "KiB": size,
        "elements": page.evaluate(NODES),
        "first paint, ms": page.evaluate(PAINT),
        "messages, ms": shown,
    }
    jumped, requests, size = screen.until(
        lambda: page.evaluate(JUMP, middle), f"[id='{middle}']:focus"
    )
    found |= {"jump, ms": jumped, "jump, requests": requests, "jump, KiB": size}
    found["jump, elements"] = page.evaluate(NODES)
    page.goto(f"{address}/session?name=main")
    page.locator("#live.on").wait_for()
    text = f"Appended at {time.time_ns()}"
    with Repo.open(folder) as repo:
        appended, _, _ = screen.until(
            lambda: repo.append("user", text), f"#messages article:has-text('{text}')"
        )
    page.close()
    return {**found, "append, ms": appended}


def measure(browser: Any, count: int, rounds: int) -> dict[str, float]:
    """Return the figures of a session of so many messages."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "project")
        folder.mkdir()
        began = time.perf_counter()
        middle = build(folder, count)
        built = time.perf_counter() - began
        began = time.perf_counter()
        with trace_page(browser, folder, Path(home)) as (context, address):
            opened = time.perf_counter() - began
            tabs = [one_tab(context, address, folder, middle) for _ in range(rounds)]
    medians = {name: statistics.median(tab[name] for tab in tabs) for name in tabs[0]}
    return {"build, s": built, "server and list, s": opened, **medians}


def report(counts: Iterable[int], rounds: int) -> None:
    """Print a row for each figure, with a column for each length."""
    with chromium() as browser:
        found = {f"{count:,}": measure(browser, count, rounds) for count in counts}
        print(f"Chromium {browser.version}, medians of {rounds} tabs")
    print(f"{'messages':<20}" + "".join(f"{count:>12}" for count in found))
    for name in next(iter(found.values())):
        cells = (
            f"{each[name]:>12,.{1 if name.endswith(', s') else 0}f}" for each in found.values()
        )
        print(f"{name:<20}" + "".join(cells))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report(options.messages, options.rounds)


if __name__ == "__main__":
    main()
