"""Watching a run: each thing once and in order, and text that is shown but never stored."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store import Repo
from trace_store.runs import progress
from trace_store.runs.progress import Screen
from trace_store.runs.watch import RunEvent, _Watch

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEAtu8s0Lk3n0c8YkL1xqP8mF3y7q\n" * 20
WRITER = """
import sys, trace_store
repo = trace_store.Repo.open(sys.argv[1])
with repo.runs.start("Fix", id=sys.argv[2], agent="coder") as run:
    for number in range(int(sys.argv[3])):
        with run.step("tool_call", str(number)) as step:
            step.progress(f"text {number} ")
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="ada", durability="fast")
    repo.append("user", "Fix the parser.")
    return repo


class Watching:
    """A watcher in a thread, with what it has seen."""

    def __init__(self, folder: Path, name: str) -> None:
        self.seen: list[RunEvent] = []
        self._folder = folder
        self._name = name
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        with Repo.open(self._folder) as repo:
            for event in repo.runs.watch(self._name, timeout=20):
                self.seen.append(event)

    def until(self, kind: str, count: int = 1) -> None:
        """Wait until so many events of a kind have come."""
        end = time.monotonic() + 20
        while sum(each.kind == kind for each in self.seen) < count:
            assert time.monotonic() < end, self.seen
            time.sleep(0.005)

    def done(self) -> list[RunEvent]:
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.seen


def text_of(events: list[RunEvent], step: int = 1) -> str:
    """Return the text of a step as a page would show it."""
    text = ""
    for each in events:
        if each.kind == "progress" and each.step == step:
            text = each.text if each.is_whole else text + each.text
    return text


