"""Processes that people run beside each other: terminals, an agent and its hook, a viewer, a gc during an import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trace_store import Repo
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.store.store import Store

ROOT = Path(__file__).resolve().parents[2]

AGENT = """
import sys, time
from trace_store import Repo
with Repo.open(sys.argv[1], create=False) as repo:
    for turn in range(int(sys.argv[2])):
        repo.append("user", f"question {turn}")
        print(turn, flush=True)
        repo.append("assistant", f"answer {turn}")
"""
VIEWER = """
import sys
from trace_store import Repo
repo = Repo.open(sys.argv[1], create=False)
known = []
while True:
    now = [m.text for m in repo.compile().messages]
    assert now[:len(known)] == known, (known[-1:], now[-1:])
    known = now
    print(len(known), flush=True)
"""


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def trace(folder: Path, *words: str) -> subprocess.Popen[str]:
    return start("-m", "trace_cli", "-C", folder, *words)


def done(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def texts(folder: Path) -> list[str]:
    with Repo.open(folder, create=False) as repo:
        return [message.text for message in repo.compile().messages]


def sound(folder: Path) -> bool:
    with Store.open(str(folder / ".trace")) as store:
        return not [each for each in fsck(store) if each.severity == ERROR]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Repo.init(tmp_path) as repo:
        repo.append("system", "begin")
    return tmp_path


def test_two_terminals(folder: Path) -> None:
    """Both commit and seal at once, again and again; neither is refused, and nothing is missing or double."""
    for turn in range(4):
        pair = [trace(folder, "commit", "--user", f"{name} {turn}") for name in ("left", "right")]
        for process in pair:
            done(process)
    said = texts(folder)
    assert sorted(said[1:]) == sorted(f"{n} {t}" for n in ("left", "right") for t in range(4))
    assert [text for text in said if text.startswith("left")] == [f"left {t}" for t in range(4)]
    assert sound(folder)


def test_an_agent_and_its_hook(folder: Path) -> None:
    """A hook commits quietly on its own branch, and on the agent's, while that holds the repository open."""
    agent = start("-c", AGENT, folder, 20)
    assert agent.stdout is not None
    for turn in range(4):
        agent.stdout.readline()
        own = trace(folder, "commit", "-q", "--branch", "hooks", "--user", f"hook {turn}")
        done(trace(folder, "commit", "-q", "--system", f"note {turn}"))
        done(own)
    done(agent)
    said = texts(folder)
    assert [text for text in said if text[0] in "qa"] == [
        f"{kind} {turn}" for turn in range(20) for kind in ("question", "answer")
    ]
    assert [text for text in said if text.startswith("note")] == [f"note {t}" for t in range(4)]
    with Repo.open(folder, create=False) as repo:
        assert [m.text for m in repo.compile("hooks").messages] == [f"hook {t}" for t in range(4)]
    assert sound(folder)


def test_a_viewer_reads_while_a_session_writes(folder: Path) -> None:
    """What it is shown only grows, and it ends by seeing all."""
    viewer, agent = start("-c", VIEWER, folder), start("-c", AGENT, folder, 40)
    assert viewer.stdout is not None
    assert viewer.stdout.readline()
    done(agent)
    end = time.monotonic() + 60
    while (seen := int(viewer.stdout.readline())) < 81 and time.monotonic() < end:
        pass
    assert viewer.poll() is None, viewer.communicate()[1]
    viewer.kill()
    viewer.communicate()
    assert seen == 81


def test_gc_and_prune_during_an_import(folder: Path) -> None:
    """What an import has read and not yet named is not collected under it."""
    sample = done(trace(folder, "demo", "--sample"))
    names: list[str] = []
    for number in range(12):
        names.append(f"session-{number}.jsonl")
        again = sample.replace("89c670d1", f"89c670{number:02x}")
        (folder / names[-1]).write_text(again)
    importing = trace(folder, "import", *names, "--json")
    upkeep = 0
    while importing.poll() is None:
        done(trace(folder, "gc", "--grace", "0", "-q"))
        done(trace(folder, "prune", "--now", "-q"))
        upkeep += 2
    assert upkeep
    report = json.loads(done(importing).splitlines()[0])
    assert not [file["error"] for file in report["files"] if file["error"]]
    assert sound(folder)
    with Repo.open(folder, create=False) as repo:
        sessions = [name for name, _ in repo.store.refs.iterate("refs/heads/sessions/")]
        assert len(sessions) == len(names)
        assert all(len(repo.compile(name).messages) > 10 for name in sessions)
