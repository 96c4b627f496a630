"""Runs on the page: the list, the timeline, and the way to the messages and back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.exporters.support.pages import Page
from tests.web.support.client import Client
from trace_store.repo.repository import Repo
from trace_store.web.live import Hub
from trace_store.web.run_page import STEPS


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="ada", durability="fast")
    repo.append("user", "Fix the parser.")
    return repo


def said(client: Client, path: str, **query: str) -> str:
    return Page(client.page(path, 200, **query).encode()).said()


def test_a_timeline_shows_each_step_with_what_it_read(repo: Repo) -> None:
    asked = repo.append("user", "And the lexer.").addresses[0]
    with repo.runs.start("Fix the parser", id="nightly", agent="coder", message=asked) as run:
        with run.step("thinking", "Reading the test", model="m1") as step:
            step.source("pytest docs", "https://docs.pytest.org/x", "web")
            step.source("notes", "/home/ada/notes.md", "file")
            step.substep("look at line 3").complete("there")
            step.complete("It drops a line.", tokens={"input": 900}, message=asked)
        failed = run.step("tool_call", "pytest")
        failed.fail("exit status 1")
        failed.retry().complete("\n".join(map(str, range(100))))
    client = Client(repo)
    text = said(client, "/run", id="nightly")
    for part in (
        *("Fix the parser", "coder", "1. Reading the test", "It drops a line.", "pytest docs"),
        *("docs.pytest.org", "notes /home/ada/notes.md", "look at line 3: there", "900 input"),
        *("m1", "2. pytest", "exit status 1", "tries 2 again", "100 lines", "completed", "failed"),
    ):
        assert part in text, part
    html = client.page("/run", id="nightly")
    assert 'href="https://docs.pytest.org/x"' in html
    assert "/home/ada/notes.md" not in "".join(
        each.attributes.get("href", "") for each in Page(html.encode()).elements
    )
    assert f"/session?name=main&amp;hidden=1&amp;at={asked.hex}" in html
    ((address, line),) = client.part("/marks", name="main")["marks"]
    assert address == str(asked)
    assert ">Fix the parser</a>: completed, 3 steps" in line


def test_runs_are_listed_the_running_ones_first(repo: Repo) -> None:
    repo.runs.start("Old one", id="old", agent="coder").complete()
    running = repo.runs.start("Running one", id="now", agent="reviewer", session="main")
    running.step("thinking", "Reading the diff")
    client = Client(repo)
    text = said(client, "/runs")
    assert text.index("Running one") < text.index("Old one")
    assert "1. Reading the diff" in text
    assert "Old one" not in said(client, "/runs", state="running")
    assert "Running one" not in said(client, "/runs", agent="coder")
    assert "No run matches the filter." in said(client, "/runs", agent="unknown")
    sessions = said(client, "/")
    assert "reviewer: thinking, step 1" in sessions
    assert "running" in sessions
    running.complete()
    assert "reviewer: thinking" not in said(client, "/")


def test_an_open_step_has_room_for_its_text_until_it_ends(repo: Repo) -> None:
    run = repo.runs.start("Fix", id="nightly")
    step = run.step("thinking")
    client = Client(repo)
    assert 'id="text-1"' in client.page("/run", id="nightly")
    step.complete("done")
    assert 'id="text-1"' not in client.page("/run", id="nightly")
    assert "done" in said(client, "/run", id="nightly")


def test_a_long_run_shows_its_last_steps_and_links_the_others(repo: Repo) -> None:
    with repo.runs.start("Many", id="many") as run:
        for number in range(STEPS + 5):
            run.step("tool_call", f"step number {number + 1}").complete()
    client = Client(repo)
    last = client.page("/run", id="many")
    assert last.count("<article") == STEPS
    assert f"step number {STEPS + 5}<" in last
    assert "steps 1 to 200" in Page(last.encode()).said()
    first = client.page("/run", id="many", start="0")
    assert "1. step number 1<" in first
    assert "steps 201 to 205" in Page(first.encode()).said()


def test_a_run_that_is_not_there(repo: Repo) -> None:
    client = Client(repo)
    client.page("/run", 404, id="nope")
    client.page("/run", 400, id="a/b")
    client.page("/run", 400, id="x", start="-1")


def test_progress_passes_without_a_position_and_not_to_a_slow_page() -> None:
    async def listen() -> tuple[list[bytes], int]:
        hub = Hub()
        stream = hub.events()
        await anext(stream)
        for number in range(2_000):
            hub.pass_on("progress", {"run": "nightly", "step": 1, "at": number, "text": "x"})
        hub.publish("moved", ref="refs/runs/nightly")
        got = [await anext(stream) for _ in range(501)]
        return got, len(got)

    got, _ = asyncio.run(listen())
    assert got[0].startswith(b"event: progress\n")
    assert json.loads(got[499].split(b"data: ")[1])["at"] == 499
    assert b"event: moved\n" in got[500]