def pieces(text: str, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    at = 0
    while at < len(text):
        size = chance.randint(1, 12)
        yield text[at : at + size]
        at += size


def test_a_watcher_sees_each_thing_once_and_in_order(repo: Repo, tmp_path: Path) -> None:
    with repo.runs.start("Fix", id="nightly") as run:
        run.step("thinking", "before").complete()
        watching = Watching(tmp_path, "nightly")
        watching.until("ended")
        with run.step("tool_call", "during") as step:
            step.progress("one two three ")
            watching.until("progress")
            step.source("docs", "https://example.org", "web")
            part = step.substep("part")
            watching.until("substep")
            part.complete("done")
            watching.until("substep", 2)
    seen = [each for each in watching.done() if each.kind != "progress"]
    assert [(each.kind, each.step, each.status) for each in seen] == [
        ("started", 1, ""),
        ("ended", 1, ""),
        ("state", 0, "running"),
        ("started", 2, ""),
        ("source", 2, ""),
        ("substep", 2, ""),
        ("substep", 2, ""),
        ("ended", 2, ""),
        ("state", 0, "completed"),
    ]
    assert seen[4].source is not None
    assert (seen[4].source.title, seen[4].source.url) == ("docs", "https://example.org")
    assert [each.substep.content for each in seen[5:7] if each.substep] == ["", "done"]
    assert text_of(watching.seen, 2) == "one two three "


def test_who_joins_in_the_middle_gets_the_text_so_far(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "WHOLE_SECONDS", 0.1)
    run = repo.runs.start("Fix", id="nightly")
    step = run.step("thinking")
    step.progress("said before anybody watched ")
    time.sleep(0.2)
    watching = Watching(tmp_path, "nightly")
    watching.until("started")
    while not any(each.kind == "progress" for each in watching.seen):
        step.progress("more ")
        time.sleep(0.02)
    step.progress("and the end\n")
    time.sleep(0.3)
    step.complete()
    run.complete()
    text = text_of(watching.done())
    assert text.startswith("said before anybody watched more ")
    assert text.endswith("more and the end\n")


def test_events_that_another_program_emits_do_not_end_a_watch(repo: Repo, tmp_path: Path) -> None:
    run = repo.runs.start("Fix", id="nightly")
    step = run.step("thinking")
    watching = Watching(tmp_path, "nightly")
    watching.until("state")
    odd: list[dict[str, object]] = [
        {},
        {"step": [1]},
        {"step": 1, "number": 1, "source": {"colour": "red"}},
        {"step": 1, "at": "x", "text": 5},
        {"step": 7, "at": 0, "text": "x"},
    ]
    for kind in (progress.EVENT, progress.NOTE, "other"):
        repo.store.emit_all([(kind, {"run": "nightly", **data}) for data in odd])
    step.progress("real text ")
    watching.until("progress")
    step.complete()
    run.complete()
    assert text_of(watching.done()) == "real text "


def test_a_watcher_of_a_dead_run_hears_of_it_while_others_write(repo: Repo, tmp_path: Path) -> None:
    dead, other = repo.runs.start("Fix", id="nightly"), repo.runs.start("Fix", id="nightly-other")
    watching = Watching(tmp_path, "nightly")
    watching.until("state")
    dead._lock.release()
    while len(watching.seen) < 2:
        other.step("thinking").complete()
    assert watching.seen[1].status == "interrupted"
    dead.complete()
    watching.done()


def test_progress_is_stored_nowhere(repo: Repo, tmp_path: Path) -> None:
    with repo.runs.start("Fix", id="nightly") as run, run.step("thinking") as step:
        step.progress("a-word-that-is-never-stored ")
        time.sleep(0.2)
    repo.maintenance.seal()
    repo.append("user", "And now?")
    repo.maintenance.seal()  # removes the journals of the one before
    assert not [
        path
        for path in (tmp_path / ".trace").rglob("*")
        if path.is_file() and b"never-stored" in path.read_bytes()
    ]


def test_a_slow_disk_drops_the_oldest_text_and_says_so(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUEUE_CHARACTERS", 1000)
    run = repo.runs.start("Fix", id="nightly")
    watching = Watching(tmp_path, "nightly")
    watching.until("state")
    step = run.step("thinking")
    with run._progress._lock:  # the sender waits meanwhile
        stream = progress._Stream(repo.guard)
        run._progress._streams[step.number] = stream
        for number in range(1000):
            stream.put(f"{number} ")
    step.progress("end ")
    watching.until("progress")
    step.complete()
    run.complete()
    text = text_of(watching.done())
    assert text.startswith(f" {progress.CUT} ")
    assert text.endswith("998 999 end ")
    assert len(text) < 1100


def test_the_frame_of_a_long_text_holds_its_end(repo: Repo, tmp_path: Path) -> None:
    run = repo.runs.start("Fix", id="nightly")
    watching = Watching(tmp_path, "nightly")
    watching.until("state")
    step = run.step("thinking")
    step.progress("é" * 100_000 + " end ")
    watching.until("progress")
    step.complete()
    run.complete()
    event = next(each for each in watching.done() if each.kind == "progress")
    assert event.is_whole
    assert event.text.endswith("é end ")
    assert event.at + len(event.text) == 100_005
    assert len(event.text.encode()) <= progress.WHOLE_BYTES


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "secret", [TOKEN, f"password: {TOKEN[4:30]}", f"AWS_SECRET_ACCESS_KEY={TOKEN[:40]}", KEY]
)
def test_a_secret_in_pieces_never_passes(repo: Repo, secret: str, seed: int) -> None:
    screen = Screen(repo.guard)
    text = f"I read the file and found {secret}\nand went on. " * 2
    shown = "".join(screen.add(piece) for piece in pieces(text, seed)) + screen.add("", last=True)
    whole = Screen(repo.guard).add(text, last=True)
    assert secret not in shown
    assert secret.split()[-1][8:30] not in shown
    assert "[redacted:" in shown
    assert shown.startswith("I read the file and found ")
    assert shown.endswith("and went on. ") == whole.endswith("and went on. ")


@pytest.mark.parametrize("seed", range(10))
def test_text_without_secrets_passes_as_it_is(repo: Repo, seed: int) -> None:
    screen = Screen(repo.guard)
    text = (
        "Ich prüfe die Datei 港 und 日本語のテキスト, then `x = f(1)`.\n\n" * 5
        + "x" * 3_000
        + " end"
    )
    shown = "".join(screen.add(piece) for piece in pieces(text, seed)) + screen.add("", last=True)
    assert shown == text


def test_a_text_without_spaces_is_not_held_back_for_ever(repo: Repo) -> None:
    screen = Screen(repo.guard)
    shown = "".join(screen.add("0123456789abcdef" * 512) for _ in range(10))
    assert len(shown) >= 8192 * 10 - progress.HELD_BYTES


def test_runs_of_several_processes_are_seen_whole(repo: Repo, tmp_path: Path) -> None:
    names = ["one", "two", "three"]
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), name, "20"] for name in names]
    processes = [subprocess.Popen(command) for command in commands]
    end = time.monotonic() + 20
    while len(repo.runs.list()) < len(names):
        assert time.monotonic() < end
        time.sleep(0.02)
    watchers = [Watching(tmp_path, name) for name in names for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    expected = [(kind, number) for number in range(1, 21) for kind in ("started", "ended")]
    for watching in watchers:
        seen = [each for each in watching.done() if each.kind in ("started", "ended")]
        assert [(each.kind, each.step) for each in seen] == expected


def test_a_run_whose_process_is_gone_is_said_to_be_interrupted(repo: Repo, tmp_path: Path) -> None:
    run = repo.runs.start("Fix", id="nightly")
    run.step("thinking")
    run._lock.release()
    events = list(repo.runs.watch("nightly", timeout=0.1))
    assert [(each.kind, each.status) for each in events] == [
        ("started", ""),
        ("state", "interrupted"),
    ]


def test_a_look_at_a_run_that_has_just_ended_shows_its_last_steps(repo: Repo) -> None:
    run = repo.runs.start("Fix", id="nightly")
    watched = _Watch(repo.store, "nightly")
    assert [each.status for each in watched.look()] == ["running"]
    run.step("thinking").complete()
    run.complete()
    assert [(each.kind, each.status) for each in watched.look()] == [
        ("started", ""),
        ("ended", ""),
        ("state", "completed"),
    ]
