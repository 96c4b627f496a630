"""`trace import` and `trace demo`: from a transcript to a request."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Trace, record
from trace_cli.porcelain.demo import NEXT, SAMPLE
from trace_store.base.environment import Environment
from trace_store.importers.formats.claude_code import project_name
from trace_store.importers.formats.droid import DroidReader


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return Path(shutil.copyfile(SAMPLE, tmp_path / "session.jsonl"))


def test_import_reports_what_became_of_every_record(repository: Trace, session: Path) -> None:
    report = record(repository("import", session.name, "--json"))
    lines = session.read_text(encoding="utf-8").splitlines()
    assert sum(report["outcomes"].values()) == len(lines)
    assert report["files"][0]["path"] == "session.jsonl"
    assert report["commits"] == int(repository("rev-list", "--count", "HEAD").text)
    again = record(repository("import", session.name, "--json"))
    assert again["commits"] == 0
    assert again["files"][0]["skipped"] == "unchanged"
    assert repository("fsck").code == 0
    assert record(repository("status", "--json"))["unsealed_transactions"] == 0


def test_import_for_people(repository: Trace, session: Path) -> None:
    with session.open("a", encoding="utf-8") as file:
        file.write("{broken\n" * 8)
    outcome = repository("import", session.name)
    assert outcome.code == 0
    assert outcome.lines[0].startswith("session.jsonl: 16 commits, 16 messages")
    assert outcome.lines[1].startswith("    sessions/claude-code/")
    assert outcome.lines[-2] == "1 file: 16 commits, 16 messages"
    assert "not-json" in outcome.lines[-1]
    assert "note: session.jsonl:23: skipped, not-json" in outcome.err
    assert "3 more were skipped" in outcome.err
    assert repository("import", session.name).lines[0] == "session.jsonl: unchanged"
    assert repository("import", session.name, "-q") == (0, b"", "")


def test_a_dry_run_writes_nothing(repository: Trace, session: Path) -> None:
    would = repository("import", "--dry-run", session.name)
    assert "dry run: 1 file: 16 commits, 16 messages" in would.lines
    assert not repository("sessions").text
    done = repository("import", session.name)
    assert [line.removeprefix("dry run: ") for line in would.lines] == done.lines


def test_a_file_on_which_its_reader_fails_is_told_and_the_others_are_imported(
    repository: Trace, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = session.parent / "transcripts"
    folder.mkdir()
    shutil.move(session, folder / "sound.jsonl")
    (folder / "odd.jsonl").write_text('{"type":"session_start","sessionTitle":"","id":"odd"}\n')
    monkeypatch.setattr(DroidReader, "read", lambda *_: 1 // 0)
    outcome = repository("import", "transcripts")
    assert outcome.code == 1
    assert "odd.jsonl: failed: " in outcome.lines[0]
    assert "sound.jsonl: 16 commits" in outcome.lines[1]
    assert "ZeroDivisionError" in outcome.err
    outcome = repository("import", "transcripts", "--json")
    assert (outcome.code, json.loads(outcome.out)["files"][0]["skipped"]) == (1, "failed")
    assert repository("import", "transcripts", "-q").code == 1
    assert repository("fsck").code == 0


def test_a_file_that_cannot_be_imported_stops_no_other_that_was_named(
    repository: Trace, session: Path
) -> None:
    (session.parent / "empty").write_bytes(b"")
    outcome = repository("import", session.name, "empty")
    assert outcome.code == 2
    assert outcome.lines[0].startswith("session.jsonl: 16 commits, 16 messages")
    assert outcome.lines[2] == "empty: empty"
    assert outcome.err == "trace: error: empty file: empty\n"
    assert repository("rev-list", "--count", "HEAD").text == "16\n"
    outcome = repository("import", "absent", "empty", session.name, "--json")
    assert outcome.code == 2
    assert [file["skipped"] for file in json.loads(outcome.out)["files"]] == [
        *("unreadable", "empty", "unchanged"),
    ]
    assert outcome.err == (
        "note: 2 files could not be imported; the first:\ntrace: error: no such file: absent\n"
    )
    assert repository("import", "absent", session.name, "-q").code == 2


def test_import_shows_progress_on_a_terminal(repository: Trace, session: Path) -> None:
    outcome = repository("import", session.name, terminal=True)
    shown = [text for text in outcome.err.split("\r") if "%" in text]
    assert shown[-1].rstrip() in (" 99% session.jsonl", "100% session.jsonl")
    assert outcome.err.endswith(" \r")
    assert "\n" not in outcome.err
    assert "\x1b" not in outcome.err + outcome.text


def test_import_onto_a_branch_without_sources(repository: Trace, session: Path) -> None:
    assert repository("commit", "--system", "Be brief.").code == 0
    report = record(repository("import", session.name, "--onto", "main", "--no-source", "--json"))
    assert report["outcomes"].get("source", 0) == 0
    assert int(repository("rev-list", "--count", "main").text) == 17
    assert "Be brief." in repository("compile", "main").text


def test_import_finds_the_history_of_this_project(repository: Trace, session: Path) -> None:
    folder = session.parent
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(folder))
    place = folder / "config" / "projects" / name
    place.mkdir(parents=True)
    shutil.copyfile(SAMPLE, place / "a.jsonl")
    here = Environment(author="Ada", discovery=False, claude_dir=str(folder / "config"))
    report = record(repository("import", "--all", "--json", environment=here))
    assert report["commits"] == 16
    nowhere = Environment(author="Ada", discovery=False, claude_dir=str(folder / "none"))
    assert repository("import", "--all", environment=nowhere).code == 4


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["import"], 2),
        (["import", "nothing.jsonl"], 2),
        (["import", "empty"], 2),
        (["import", "text"], 2),
        (["import", "session.jsonl", "--format", "nothing"], 2),
        (["import", "session.jsonl", "--onto", "a..b"], 2),
    ],
)
def test_what_cannot_be_imported(
    repository: Trace, session: Path, tmp_path: Path, words: list[str], code: int
) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"just text\n")
    outcome = repository(*words)
    assert outcome.code == code
    assert not outcome.out
    assert outcome.err.startswith("trace: error: ")
    assert repository("for-each-ref").out == b""


def test_the_demonstration_does_what_it_shows(trace: Trace, tmp_path: Path) -> None:
    outcome = trace("demo", "here")
    assert outcome.code == 0, outcome.err
    folder = tmp_path / "here"
    request = json.loads((folder / "request.json").read_bytes())
    assert request["messages"][0]["role"] == "user"
    shown = [line.split()[2] for line in outcome.lines if line.startswith("$ trace ")]
    assert shown == [
        *("init", "import", "log", "compile", "edit", "remove", "pin", "compile", "compile"),
        *("status", "fsck"),
    ]
    totals = [line for line in outcome.lines if " messages, about " in line]
    counts = [int(line.split()[3].replace(",", "")) for line in totals[:2]]
    assert counts[1] < counts[0]
    assert "no problems found" in outcome.err
    assert not [line for line in outcome.err.splitlines() if line.startswith("note:")]
    assert str(folder) in outcome.text
    os.chdir(folder)
    for command, _ in NEXT:
        if command.startswith("trace ") and "--all" not in command and "--help" not in command:
            words = command.split('"')[0].split()[1:]
            words += [command.split('"')[1]] if '"' in command else []
            assert trace(*words).code == 0, command


def test_who_has_no_trace_on_the_path_is_told_how(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "my venv" / "bin" / "activate"
    script.parent.mkdir(parents=True)
    script.touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path / "my venv"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert f"  . '{script}'" in trace("demo", "one").text
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert "activate" not in trace("demo", "two").text


def test_the_sample_is_printed_as_it_is(trace: Trace, tmp_path: Path) -> None:
    assert trace("demo", "--sample").out == Path(SAMPLE).read_bytes()
    assert trace("demo", "--sample", "here").code == 2
    assert not (tmp_path / "here").exists()


def test_the_demonstration_is_not_led_elsewhere(trace: Trace, tmp_path: Path) -> None:
    assert trace("init", "-q").code == 0
    here = Environment(author="Ada", trace_dir=str(tmp_path / ".trace"))
    assert trace("demo", "below", environment=here).code == 0
    assert trace("for-each-ref").out == b""
    assert trace("demo", "below").code == 2


def test_editing_a_tool_result_keeps_the_pair(repository: Trace, session: Path) -> None:
    assert repository("import", session.name, "-q").code == 0
    table = record(repository("compile", "--json", "--table"))["messages"]
    results = [m["address"] for m in table if m["role"] == "tool"]
    assert repository("edit", results[0], "short", "-q").code == 0
    several = next(a for a in results if len(parts(repository, a)) > 1)
    assert repository("edit", several, "short", "--all", "-q").code == 0
    assert {part["content"][0]["text"] for part in parts(repository, several)} == {"short"}
    assert repository("compile", "-f", "anthropic", "--strict").code == 0
    calling = next(m["address"] for m in table if len(parts(repository, m["address"])) == 3)
    before = parts(repository, calling)
    assert repository("edit", calling, "other words", "-q").code == 0
    after = parts(repository, calling)
    assert after[0] == {"type": "text", "text": "other words"}
    assert after[1:] == before[1:]
    whole = json.dumps({"role": "assistant", "content": "all new"})
    assert repository("edit", calling, "--parts", whole, "-q").code == 2  # results need their calls
    assert repository("edit", calling, "--parts", whole, "-q", "--force").code == 0
    assert parts(repository, calling) == [{"type": "text", "text": "all new"}]


def parts(repository: Trace, address: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = record(repository("show", address, "--json"))["parts"]
    return found


def _claude_session(home: Path, project: Path, session: Path, id_: str) -> Environment:
    """Put a session of a project where Claude Code keeps it, and return the environment that finds it."""
    folder = home / "projects" / project_name(str(project))
    folder.mkdir(parents=True)
    text = session.read_text(encoding="utf-8").replace("89c670d1", id_)
    (folder / f"{id_}.jsonl").write_text(text, encoding="utf-8")
    return Environment(author="Ada", claude_dir=str(home))


def test_all_sessions_of_a_project_are_found_from_a_folder_in_it(
    trace: Trace, session: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    here = _claude_session(tmp_path / "claude", project, session, "aaaaaaaa")
    _claude_session(tmp_path / "claude", project / "src", session, "bbbbbbbb")
    _claude_session(tmp_path / "claude", tmp_path, session, "cccccccc")
    assert trace("init", "project").code == 0
    for folder, files in (("project/src/deep", 2), ("project/src", 2), ("project", 1)):
        report = record(trace("-C", folder, "import", "--all", "--json", environment=here))
        assert len(report["files"]) == files
    names = trace("-C", "project", "branch").text
    assert "aaaaaaaa" in names
    assert "bbbbbbbb" in names
    assert "cccccccc" not in names  # of a folder above the project


@pytest.mark.parametrize("git", [True, False])
def test_import_all_creates_the_repository(
    trace: Trace, session: Path, tmp_path: Path, git: bool
) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    if git:
        (project / ".git").mkdir()
    here = _claude_session(tmp_path / "claude", project if git else project / "src", session, "aa")
    nowhere = Environment(author="Ada", claude_dir=str(tmp_path / "none"))
    assert trace("-C", "project/src", "import", "--all", environment=nowhere).code == 4
    assert not list(tmp_path.rglob(".trace"))  # nothing to import: nothing is created
    outcome = trace("-C", "project/src", "import", "--all", environment=here)
    assert outcome.code == 0, outcome.err
    place = (project if git else project / "src") / ".trace"
    assert f"note: created an empty repository in {place}" in outcome.err
    assert "1 file: 16 commits, 16 messages" in outcome.lines
    assert list(tmp_path.rglob(".trace")) == [place]
    named = trace("--dir", "elsewhere", "import", "--all", environment=here)
    assert named.code == 10
    assert not (tmp_path / "elsewhere").exists()
