"""The session file that importing is measured with is one that an importer takes whole."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from benchmarks.session_file import records, write_session
from benchmarks.sources import Corpus
from benchmarks.transcripts import turns
from trace_store import Repo
from trace_store.importers.import_paths import import_paths
from trace_store.writer import Writer

COUNT = 60


def test_every_message_comes_back(tmp_path: Path) -> None:
    files = [file for file in Corpus.installed().files if "/" not in file.name][:40]
    given = list(islice(turns("repetitive", 1, Corpus(files)), COUNT))
    path = tmp_path / "session.jsonl"
    write_session(path, given, 1)
    assert path.read_text("utf-8").count("\n") == len(list(records(given, 1))) > COUNT
    with Repo.memory() as repo:
        (report,) = import_paths(Writer(repo.store), [str(path)]).files
        assert report.format == "claude-code"
        (branch,) = [name for name, _ in repo.store.refs.iterate("refs/heads/sessions/")]
        found = [message.message() for message in repo.compile(branch).messages]
    texts = [part["text"] for turn in given for part in turn["content"] if part["type"] == "text"]
    assert [message.text for message in found if message.text] == texts
    results = sum(part["type"] == "tool_result" for turn in given for part in turn["content"])
    assert sum(message.kind == "tool_io" for message in found) >= results


def test_the_same_seed_writes_the_same_file(tmp_path: Path) -> None:
    given = [{"id": "msg_1", "role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    assert list(records(given, 1)) == list(records(given, 1))
    assert list(records(given, 1)) != list(records(given, 2))
    assert json.loads(json.dumps(next(records(given, 1))))["message"]["content"] == "Hello"
