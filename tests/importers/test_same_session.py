"""A folder with several files of one session settles: the next import finds nothing new, and moves no branch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.transcripts import Transcript, text
from trace_store import Repo


def gemini(*said: str) -> bytes:
    time = "2026-07-17T09:00:00Z"
    records: list[dict[str, Any]] = [{"sessionId": "one", "startTime": time, "lastUpdated": time}]
    for n, each in enumerate(said):
        kind, content = ("gemini", [{"text": each}]) if n % 2 else ("user", each)
        records.append({"id": f"m{n}", "timestamp": time, "type": kind, "content": content})
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def claude_code(last: str) -> list[bytes]:
    t = Transcript()
    t.user("Look at the words.")
    t.assistant("msg_1", text("I look."), stop="end_turn")
    t.user("Now the lines.")
    t.assistant("msg_2", text("I count."))
    t.assistant("msg_2", text(last), stop="end_turn")
    return t.data.splitlines(keepends=True)


def other_ends() -> list[bytes]:
    """Return a session, its beginning, and another end of it without what was before."""
    whole, other = claude_code("There are nine."), claude_code("There are ten.")
    return [b"".join(whole), b"".join(whole[:2]), b"".join(other[-3:])]


@pytest.mark.parametrize(
    "files",
    [
        [gemini("a", "b"), gemini("x", "y"), gemini("a", "z")],
        other_ends(),
        other_ends()[::-1],
    ],
)
def test_files_of_one_session_settle(tmp_path: Path, files: list[bytes]) -> None:
    for number, data in enumerate(files):
        (tmp_path / f"{number}.jsonl").write_bytes(data)
    repo = Repo.memory()
    repo.transcripts.import_(tmp_path)
    before = dict(repo.store.refs.iterate("refs/"))
    for _ in range(2):
        again = repo.transcripts.import_(tmp_path)
        assert [each.skipped for each in again.files] == ["unchanged"] * len(files)
        assert dict(repo.store.refs.iterate("refs/")) == before
    # A file that grows is imported again.
    grown = tmp_path / "0.jsonl"
    grown.write_bytes(files[0] + files[0].splitlines(keepends=True)[-1])
    assert not repo.transcripts.import_(grown).files[0].skipped
