"""Sessions of agents from Python: import, export and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.support.transcripts import SESSION, lively
from trace_store import Environment, Repo
from trace_store.errors import (
    AlreadyExistsError,
    InvalidInputError,
    RenderError,
    RevisionNotFoundError,
)
from trace_store.importers.formats.claude_code import project_name
from trace_store.store.store import Store


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository in memory; HEAD is on a branch of its own, and Claude Code has a session of `app`."""
    app = tmp_path / "app"
    folder = tmp_path / "claude" / "projects" / project_name(str(app))
    folder.mkdir(parents=True)
    lively().write(folder)
    environment = Environment(claude_dir=str(tmp_path / "claude"))
    repo = Repo(Store.memory(), author="Ada", environment=environment)
    repo.append("user", "on main")
    return repo


def test_sessions_are_discovered_and_imported(repo: Repo, tmp_path: Path) -> None:
    assert repo.transcripts.discover(tmp_path) == []
    assert repo.transcripts.discover(tmp_path / "app", "codex") == []
    [path] = repo.transcripts.discover(tmp_path / "app")
    assert list(repo.transcripts.projects().values()) == [1]
    assert repo.transcripts.import_(discovered=[path, tmp_path / "gone"]).commits
    assert repo.transcripts.import_(discovered=[path]).commits == 0


def test_the_original_is_restored(repo: Repo, tmp_path: Path) -> None:
    repo.transcripts.import_(*repo.transcripts.discover(tmp_path / "app"))
    kept = repo.transcripts.original(SESSION)
    assert repo.transcripts.originals() == [kept]
    exported = repo.transcripts.export_original(kept, path=tmp_path)
    assert (tmp_path / exported.file_name).read_bytes() == lively().data
    with pytest.raises(AlreadyExistsError):
        repo.transcripts.export_original(SESSION, path=tmp_path)
    for _ in range(2):
        [saved] = repo.transcripts.export_originals(tmp_path / "all", overwrite=True)
        assert Path(saved.path).read_bytes() == lively().data
        assert saved.blake3 == exported.blake3
        assert saved.placeholders == 0


def test_a_session_without_its_original_is_written_anew(repo: Repo, tmp_path: Path) -> None:
    repo.transcripts.import_(*repo.transcripts.discover(tmp_path / "app"), source=False)
    with pytest.raises(RevisionNotFoundError):
        repo.transcripts.original(SESSION)
    exported = repo.sessions.export(SESSION, "")
    assert exported.losses[0].what == "original-bytes"
    with pytest.raises(RenderError) as caught:
        repo.sessions.export(SESSION, "", strict=True)
    assert caught.value.losses == exported.losses
    with pytest.raises(InvalidInputError, match="main was not imported"):
        repo.sessions.export("main", "")


def test_a_session_is_read_once_and_exported_to_several_formats(repo: Repo, tmp_path: Path) -> None:
    repo.append("assistant", "done", ref="idea")
    repo.remove("HEAD.0", ref="idea")
    repo.append("user", "Thank you.", ref="idea")
    session = repo.sessions.read("idea")
    page = repo.sessions.export(session, "html")
    assert page.hidden_count == 1
    assert repo.sessions.export("idea", "html", hidden=True).hidden_count == 0
    saved = page.save(tmp_path)
    assert saved.path == str(tmp_path / "idea.html")
    assert saved.size == (tmp_path / "idea.html").stat().st_size
    assert b"Thank you." in repo.sessions.export(session, "openai").to_bytes()
    with pytest.raises(InvalidInputError, match="hidden from the model"):
        repo.sessions.export("idea", "openai", hidden=True)


def test_a_session_is_repaired_beside_its_branch(repo: Repo, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    repo.commit([{"role": "assistant", "content": None, "tool_calls": [call]}], ref="idea")
    repo.append("user", "Go on.", ref="idea")
    found = repo.sessions.repair("idea", dry_run=True)
    assert (found.outcome, found.repaired) == ("broken", "refs/heads/repaired/idea")
    assert repo.sessions.repair(repo.line("idea").resolve("HEAD"), dry_run=True).ref == ""
    assert repo.sessions.repair("idea", in_place=True).repaired == "refs/heads/idea"
    assert repo.sessions.repair("idea").outcome == "sound"
    repo.transcripts.import_(*repo.transcripts.discover(tmp_path / "app"))
    assert repo.sessions.repair(SESSION[:8]).ref.endswith(SESSION)


def test_pages_of_branches_replace_only_pages(repo: Repo, tmp_path: Path) -> None:
    repo.append("user", "aside", ref="idea")
    folder = tmp_path / "pages"
    assert repo.sessions.export_pages(folder, "idea").pages == (("idea", "idea.html"),)
    made = repo.sessions.export_pages(folder)
    assert [name for name, _ in made.pages] == ["idea", "main"]
    assert made.index == str(folder / "index.html")
    (folder / "main.html").write_text("my own")
    with pytest.raises(AlreadyExistsError):
        repo.sessions.export_pages(folder)
    repo.sessions.export_pages(folder, overwrite=True)
    assert "on main" in (folder / "main.html").read_text()
