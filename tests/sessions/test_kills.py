"""Killed processes: acknowledged messages survive, and the session continues."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from trace_store import Message, Repo

ROOT = Path(__file__).parents[2]
KILLS = 6
CODE = """
import sys, trace_store as t
repo = t.Repo.open(sys.argv[1])
session = repo.sessions.open("one", compaction=sys.argv[2])
words = "The harbour was built in stages, and each stage has a report of its own. " * 8
number = 0
while True:
    number += 1
    request = session.request(f"{sys.argv[3]} {number}. {words}")
    usage = {"input_tokens": request.estimated + 900, "output_tokens": 5}
    made = session.add(t.Message("assistant", words), usage=usage, request=request)
    print(made.addresses[0].hex, flush=True)
"""


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.sessions.start("dev", name="one", limit=6_000, reply=500)
    chance, told = random.Random(7), list[str]()
    for number in range(KILLS):
        mode = ("inline", "background")[number % 2]
        words = [sys.executable, "-c", CODE, str(tmp_path), mode, str(number)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        told.append(process.stdout.readline().strip())
        time.sleep(chance.uniform(0.05, 1.0))
        process.kill()
        said, _ = process.communicate()
        # A line that was cut off was not acknowledged.
        told += [line for line in said.split("\n")[:-1] if line]
        with Repo.open(tmp_path) as repo:
            session = repo.sessions.open("one")
            for address in told:
                assert repo.message(address, ref=session.ref).message.text.startswith("The harbour")
            session.add(Message("user", "Go on."))
            assert not [each for each in session.request().repairs if each.is_fault]
            session.add(Message("assistant", "Yes."))
    with Repo.open(tmp_path) as repo:
        assert len(repo.sessions.open("one").history()) > 1
        assert not [each for each in repo.maintenance.fsck() if each.severity == "error"]
    assert len(told) > KILLS
