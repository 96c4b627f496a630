"""`trace blame` and `trace whohas`."""

from __future__ import annotations

import json

from tests.cli.test_bad_input import refused
from tests.support.command_line import Run, Trace


def test_blame(repository: Trace, ok: Run) -> None:
    ok("commit", "--user", "first", "-q")
    ok("commit", "--assistant", "second\x1b[2J", "-q")
    ok("edit", "HEAD~1.0", "another", "-q")
    head, one, two, last = ok("blame", terminal=True).lines
    assert "address" in head
    assert "edit " in one
    assert last == "all commits were made on main"
    assert "\x1b[2J" not in two
    (record,) = map(json.loads, ok("blame", "--address", "HEAD~2.0", "--json").lines)
    assert record["since"][0]["operation"] == "edit"
    refused(repository("blame", "--address", "HEAD~1.0", "HEAD~2"), 4, "is not in the context")
    refused(repository("blame", "nowhere"), 4, "nowhere")


def test_what_is_said_has_room_on_a_terminal(ok: Run) -> None:
    said = "What stands here is to be seen on a terminal"
    session = "sessions/claude-code/70d782f7-b303-4e48-9512-6bec16c37abd"
    ok("switch", "-q", "-c", session)
    ok("commit", "--user", said, "-q")
    ok("edit", "HEAD.0", f"{said}.", "-q")
    head, line, _ = ok("blame", terminal=True).lines
    assert len(line) <= 100
    assert head.split() == ["address", "time", "author", "role", "since", "text"]
    assert f"user  edit   {said[:36]}" in line
    (line,) = ok("branch", "-v", terminal=True).lines
    assert session[:29] in line
    assert "  edit: " in line
    ok("commit", "--branch", "main", "--user", "elsewhere", "-q")
    ok("merge", "-q", "--allow-unrelated-histories", "main")
    head, *lines = ok("blame", terminal=True).lines
    assert "branch" in head
    assert [session[:15] in line for line in lines] == [True, False]
    assert session[:29] in ok("blame").text


def test_whohas(repository: Trace, ok: Run) -> None:
    ok("commit", "--user", "deploy on Friday", "-q")
    ok("update-ref", "refs/heads/other", "HEAD")
    ok("remove", "HEAD.0", "-q")
    lines = ok("whohas", "FRIDAY").lines
    assert "user: deploy on Friday" in lines[0]
    assert lines[1].split() == ["refs/heads/main", "removed"]
    assert lines[2].split() == ["refs/heads/other", "shown", "message", "0"]
    assert ok("whohas", "other.0").lines == lines
    blob = ok("ls-context", "other").lines[0].split()[-1]
    assert ok("whohas", blob[:12]).lines == lines
    assert ok("whohas", ok("rev-parse", "HEAD").text.strip()).lines == ["refs/heads/main"]
    (record,) = map(json.loads, ok("whohas", "Friday", "--json").lines)
    assert [each["state"] for each in record["refs"]] == ["removed", "shown"]
    refused(repository("whohas", "Sunday"), 4, "no ref contains 'Sunday'")
    refused(repository("whohas", "--text", blob), 4, "no ref contains")


def test_whohas_shows_what_it_found(ok: Run) -> None:
    ok("commit", "-q", "--user", "many words " * 40 + "and the Needle in it")
    first, hit, _ = ok("whohas", "needle").lines
    assert "Needle" not in first
    assert hit.endswith("and the Needle in it")


def test_refs_in_the_trash_are_counted(ok: Run) -> None:
    ok("commit", "--user", "Where is the trash?", "-q")
    ok("branch", "idea")
    ok("branch", "-d", "idea")
    commit = ok("rev-parse", "HEAD").text.strip()
    for what in ("the trash", commit):
        assert "refs/trash" not in ok("whohas", what).text.replace("refs in the trash", "")
        assert "and 1 ref in the trash" in ok("whohas", what).text
        assert "refs/trash/heads/idea" in ok("whohas", what, "--trash").text
        assert "refs/trash/heads/idea" in ok("whohas", what, "--json").text
