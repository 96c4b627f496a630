"""Batch modes of plumbing: immediate answers, thousands of them per process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.command_line import Trace
from trace_cli.runtime import Invocation
from trace_store.base.environment import Environment

ROOT = Path(__file__).resolve().parents[2]


class Flushes(io.BytesIO):
    """Counts flushes of the output."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def flush(self) -> None:
        self.count += 1


class Chunks(io.BytesIO):
    """Standard input that arrives in pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self.pieces = list(pieces)

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def invocation(pieces: list[bytes], output: io.BytesIO) -> Invocation:
    return Invocation(
        environment=Environment(author="Ada"), output=output, input=Chunks(pieces), terminal=False
    )


@given(st.lists(st.binary(min_size=1, max_size=9) | st.sampled_from([b"\n", b"a\nb", b"\n\nc"])))
def test_lines_are_those_of_the_whole_however_it_comes(pieces: list[bytes]) -> None:
    found = list(invocation(pieces, io.BytesIO()).lines())
    assert found == list(io.BytesIO(b"".join(pieces)))


def test_output_is_handed_over_before_more_is_waited_for() -> None:
    output = Flushes()
    here = invocation([b"one\ntwo\n", b"three\n"], output)
    seen = []
    for line in here.lines():
        here.write(b"answer\n")
        seen.append((line, output.count))
    assert seen == [(b"one\n", 1), (b"two\n", 1), (b"three\n", 2)]
    assert output.count == 3


def test_a_question_at_a_time_is_answered_at_once(repository: Trace, tmp_path: Path) -> None:
    repository("commit", "-q", "--user", "hello")
    oid = repository("rev-parse", "HEAD").out.strip()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"}
    with subprocess.Popen(
        [sys.executable, "-m", "trace_cli", "cat-file", "--batch-check"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(oid + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith(oid + b" commit ")
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_many_objects_are_handed_over_together(repository: Trace) -> None:
    repository("commit", "-q", "--user", "hello")
    oid = repository("rev-parse", "HEAD").out.strip()
    output = Flushes()
    here = Invocation(
        environment=Environment(author="Ada", discovery=False),
        output=output,
        input=io.BytesIO((oid + b"\n") * 500),
        terminal=False,
    )
    from trace_cli.main import main

    assert main(["cat-file", "--batch-check"], here) == 0
    assert output.getvalue().count(b" commit ") == 500
    assert output.count < 10
