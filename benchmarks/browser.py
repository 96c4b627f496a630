"""Chromium, and what a tab of it asks a server for; it needs Playwright and Chromium."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
"""Of the browser; it reaches this machine only."""
TRACE = (sys.executable, "-m", "trace_cli")
WEB = (*TRACE, "web", "--json", "--no-browser")
"""Serves the page, and prints a line of JSON with `link` and `address` when it answers."""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium, and yield it.

    Raises:
        SystemExit: Playwright is not installed, or there is no Chromium.
    """
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit(f"no browser: none of {', '.join(NAMES)} is on the PATH")
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError as error:
        raise SystemExit("Playwright is not installed: pip install playwright") from error
    with (
        playwright.sync_playwright() as engine,
        engine.chromium.launch(executable_path=program, args=FLAGS) as browser,
    ):
        yield browser


def start(command: tuple[str, ...], folder: Path, home: Path, ready: str) -> tuple[Any, str]:
    """Start a server, and return its process and the line with `ready`, which says where it listens."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if ready in line:
            return process, line
    raise SystemExit(f"{command[0]} ended before it listened")


def stop(process: Any) -> None:
    """End a server."""
    process.terminate()
    process.wait()


@contextlib.contextmanager
def trace_page(browser: Any, folder: Path, home: Path, **options: Any) -> Iterator[tuple[Any, str]]:
    """Serve the page of a repository; yield a context of the browser that is let in, and the address."""
    process, line = start(WEB, folder, home, '"link"')
    try:
        said = json.loads(line)
        context = browser.new_context(**options)
        context.new_page().goto(said["link"])
        yield context, said["address"].rstrip("/")
        context.close()
    finally:
        stop(process)


class Screen:
    """A tab whose requests, bytes and time until a text is on the screen are counted."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests = 0
        self.size_bytes = 0
        page.on("requestfinished", self._count)

    def _count(self, request: Any) -> None:
        self.requests += 1
        sizes = request.sizes()
        self.size_bytes += sizes["responseBodySize"] + sizes["responseHeadersSize"]

    def until(self, act: Callable[[], object], place: str) -> list[float]:
        """Return the milliseconds, requests and KiB from an act to the first element of a selector."""
        self.requests = self.size_bytes = 0
        began = time.perf_counter()
        act()
        self.page.locator(place).first.wait_for(timeout=60_000)
        elapsed = (time.perf_counter() - began) * 1000
        self.page.wait_for_timeout(500)  # what was asked for and has not arrived yet counts, too
        return [elapsed, self.requests, self.size_bytes / 1024]
