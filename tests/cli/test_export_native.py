"""`trace export --native`: an imported file comes back byte for byte."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from errno import ENOSPC, EPIPE
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from tests.support.command_line import Trace
from trace_cli.main import main
from trace_cli.porcelain.demo import SAMPLE
from trace_cli.runtime import Invocation
from trace_store.base.environment import Environment
from trace_store.errors import CorruptObjectError
from trace_store.transcripts.segments import restore

DATA = Path(SAMPLE).read_bytes()


def test_a_file_goes_to_standard_output_as_it_was(repository: Trace) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    outcome = repository("export", "--native")
    assert (outcome.code, outcome.out, outcome.err) == (0, DATA, "")
    record = json.loads(repository("export", "--native", "--json").text)
    assert record["size"] == len(DATA)
    assert repository("export", "--native", "--file", record["ref"][-12:]).out == DATA


def test_a_file_goes_to_a_path_and_overwrites_nothing(repository: Trace, tmp_path: Path) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    out = tmp_path / "back.jsonl"
    assert repository("export", "--native", "-o", "back.jsonl").code == 0
    assert out.read_bytes() == DATA
    out.write_bytes(b"mine")
    assert repository("export", "--native", "-o", "back.jsonl").code != 0
    assert out.read_bytes() == b"mine"
    assert repository("export", "--native", "-o", "back.jsonl", "--force").code == 0
    assert out.read_bytes() == DATA
    assert repository("export", "--native", "-o", "absent/back.jsonl").code == 14
    assert not (tmp_path / "absent").exists()


def test_all_files_go_to_a_folder(repository: Trace, tmp_path: Path) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    assert repository("export", "--native", "--all").code == 2
    (tmp_path / "out").mkdir()
    assert repository("export", "--native", "--all", "-o", "out").code == 0
    (found,) = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert found.read_bytes() == DATA


def test_what_was_committed_since_changes_nothing(repository: Trace) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    assert repository("commit", "-", stdin=b'{"role":"user","content":"And now?"}').code == 0
    assert repository("export", "--native").out == DATA


def test_what_is_not_kept_is_said(repository: Trace) -> None:
    assert repository("export", "--native", "nothing").code == 4
    for words in (["--all"], ["--native", "--format", "markdown"], ["--file", "ab"]):
        assert repository("export", *words).code == 2


def test_a_damaged_file_does_not_stop_the_others(
    repository: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [letter * 8 + "-13e6-5e56-a540-26baed822c05" for letter in "abc"]
    for session in ids:
        path = tmp_path / f"{session}.jsonl"
        path.write_bytes(DATA.replace(b"89c670d1-13e6-5e56-a540-26baed822c05", session.encode()))
        assert repository("import", path.name, "-q").code == 0
    assert repository("update-ref", f"refs/transcripts/claude-code/{ids[2]}/abc", "HEAD").code == 0
    (tmp_path / "out").mkdir()
    calls: list[bytes] = []

    def damaged(tip: bytes, read: Callable[[bytes], bytes]) -> Iterator[bytes]:
        calls.append(tip)
        if len(calls) == 2:
            raise CorruptObjectError("transcript segment hash mismatch")
        yield from restore(tip, read)

    monkeypatch.setattr("trace_store.sessions.transcripts.restore", damaged)
    outcome = repository("export", "--native", "--all", "-o", "out")
    assert outcome.code == 12
    assert outcome.err.count("cannot be restored") == 2
    found = {path.stem for path in (tmp_path / "out").rglob("*.jsonl")}
    assert found == {ids[0], ids[2]}


@pytest.mark.parametrize(
    "name", ["refs/transcripts/odd", "refs/transcripts/a/b/c/d", "refs/transcripts/a/b"]
)
def test_refs_that_are_no_files_are_passed_over(
    repository: Trace, tmp_path: Path, name: str
) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    assert repository("update-ref", name, "HEAD").code == 0
    assert repository("export", "--native").out == DATA
    (tmp_path / "out").mkdir()
    assert repository("export", "--native", "--all", "-o", "out").code == 0
    assert repository("du").code == 0


class Narrow(io.RawIOBase):
    """Unbuffered output that accepts few bytes at a time, and may fail later."""

    def __init__(self, error: OSError | None = None) -> None:
        self.taken = b""
        self.error = error

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.error is not None and len(self.taken) > 1000:
            raise self.error
        self.taken += bytes(data[:700])
        return min(len(data), 700)


@pytest.mark.parametrize(
    ("error", "code"),
    [(None, 0), (BrokenPipeError(EPIPE, "closed"), 141), (OSError(ENOSPC, "no space"), 14)],
)
def test_output_that_takes_a_part_gets_the_rest_too(
    repository: Trace, tmp_path: Path, error: OSError | None, code: int
) -> None:
    assert repository("import", str(SAMPLE), "-q").code == 0
    output = Narrow(error)
    here = Invocation(environment=Environment(), output=cast(BinaryIO, output), error=io.BytesIO())
    assert main(["-C", str(tmp_path), "export", "--native"], here) == code
    assert (output.taken == DATA) is (error is None)
