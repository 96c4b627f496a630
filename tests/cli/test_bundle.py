"""`trace bundle`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.importers.support.transcripts import REASON, real_files, real_format
from tests.support.command_line import Run, Trace
from trace_cli.porcelain.demo import SAMPLE


@pytest.fixture
def filled(ok: Run, tmp_path: Path) -> Run:
    """Two repositories: one with a branch, and an empty one in `other`."""
    ok("commit", "--user", "What is 6 times 7?", "-q")
    (tmp_path / "other").mkdir()
    ok("-C", "other", "init", "-q")
    return ok


def test_there_and_back(filled: Run) -> None:
    tip = filled("rev-parse", "main").text.strip()
    made = filled("bundle", "create", "a.bundle")
    assert made.lines[0].startswith("a.bundle: 1 ref, 2 objects, ")
    assert filled("bundle", "list", "a.bundle").lines == [f"{tip} refs/heads/main"]
    assert filled("bundle", "verify", "a.bundle").lines[0].startswith("a.bundle: sound, 1 ref")
    taken = filled("-C", "other", "bundle", "import", "../a.bundle")
    assert taken.lines == [
        f"main: created, {tip[:12]}",
        "../a.bundle: 1 ref, 2 objects",
        "HEAD is on main",
    ]
    assert filled("-C", "other", "rev-parse", "main").text.strip() == tip
    assert not filled("-C", "other", "fsck").out
    assert filled("-C", "other", "status").lines[-1].startswith("context: 1 message")
    again = filled("-C", "other", "bundle", "import", "../a.bundle")
    assert again.lines == [
        "main: unchanged",
        "../a.bundle: 1 ref, 2 objects, all of them already present",
    ]
    assert filled("-C", "other", "bundle", "import", "../a.bundle", "-q").out == b""


def test_streams(filled: Run, repository: Trace) -> None:
    made = filled("bundle", "create", "-", "main")
    assert made.out.startswith(b"trace bundle 1\n")
    assert made.err.startswith("standard output: 1 ref, 2 objects, ")
    assert filled("bundle", "list", "-", stdin=made.out).lines[0].endswith(" refs/heads/main")
    assert "sound" in filled("bundle", "verify", "-", stdin=made.out).text
    taken = filled("-C", "other", "bundle", "import", "-", "--as", "ada", stdin=made.out)
    assert taken.lines[0].startswith("ada/main: created")
    assert filled("bundle", "create", "-", "-q").err == ""
    for words in (["-", "--json"], ["x", "--trash"]):
        assert repository("bundle", "create", *words).code == 2
    assert repository("bundle", "create", "-", terminal=True).code == 2


def test_only_what_is_new(filled: Run, repository: Trace) -> None:
    first = filled("rev-parse", "main").text.strip()
    filled("commit", "--assistant", "42.", "-q")
    made = filled("bundle", "create", "new.bundle", "--since", first)
    assert made.lines[1] == f"it requires {first[:12]}"
    outcome = repository("-C", "other", "bundle", "import", "../new.bundle")
    assert outcome.code == 4
    assert f"requires a commit that is missing here, such as {first}" in outcome.err
    assert not filled("-C", "other", "ls-objects").out
    assert repository("-C", "other", "bundle", "verify", "../new.bundle").code == 4
    assert "found here" in filled("bundle", "verify", "new.bundle").lines[1]
    whole = filled("bundle", "create", "-", first + "..main", stdin=b"")
    assert whole.out == (Path("new.bundle").read_bytes())


def test_no_repository_is_needed_to_look(filled: Run, repository: Trace, tmp_path: Path) -> None:
    first = filled("rev-parse", "main").text.strip()
    filled("commit", "--assistant", "42.", "-q")
    filled("bundle", "create", "new.bundle", f"{first}..")
    (tmp_path / "nowhere").mkdir()
    looked = filled("-C", "nowhere", "bundle", "verify", "../new.bundle")
    assert looked.lines[1].endswith("not checked, since there is no repository here")
    assert filled("-C", "nowhere", "bundle", "list", "../new.bundle").lines
    assert repository("-C", "nowhere", "bundle", "import", "../new.bundle").code == 10
    assert repository("--dir", "nowhere", "bundle", "verify", "new.bundle").code == 10


def test_what_happened_is_said(filled: Run, repository: Trace) -> None:
    filled("update-ref", "refs/tags/v1", "main")
    filled("bundle", "create", "a.bundle", "--all")
    filled("-C", "other", "bundle", "import", "../a.bundle", "-q")
    filled("-C", "other", "commit", "--assistant", "41.", "-q")
    filled("-C", "other", "update-ref", "refs/tags/v1", "HEAD")
    filled("commit", "--assistant", "42.", "-q")
    tip = filled("rev-parse", "--short", "main").text.strip()
    filled("bundle", "create", "a.bundle", "--all", "--force")
    outcome = repository("-C", "other", "bundle", "import", "../a.bundle")
    assert outcome.code == 3
    assert outcome.lines[0] == f"main: diverged: it has two tips now, {tip}"
    assert outcome.lines[1].startswith("tags/v1: kept: it differs here")
    assert outcome.err.splitlines()[0] == (
        "trace: error: 1 ref of the bundle differs here, such as refs/tags/v1;"
        " everything else was imported"
    )
    assert "--as PREFIX" in outcome.err.splitlines()[1]
    status = filled("-C", "other", "status")
    assert "diverged: refs/heads/main has 2 tips" in status.text
    assert not status.err
    report = repository("-C", "other", "bundle", "import", "../a.bundle", "--json")
    assert report.code == 3
    found = {each["name"]: each["outcome"] for each in json.loads(report.out)["refs"]}
    assert found == {"refs/heads/main": "unchanged", "refs/tags/v1": "kept"}


def test_refusals(filled: Run, repository: Trace, tmp_path: Path) -> None:
    filled("bundle", "create", "a.bundle")
    data = (tmp_path / "a.bundle").read_bytes()
    exists = repository("bundle", "create", "a.bundle")
    assert exists.code == 5
    assert "--force" in exists.err
    assert repository("bundle", "create", "no/such/folder/x.bundle").code == 14
    assert repository("bundle", "create", "b.bundle", "nothing").code == 4
    assert repository("bundle", "create", "b.bundle", "main~0").code == 2
    assert repository("-C", "other", "bundle", "create", "b.bundle").code == 6
    assert repository("-C", "other", "bundle", "create", "b.bundle", "--all").code == 6
    for name, content, code in (
        ("cut", data[:-1], 12),
        ("changed", data[:40] + b"\0" + data[41:], 12),
        ("none", b"x" * 100, 12),
        ("newer", b"trace bundle 7\n" + data[15:], 13),
    ):
        (tmp_path / name).write_bytes(content)
        for verb in ("import", "verify"):
            outcome = repository("-C", "other", "bundle", verb, f"../{name}")
            assert outcome.code == code, name
            assert len(outcome.err.splitlines()) == 2
    assert repository("bundle", "list", "nothing").code == 2
    assert not filled("-C", "other", "ls-objects").out
    assert not (tmp_path / "b.bundle").exists()
    assert repository("-C", "other", "bundle", "import", "../a.bundle", "--as", "a b").code == 2
    assert not filled("-C", "other", "for-each-ref").out


def test_names_that_a_terminal_would_obey_cannot_be_refs(filled: Run, repository: Trace) -> None:
    outcome = repository("bundle", "import", "a\x1b[2Jb")
    assert outcome.code == 2
    assert "\x1b" not in outcome.err


def test_a_session_goes_with_its_transcript(filled: Run, tmp_path: Path) -> None:
    sample = Path(SAMPLE).read_bytes()
    (tmp_path / "session.jsonl").write_bytes(sample)
    filled("import", "session.jsonl", "-q")
    (session,) = filled("for-each-ref", "--format", "%(refname)", "refs/heads/sessions").lines
    name = session.rpartition("/")[2]
    filled("bundle", "create", "session.bundle", name[:8])
    taken = filled("-C", "other", "bundle", "import", "../session.bundle")
    assert taken.lines[-1] == f"HEAD is on {session.removeprefix('refs/heads/')}"
    assert filled("-C", "other", "export", "--native").out == sample
    assert not filled("-C", "other", "fsck").out


@pytest.mark.skipif(not real_files(), reason=REASON)
def test_real_sessions_come_back_byte_for_byte_on_the_other_side(
    filled: Run, repository: Trace, tmp_path: Path
) -> None:
    """Bundled source files of imports are the same in the other repository."""
    files = {path.read_bytes() for path in real_files() if real_format(path)}
    repository("import", *sorted({str(path.parent) for path in real_files()}), "-q")
    filled("bundle", "create", "all.bundle", "--all", "-q")
    filled("-C", "other", "bundle", "import", "../all.bundle", "-q")
    here, there = filled("ls-objects", "--all"), filled("-C", "other", "ls-objects", "--all")
    assert here.out == there.out
    assert filled("for-each-ref").out == filled("-C", "other", "for-each-ref").out
    assert not filled("-C", "other", "fsck").out
    repository("-C", "other", "export", "--native", "--all", "-o", str(tmp_path / "given"))
    given = (path for path in (tmp_path / "given").rglob("*") if path.is_file())
    assert {path.read_bytes() for path in given} == files
