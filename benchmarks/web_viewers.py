"""The page of Trace beside agentsview, in one browser: `python -m benchmarks.web_viewers TRANSCRIPT... --peer PROGRAM`.

Both get the same transcripts of Claude Code, each `--copies` times under ids of its own. Printed for each viewer: the
time until its transcripts are read and until a second start answers; requests, bytes and time until the list, the
longest session and the hits of a search are on the screen (medians of `--rounds` new tabs); the memory of the server
and the room of its data. Needs Playwright and Chromium; agentsview is on PyPI.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.browser import TRACE, WEB, Screen, chromium, start, stop


def transcripts(files: list[Path], copies: int, folder: Path) -> str:
    """Write copies of transcripts; return the id of the longest session."""
    project = folder / ".claude" / "projects" / "-demo"
    project.mkdir(parents=True)
    longest = (0, "")
    for file in files:
        lines = file.read_text("utf-8", "replace").splitlines()
        own = next((found for line in lines if (found := _field(line, "sessionId"))), "")
        if not own:
            continue
        for number in range(copies):
            name = f"{number:08x}{own[8:]}"
            text = "\n".join(lines).replace(own, name)
            (project / f"{name}.jsonl").write_text(text + "\n", "utf-8")
        if len(lines) > longest[0]:
            longest = (len(lines), f"00000000{own[8:]}")
    return longest[1]


def _field(line: str, name: str) -> str:
    with contextlib.suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict):
            return str(record.get(name) or "")
    return ""


@contextlib.contextmanager
def trace(home: Path) -> Iterator[tuple[float, Callable[[], Any]]]:
    """Import transcripts into a new repository; yield the seconds, and what starts the page."""
    project = home / "project"
    project.mkdir()
    began = time.perf_counter()
    subprocess.run([*TRACE, "init", "-q"], cwd=project, check=True)
    files = sorted(map(str, home.glob(".claude/projects/*/*.jsonl")))
    subprocess.run([*TRACE, "import", "-q", *files], cwd=project, check=True, capture_output=True)
    yield (
        time.perf_counter() - began,
        lambda: start(WEB, project, home, '"link"'),
    )


@contextlib.contextmanager
def agentsview(program: str, home: Path) -> Iterator[tuple[float, Callable[[], Any]]]:
    """The same for agentsview, which reads the transcripts when it starts."""
    command = (program, "serve", "--no-browser", "--no-update-check", "--port", "0")
    began = time.perf_counter()
    process, _ = start(command, home, home, "listening at ")
    seconds = time.perf_counter() - began
    stop(process)
    yield seconds, lambda: start(command, home, home, "listening at ")


def trace_tab(browser: Any, line: str, session: str, word: str) -> dict[str, list[float]]:
    """Return what a new tab of Trace costs: its list, a session, a search."""
    context = browser.new_context()
    page = context.new_page()
    said = json.loads(line)
    page.goto(said["link"])
    address = said["address"].rstrip("/")
    screen = Screen(context.new_page())
    found = {
        "list": screen.until(lambda: screen.page.goto(address), "main a[href^='/session']"),
        "session": screen.until(
            lambda: screen.page.goto(f"{address}/session?name=sessions/claude-code/{session}"),
            "main article",
        ),
        "search": screen.until(lambda: screen.page.goto(f"{address}/search?q={word}"), "main mark"),
    }
    context.close()
    return found


def agentsview_tab(browser: Any, line: str, session: str, word: str) -> dict[str, list[float]]:
    """Return the same of agentsview."""
    context = browser.new_context()
    address = line.split("listening at ")[1].split()[0]
    screen = Screen(context.new_page())

    def search() -> None:
        screen.page.keyboard.press("Control+k")
        screen.page.keyboard.type(word)

    found = {
        "list": screen.until(lambda: screen.page.goto(f"{address}/sessions"), ".session-item"),
        "session": screen.until(
            lambda: screen.page.goto(f"{address}/sessions/{session}"), ".message-body"
        ),
        "search": screen.until(search, "mark"),
    }
    context.close()
    return found


def room_kib(folder: Path) -> float:
    """Return the room of a folder's files, in KiB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1024


def memory_mib(process: Any) -> float:
    """Return the resident memory of a process, in MiB; Linux only."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def measure(
    name: str, door: Any, tab: Any, data: Path, options: argparse.Namespace, session: str
) -> None:
    """Print the figures of one viewer."""
    with door as (reading, serve), chromium() as browser:
        began = time.perf_counter()
        process, line = serve()
        warm = time.perf_counter() - began
        rounds: list[dict[str, list[float]]] = []
        for _ in range(options.rounds):
            # A link of Trace lets one browser in; each tab is a browser of its own.
            if name == "trace" and rounds:
                stop(process)
                process, line = serve()
            rounds.append(tab(browser, line, session, options.word))
        print(f"{name}: read {reading:.1f} s, second start {warm:.1f} s, browser {browser.version}")
        for part in rounds[0]:
            each = zip(*(one[part] for one in rounds), strict=True)
            elapsed, requests, size = (statistics.median(values) for values in each)
            print(f"  {part}: {elapsed:,.0f} ms, {requests:.0f} requests, {size:,.0f} KiB")
        print(f"  memory {memory_mib(process):,.0f} MiB, data {room_kib(data):,.0f} KiB")
        stop(process)


def main() -> None:
    """Print the figures of both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="TRANSCRIPT")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--word", default="checkpoint")
    parser.add_argument("--peer", default=shutil.which("agentsview"), metavar="PROGRAM")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("trace", *(["agentsview"] if options.peer else [])):
            home = Path(folder, name)
            session = transcripts(options.files, options.copies, home)
            if name == "trace":
                measure(name, trace(home), trace_tab, home / "project" / ".trace", options, session)
            else:
                door = agentsview(options.peer, home)
                measure(name, door, agentsview_tab, home / ".agentsview", options, session)


if __name__ == "__main__":
    main()
