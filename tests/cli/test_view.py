"""`trace view`, the pager, and pages over several sessions."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from trace_cli.porcelain.demo import SAMPLE

CODE = "import sys; from trace_cli.main import main; sys.exit(main(sys.argv[1:]))"


def on_a_terminal(*words: str, **variables: str) -> tuple[str, int]:
    """Run a command on a terminal; return its output and its exit code."""
    ours, theirs = pty.openpty()
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "TERM": "xterm", **variables}
    run = subprocess.Popen([sys.executable, "-c", CODE, *words], stdout=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(ours)
    return shown.decode(), run.wait()


@pytest.fixture
def session(ok: Run) -> Run:
    ok("import", "-q", str(SAMPLE))
    return ok


def test_a_session_is_read_with_folded_results(session: Run) -> None:
    lines = session("view", "89c6").lines
    assert any(line.startswith("folder:") for line in lines)
    assert sum("… " in line and "`trace show" in line for line in lines) > 2
    assert not any("`trace show" in line for line in session("view", "--full").lines)
    address = session("log", "-n", "1").lines[0].split()[0] + ".0"
    assert session("view", address).lines[3].startswith(address)


def test_a_message_is_shown_in_the_session_that_has_it(session: Run) -> None:
    hit = json.loads(session("search", "--json", "-n", "1", "tabs").lines[0])
    session("switch", "--orphan", "empty")
    session("commit", "--user", "elsewhere")
    lines = session("view", hit["address"]).lines
    assert lines[1] == f"branch:   {hit['ref'].removeprefix('refs/heads/')}"
    assert lines[3].startswith(hit["address"][:12])


def test_a_title_names_a_session(session: Run) -> None:
    session("sessions", "rename", "89c6", "Word counts")
    shown = session("view", "89c6").lines
    for name in ("Word counts", "word cou"):
        assert session("view", name).lines == shown
    assert session("export", "Word counts", "-f", "markdown").out


def test_what_is_hidden_is_counted(session: Run) -> None:
    session("remove", "HEAD.0")
    count = json.loads(session("sessions", "--json").lines[0])["message_count"]
    assert f" {count}/{count + 1} " in session("sessions").text
    assert "; 1 more that the model is not shown (--hidden shows them)" in session("view").text


def test_what_is_not_there_is_said(repository: Trace, session: Run) -> None:
    assert repository("view", "nowhere").code == 4


def test_a_pager_shows_what_a_terminal_gets(session: Run) -> None:
    for command in (["log"], ["show", "HEAD"], ["diff", "HEAD~1"], ["compile"], ["view"]):
        shown, code = on_a_terminal(*command, TRACE_PAGER="sed s/^/P:/")
        assert shown.startswith("P:"), command
        assert code == 0
    assert not on_a_terminal("--no-pager", "log", TRACE_PAGER="sed s/^/P:/")[0].startswith("P:")
    assert not on_a_terminal("log", TRACE_PAGER="")[0].startswith("P:")
    assert on_a_terminal("log", TRACE_PAGER="no-such-program")[1] == 0


def test_the_pager_of_git_is_used(session: Run, tmp_path: Path) -> None:
    """Only the user's own: the one of a work tree may come from a stranger."""
    (tmp_path / ".gitconfig").write_text('[core]\n\tpager = "sed s/^/G:/"\n')
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "none"), "PAGER": "cat"}
    assert on_a_terminal("log", **home)[0].startswith("G:")
    assert not on_a_terminal("log", **home, GIT_PAGER="cat")[0].startswith("G:")
    (tmp_path / ".gitconfig").rename(tmp_path / "config")
    (tmp_path / ".git").mkdir()
    (tmp_path / "config").rename(tmp_path / ".git" / "config")
    assert not on_a_terminal("log", **home)[0].startswith("G:")


def test_who_closes_the_pager_early_meets_no_error(session: Run) -> None:
    shown, code = on_a_terminal("compile", TRACE_PAGER="head -n 1")
    assert code == 0
    assert "error" not in shown


def test_pages_over_several_sessions(session: Run, tmp_path: Path) -> None:
    session("switch", "-c", "other")
    assert session("export", "--html", "pages").text == "pages/index.html: 2 sessions\n"
    page = (tmp_path / "pages/index.html").read_text(encoding="utf-8")
    assert page.count("<section") == 2
    assert "The word counts are wrong" in page
    session("export", "--html", "pages")  # its own pages are replaced
    (tmp_path / "pages/index.html").write_text("mine", encoding="utf-8")


def test_no_other_file_is_overwritten(repository: Trace, session: object, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.html").write_text("mine", encoding="utf-8")
    assert repository("export", "--html", "pages").code == 5
    assert (tmp_path / "pages/index.html").read_text(encoding="utf-8") == "mine"
