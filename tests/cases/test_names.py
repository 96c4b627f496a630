"""Names that git refuses, names that are one file on macOS and Windows, and links that lead elsewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from trace_store.contracts.ref_names import UsedNames, is_ref_name

REFUSED = [
    *("HEAD", "@", "a[", "[a]", "a*", "a?", "a~1", "a^", "a:b", "a\\b", "a b", "a\tb", "a\x7f"),
    *("a..b", "a@{b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "/a", "a/", "a//b", "-a", "", "ORIG_HEAD"),
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_case_53_names_that_git_refuses(ok: Run, repository: Trace, name: str) -> None:
    ok("commit", "-q", "--user", "hello")
    before = ok("for-each-ref").out
    for words in (
        ["branch", name],
        ["switch", "-c", name],
        ["tag", name],
        ["branch", "-m", "main", name],
        ["update-ref", f"refs/heads/{name}", "HEAD"],
        ["update-ref", f"refs/tags/{name}", "HEAD"],
    ):
        assert repository(*words).code != 0 or words == ["branch", ""], words
    assert ok("for-each-ref").out == before


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_git_refuses_is_refused(tmp_path: Path) -> None:
    marks = "a.[*?~^:\\@{/ -"
    names = [f"{x}{y}{z}" for x in marks for y in marks for z in "a./@{"]
    refused = {
        name
        for name in names[::7]
        if subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False).returncode
    }
    assert refused
    assert not [name for name in refused if is_ref_name(f"refs/heads/{name}")]


def test_case_53_branches_that_differ_by_case_only(ok: Run, repository: Trace) -> None:
    ok("commit", "-q", "--user", "hello")
    ok("branch", "feature/one")
    ok("tag", "v1")
    for words in (
        ["branch", "Main"],
        ["switch", "-c", "MAIN"],
        ["update-ref", "refs/heads/mAIN", "HEAD"],
        ["branch", "Feature/two"],
        ["branch", "feature/ONE"],
        ["branch", "MAIN/x"],
        ["tag", "V1"],
    ):
        refused = repository(*words)
        assert refused.code == 2, words
        assert "only by case" in refused.err
    ok("seal")
    assert repository("branch", "Main").code == 2
    assert (
        repository("branch", "-m", "main", "Main").code == 2
    )  # one file would be made and removed
    ok("branch", "-m", "main", "trunk")
    ok("branch", "-m", "trunk", "Main")
    ok("tag", "-d", "v1")
    ok("tag", "V1")
    ok("branch", "v1")  # a tag is another folder


def session(folder: Path, name: str, text: str) -> Path:
    record = {
        "type": "user",
        "uuid": f"u-{text}",
        "parentUuid": None,
        "sessionId": name,
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {"role": "user", "content": text},
    }
    file = folder / f"{text}.jsonl"
    file.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "names", [("abc", "ABC", "aBc"), ("caf\u00e9", "cafe\u0301", "CAFE\u0301")]
)
def test_case_53_sessions_that_differ_by_case_only(
    ok: Run, tmp_path: Path, names: tuple[str, ...]
) -> None:
    for number, name in enumerate(names):
        session(tmp_path, name, f"text {number}")
    ok("import", "-q", ".")
    refs = [line.split("\t")[1] for line in ok("for-each-ref").lines if "/heads/sessions/" in line]
    assert len({ref.lower() for ref in refs}) == len(names)
    ok("import", "-q", ".")
    with (tmp_path / "text 1.jsonl").open("a", encoding="utf-8") as file:
        more = json.loads((tmp_path / "text 1.jsonl").read_text(encoding="utf-8"))
        file.write(json.dumps({**more, "uuid": "u9", "parentUuid": "u-text 1"}) + "\n")
    ok("import", "-q", ".")
    after = [line.split("\t")[1] for line in ok("for-each-ref").lines if "/heads/sessions/" in line]
    assert after == refs
    for ref in refs:
        assert ok("compile", ref, "--format", "openai").code == 0
    kept = [line.split("\t")[1] for line in ok("for-each-ref").lines if "/transcripts/" in line]
    assert len({ref.lower() for ref in kept}) == len(names)


def test_case_53_an_import_of_a_folder_follows_no_link_that_leads_out_of_it(
    ok: Run, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    session(inside, "one", "inner")
    (inside / "linked.jsonl").symlink_to(session(outside, "two", "outer"))
    (inside / "folder").symlink_to(outside)
    (inside / "again.jsonl").symlink_to(inside / "inner.jsonl")
    ok("import", "-q", "in")
    assert "sessions/claude-code/one" in ok("for-each-ref").text
    assert "sessions/claude-code/two" not in ok("for-each-ref").text
    (tmp_path / "link").symlink_to(inside)
    ok("import", "-q", "link")
    ok("import", "-q", "in/linked.jsonl")  # named, so it is meant
    assert "sessions/claude-code/two" in ok("for-each-ref").text


def test_spellings_know_folders() -> None:
    there = UsedNames(["refs/heads/main", "refs/heads/a/b"])
    assert there.case_conflict("refs/heads/A/c") == "refs/heads/a"
    assert there.case_conflict("refs/heads/a/c") == ""
    assert there.case_conflict("refs/heads/Main/x") == "refs/heads/main"
