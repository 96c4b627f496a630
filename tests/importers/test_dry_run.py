"""Dry runs: what an import would do, without doing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.test_dagent import CHAT, ID
from trace_store import Repo, record


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Return a folder with a chat, its companion files, and a file that is no transcript."""
    folder = tmp_path / "chats" / ID
    folder.mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps(CHAT))
    (folder / "description.md").write_text("You write code.")
    (folder / "notes.txt").write_text("nothing")
    return tmp_path / "chats"


def state_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def told(report: object) -> Any:
    found: Any = record(report)
    assert isinstance(found.pop("dry_run"), bool)
    return found


def test_a_dry_run_tells_what_the_import_then_does(tmp_path: Path, chats: Path) -> None:
    with Repo.init(tmp_path / "project", author="ada") as repo:
        before = state_of(tmp_path)
        would = repo.transcripts.import_(chats, dry_run=True)
        assert state_of(tmp_path) == before
        assert would.dry_run
        assert would.messages == 4
        assert repo.sessions.list() == []
        assert told(would) == told(repo.transcripts.import_(chats))
        again = repo.transcripts.import_(chats, dry_run=True)
        assert again.messages == 0, "what is there already is known to the copy, too"


def test_a_repository_in_memory_has_dry_runs_too(chats: Path) -> None:
    repo = Repo.memory(author="ada")
    assert repo.transcripts.import_(chats, dry_run=True).messages == 4
    assert repo.sessions.list() == []
