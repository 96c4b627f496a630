"""`trace export`: file names, destinations, and reports of losses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace, record
from trace_cli.porcelain.demo import SAMPLE
from trace_store.exporters.registry import FORMS
from trace_store.importers.formats.claude_code import project_name

SESSION = "89c670d1-13e6-5e56-a540-26baed822c05"


@pytest.fixture
def imported(ok: Run, repository: Trace, tmp_path: Path) -> Trace:
    shutil.copyfile(SAMPLE, tmp_path / "session.jsonl")
    ok("import", "session.jsonl", "-q")
    return repository


@pytest.mark.parametrize("form", sorted({"html", "markdown"}))
@pytest.mark.parametrize(
    "name", [[], [SESSION[:6]], [f"sessions/claude-code/{SESSION}"], ["HEAD~1"]]
)
def test_a_session_goes_to_standard_output(imported: Trace, form: str, name: list[str]) -> None:
    outcome = imported("export", *name, "--format", form)
    assert outcome.code == 0, outcome.err
    assert outcome.text.startswith({"html": "<!doctype html>", "markdown": "# "}[form])
    assert "wordcount" in outcome.text
    assert outcome.out == imported("export", *name, "--format", form, "-o", "-").out


def test_the_format_is_told_from_the_file(imported: Trace, tmp_path: Path) -> None:
    for form, ending in (("html", ".html"), ("markdown", ".md"), ("html", ".HTML")):
        outcome = imported("export", "-o", f"page{ending}")
        assert outcome.code == 0, outcome.err
        assert outcome.text.startswith(f"page{ending}: ")
        written = (tmp_path / f"page{ending}").read_bytes()
        assert written == imported("export", "--format", form).out
    for words in ([], ["-o", "page"], ["-o", "page.unknown"]):
        refused = imported("export", *words)
        assert refused.code == 2
        assert "--format names one of" in refused.err


def test_in_a_folder_it_has_a_name_of_its_own(imported: Trace, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    outcome = imported("export", "-o", "pages", "-f", "markdown")
    assert outcome.text.startswith(f"{os.path.join('pages', SESSION)}.md: ")
    assert os.listdir(tmp_path / "pages") == [f"{SESSION}.md"]


@pytest.mark.parametrize("words", [["-f", "markdown"], ["--native"], ["-f", "codex"]])
def test_a_name_that_ends_as_a_folder_is_one(
    imported: Trace, tmp_path: Path, words: list[str]
) -> None:
    assert imported("export", "-o", "new/pages/", *words).code == 0
    assert (tmp_path / "new" / "pages").is_dir()
    [name] = os.listdir(tmp_path / "new" / "pages")
    assert SESSION in name
    refused = imported("bundle", "create", "other/")
    assert "not the name of a file: " in refused.err
    assert not (tmp_path / "other").exists()


def test_nothing_is_overwritten_unless_it_is_meant(imported: Trace, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("mine")
    refused = imported("export", "-o", "page.md")
    assert refused.code == 5
    assert "--force" in refused.err
    assert (tmp_path / "page.md").read_text() == "mine"
    assert imported("export", "-o", "page.md", "--force").code == 0
    assert (tmp_path / "page.md").read_text().startswith("# ")
    (tmp_path / "folder.md").mkdir()
    assert imported("export", "-o", "folder.md", "-f", "markdown").code == 0
    refused = imported("export", "-o", "nowhere/page.md")
    assert refused.code == 14
    assert "no such folder" in refused.err
    assert sorted(os.listdir(tmp_path)) == [".trace", "folder.md", "page.md", "session.jsonl"]


def test_what_is_no_file_is_not_replaced(imported: Trace, tmp_path: Path) -> None:
    target = tmp_path / "target.md"
    target.write_text("mine")
    (tmp_path / "link.md").symlink_to(target)
    refused = imported("export", "-o", "link.md", "--force")
    assert refused.code == 14
    assert target.read_text() == "mine"


def test_losses_are_told_on_standard_error(imported: Trace) -> None:
    outcome = imported("export", "--format", "markdown")
    lost = [line for line in outcome.err.splitlines() if line.startswith("lost: ")]
    assert lost
    report = record(imported("export", "--format", "markdown", "--json"))
    assert len(report["losses"]) == len(lost)
    for loss, line in zip(report["losses"], lost, strict=True):
        assert line.startswith(f"lost: {loss['count']:,} {loss['what'].replace('-', ' ')}")
        assert loss["detail"] in line


def test_strict_writes_nothing_when_anything_is_lost(imported: Trace, tmp_path: Path) -> None:
    refused = imported("export", "-o", "page.md", "--strict")
    assert refused.code == 7
    assert not (tmp_path / "page.md").exists()
    assert "lost: " in refused.err
    piped = imported("export", "--format", "markdown", "--strict")
    assert (piped.code, piped.out) == (7, b"")
    assert imported("commit", "--user", "Hello.", "--branch", "plain", "-q").code == 0
    whole = imported("export", "plain", "--format", "markdown", "--strict")
    assert whole.code == 0, whole.err
    assert b"Hello." in whole.out


def test_the_report(imported: Trace, tmp_path: Path) -> None:
    report = record(imported("export", "--format", "html", "--json"))
    assert report["file"] is None
    assert not list(tmp_path.glob("*.html"))
    assert report["session"] == SESSION
    assert report["source_format"] == "claude-code"
    written = record(imported("export", SESSION[:4], "-o", "page.html", "--json"))
    path = tmp_path / "page.html"
    assert written == {**report, "file": str(path)}
    assert written["size"] == path.stat().st_size
    assert imported("export", "-f", "html", "-o", "-", "--json").code == 2
    assert imported("export", "-f", "html", "--force").code == 2


def test_a_session_as_it_was(imported: Trace) -> None:
    before = imported("export", "HEAD~3", "--format", "markdown").out
    assert imported("export", "--at", "HEAD~3", "--format", "markdown").out == before
    time = record(imported("log", "-n", "1", "HEAD~3", "--json"))["time"]
    assert imported("export", "--at", time, "--format", "markdown").out == before
    assert imported("export", SESSION[:6], "--at", time, "--format", "markdown").out == before
    refused = imported("export", "HEAD~1", "--at", "HEAD~3", "--format", "markdown")
    assert refused.code == 2
    assert "not both" in refused.err


def test_hidden_messages_are_shown_when_asked_for(imported: Trace) -> None:
    assert imported("commit", "--user", "A secret.", "-q").code == 0
    assert imported("remove", "HEAD.0", "-q").code == 0
    shown = imported("export", "--format", "html")
    assert b"A secret." not in shown.out
    assert "note: without 1 message hidden from the model; --hidden includes them" in shown.err
    whole = imported("export", "--format", "html", "--hidden")
    assert b"A secret." in whole.out
    assert "note:" not in whole.err


def test_several_sessions_that_begin_alike_are_named(imported: Trace) -> None:
    other = f"refs/heads/sessions/claude-code/{SESSION[:-1]}9"
    assert imported("update-ref", other, "HEAD").code == 0
    refused = imported("export", SESSION[:8], "--format", "html")
    assert refused.code == 2
    assert f"sessions/claude-code/{SESSION}, sessions/claude-code/{SESSION[:-1]}9" in refused.err


def test_wrong_calls_are_refused(imported: Trace) -> None:
    unknown = imported("export", "--format", "nope")
    assert unknown.code == 2
    assert all(name in unknown.err for name in FORMS)
    assert imported("export", "nowhere", "--format", "html").code == 4


def test_a_terminal_gets_nothing_that_it_would_obey(imported: Trace) -> None:
    assert imported("commit", "--user", "red \x1b[31m", "-q").code == 0
    for form in ("html", "markdown"):
        outcome = imported("export", "--format", form, terminal=True)
        assert outcome.code == 0
        assert b"\x1b[31m" not in outcome.out


def test_resume_notes_name_the_file(imported: Trace, tmp_path: Path) -> None:
    """An agent finds a session by the name of its file, whatever the export is called."""
    outcome = imported("export", "--format", "codex", "-o", "r.jsonl")
    path = f"~/.codex/sessions/2026/03/02/rollout-2026-03-02T09-14-04-{SESSION}.jsonl"
    assert f"note: copy the file to {path} and run `codex resume {SESSION}`" in outcome.err
    assert record(imported("export", "-f", "codex", "-o", ".", "--json"))["file"].endswith(
        path.rpartition("/")[2]
    )
    outcome = imported("export", "--format", "claude-code", "-o", "c.jsonl")
    # The recorded folder is on another machine: the one of the repository is named.
    folder = f"~/.claude/projects/{project_name(str(tmp_path))}"
    run = f"run `claude --resume {SESSION}` in {tmp_path}"
    assert f"note: copy the file to {folder}/{SESSION}.jsonl and {run}" in outcome.err


def test_a_session_is_resumed_where_it_worked_if_that_is_here(
    ok: Run, repository: Trace, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    text = Path(SAMPLE).read_text(encoding="utf-8").replace("/home/user/wordcount", str(folder))
    (tmp_path / "session.jsonl").write_text(text, encoding="utf-8")
    ok("import", "session.jsonl", "-q")
    noted = repository("export", "--format", "claude-code", "-o", "c.jsonl").err
    assert f"~/.claude/projects/{project_name(str(folder))}/{SESSION}.jsonl" in noted
    assert f" in {folder}\n" in noted
