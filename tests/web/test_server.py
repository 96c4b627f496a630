"""The real server on a free port, as `trace web` starts it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import httpx

from tests.web.support.served import served
from trace_store.repo.repository import Repo


def test_a_page_hears_of_messages_that_another_process_writes(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "first")
    with served(tmp_path) as (process, said):
        with httpx.Client(base_url=said["address"], follow_redirects=True) as client:
            assert client.get("/").status_code == 401
            assert client.get(said["link"]).status_code == 200
            page = client.get("/session", params={"name": "main"})
            assert "first" in page.text
            with client.stream("GET", "/events") as stream:
                lines = stream.iter_lines()
                assert any(line == "event: hello" for line in lines)
                with Repo.open(tmp_path) as repo:
                    repo.append("assistant", "second")
                    began = time.monotonic()
                    moved = next(
                        line for line in lines if line.startswith("data: ") and "ref" in line
                    )
                    assert json.loads(moved[6:])["ref"] == "refs/heads/main"
                    assert time.monotonic() - began < 5
                    found = client.get(
                        "/messages", params={"name": "main", "start": "1", "count": "9"}
                    )
                    assert "second" in found.json()["html"]
                # Ctrl-C ends it at once, though a page still listens.
                began = time.monotonic()
                process.send_signal(signal.SIGINT)
                assert process.wait(10) == 0
                assert time.monotonic() - began < 5
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_link_works_after_a_restart(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "first")
    with httpx.Client(follow_redirects=True) as client:
        with served(tmp_path) as (_, said):
            assert client.get(said["link"]).status_code == 200
            address = said["address"]
        with served(tmp_path) as (_, said):
            assert said["address"] == address
            assert "first" in client.get(f"{address}session?name=main").text
