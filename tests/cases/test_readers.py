"""How files are read: whatever the size of the pieces, and whatever stands between sound records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Outcome
from trace_store.importers import lines

CHUNK = lines.CHUNK_BYTES


def transcript(shift: int = 0, more: int = 20) -> bytes:
    """Return a transcript in which one line ends `shift` bytes behind the first chunk, and its later lines."""
    out: list[bytes] = []

    def add(text: str) -> None:
        number = len(out)
        said: dict[str, object] = {"role": "user", "content": text}
        if number % 2:
            content = [{"type": "text", "text": text}]
            said = {"id": f"m{number}", "role": "assistant", "model": "m", "content": content}
        record = {
            "type": said["role"],
            "uuid": f"u{number:06d}",
            "parentUuid": f"u{number - 1:06d}" if number else None,
            "sessionId": "s1",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": said,
        }
        out.append(json.dumps(record).encode() + b"\n")

    while sum(map(len, out)) < CHUNK - 100_000:
        add("x" * 30_000)
    add("")
    room = CHUNK - sum(map(len, out)) + shift
    out.pop()
    add("y" * room)
    for number in range(more):
        add(f"after {number}")
    return b"".join(out)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_case_49_a_line_that_ends_with_a_chunk(
    ok: Callable[..., Outcome], tmp_path: Path, shift: int
) -> None:
    data = transcript(shift)
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    report = json.loads(ok("import", "s.jsonl", "--json").text)
    assert report["outcomes"] == {"message": data.count(b"\n")}
    assert ok("export", "--native").out == data


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_case_49_a_file_that_has_grown(
    ok: Callable[..., Outcome], tmp_path: Path, shift: int
) -> None:
    first, data = transcript(shift, more=0), transcript(shift)
    path = tmp_path / "s.jsonl"
    for part in (first[:5_000], first, data):
        path.write_bytes(part)
        ok("import", "s.jsonl")
    assert len(ok("log").lines) == data.count(b"\n")
    assert ok("export", "--native").out == data
