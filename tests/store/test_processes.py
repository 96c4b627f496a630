"""Several processes at once, and processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.support.histories import append, errors, line, main_line, new_store, reopen
from trace_store.maintenance.seal import seal

ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import sys
from pathlib import Path
from tests.store.support.histories import append, reopen
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = reopen(folder)
for number in range(count):
    oid = append(store, f"{name}/{number}", durability=sys.argv[4])
    print(oid, flush=True)
"""

SEALER = """
import sys
from pathlib import Path
from tests.store.support.histories import reopen
from trace_store.maintenance.seal import seal
store = reopen(Path(sys.argv[1]))
while True:
    seal(store)
    print("sealed", flush=True)
"""

READER = """
import sys
from pathlib import Path
from tests.store.support.histories import main_line, reopen
known = []
store = reopen(Path(sys.argv[1]))
while True:
    now = main_line(store)
    assert now[:len(known)] == known, (len(known), len(now))
    known = now
    assert store.refs.diverged() == []
    print(len(now), flush=True)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "cli")])
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )


def stop(process: subprocess.Popen[str]) -> str:
    process.terminate()
    return process.communicate()[0]


def test_eight_writers_a_sealer_and_a_reader(tmp_path: Path) -> None:
    """No acknowledged commit is missing and the chain is intact."""
    new_store(tmp_path).close()
    count = 25
    sealer, reader = start(SEALER, tmp_path), start(READER, tmp_path)
    writers = [start(WRITER, tmp_path, f"w{n}", count, "durable") for n in range(8)]
    outputs = [writer.communicate(timeout=120)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 8
    assert reader.poll() is None, "the reader saw something wrong"
    assert sealer.poll() is None, "the sealer failed"
    stop(reader)
    stop(sealer)
    acknowledged = [oid for output in outputs for oid in output.split()]
    assert len(set(acknowledged)) == 8 * count
    store = reopen(tmp_path)
    history = main_line(store)
    assert len(history) == 8 * count
    for number in range(8):
        own = [text for text in history if text.startswith(f"w{number}/")]
        assert own == [f"w{number}/{n}" for n in range(count)]
    seal(store)
    assert errors(store) == []
    assert store.refs.diverged() == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_killed_writers_and_sealers_lose_nothing(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    acknowledged = 0
    for round_number in range(4):
        writers = [
            start(WRITER, tmp_path, f"r{round_number}w{n}", 100_000, "durable") for n in range(2)
        ]
        sealer = start(SEALER, tmp_path)
        begun = [process.stdout.readline() for process in (*writers, sealer) if process.stdout]
        time.sleep(0.1 + 0.07 * round_number)
        for process in (sealer, *writers):
            process.kill()
        rest = [process.communicate()[0] for process in (*writers, sealer)]
        outputs = [first + more for first, more in zip(begun, rest, strict=True)][:2]
        acknowledged += sum(output.count("\n") for output in outputs)
        store = reopen(tmp_path)
        history = set(main_line(store))
        for number, output in enumerate(outputs):
            for n in range(output.count("\n")):
                assert f"r{round_number}w{number}/{n}" in history
        assert errors(store) == []
        store.close()
    assert acknowledged > 0
    store = reopen(tmp_path)
    append(store, "goes on")
    seal(store)
    assert main_line(store)[-1] == "goes on"
    assert errors(store) == []


def test_threads_share_a_handle(tmp_path: Path) -> None:
    import threading

    store = new_store(tmp_path)

    def work(name: int) -> None:
        for number in range(20):
            append(store, f"{name}/{number}")
            main_line(store)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        seal(store)
    for thread in threads:
        thread.join()
    assert len(main_line(store)) == 80
    seal(store)
    assert len(line(reopen(tmp_path), store.refs.read("refs/heads/main"))) == 80
    assert errors(store) == []
