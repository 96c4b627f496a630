"""Worker processes: each request gets its own answer, whatever else a process prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trace_store.disk.worker_pool import WorkerPool

DONE = b"N."
"""The pickle of None, as a program might print it by chance."""


class Unreadable:
    """An answer that cannot be read here."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return int, ("no number",)


def loud(setup: str) -> Callable[[int], Any]:
    """Answer with the request, and print in one of the ways that a package may."""

    def answer(request: int) -> Any:
        if request == 2:
            if setup == "print":
                print("N.", flush=True)
            elif setup == "write":
                os.write(1, DONE)
            elif setup == "program":
                subprocess.run([sys.executable, "-c", "print('N.')"], check=True)
            elif setup == "read":
                subprocess.run([sys.executable, "-c", "input()"], check=False)
            elif setup == "unreadable":
                return [Unreadable(), *range(1000)]
        return request

    return answer


def answers(setup: str) -> Iterator[int | None]:
    """Yield the answers to a few requests of one process; None if it has ended."""
    pool = WorkerPool(loud, setup, 1)
    try:
        for request in range(5):
            future = pool.submit(request)
            assert future is not None
            try:
                yield future.result()
            except OSError:
                yield None
    finally:
        pool.end()


@pytest.mark.parametrize("way", ["print", "write", "program", "read"])
def test_what_a_process_prints_is_no_answer(way: str) -> None:
    assert list(answers(way)) == [0, 1, 2, 3, 4]


def test_after_an_answer_that_cannot_be_read_there_is_none() -> None:
    assert list(answers("unreadable")) == [0, 1, None, None, None]


def test_an_isolated_interpreter_starts_isolated_ones(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').close()")
    program = f"""
import sys
sys.path[:] = {sys.path!r}
from tests.store.test_worker_pool import answers
assert list(answers('')) == [0, 1, 2, 3, 4]
"""
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-I", "-c", program], env=variables, check=True)
    assert not (tmp_path / "ran").exists()
