"""`trace status` for a branch and its upstream."""

from __future__ import annotations

import json

from tests.support.command_line import Run, Trace


def test_ahead_and_behind(ok: Run) -> None:
    ok("commit", "--user", "first", "-q")
    nothing = json.loads(ok("status", "--json").out)
    assert (nothing["upstream"], nothing["ahead"], nothing["behind"]) == (None, None, None)
    assert "upstream" not in ok("status").text
    ok("update-ref", "refs/heads/idea", "HEAD")
    ok("branch", "-q", "-u", "idea", "main")
    assert "upstream: idea, at the same commit" in ok("status").lines
    for text in ("second", "third"):
        ok("commit", "--user", text, "-q")
    assert "upstream: idea, ahead by 2 commits" in ok("status").lines
    ok("commit", "--user", "beside", "--branch", "idea", "-q")
    assert (
        "upstream: idea, ahead by 2 commits and behind by 1 commit; `trace merge` joins them"
        in ok("status").lines
    )
    said = json.loads(ok("status", "--json").out)
    assert (said["upstream"], said["ahead"], said["behind"]) == ("refs/heads/idea", 2, 1)
    ok("update-ref", "-d", "refs/heads/idea")
    assert "upstream: idea, without a commit" in ok("status").lines


def test_the_upstream_is_what_merge_and_rebase_mean(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "first", "-q")
    ok("switch", "-q", "-c", "idea")
    ok("commit", "--assistant", "beside", "-q")
    assert ok("merge").lines == ["nothing to merge: idea has no second tip and no upstream"]
    assert "`trace branch -u UPSTREAM` sets one" in _failed(repository, 4, "rebase")
    assert "idea has no upstream" in _failed(repository, 4, "rev-parse", "@{u}")
    ok("branch", "-q", "-u", "main")
    ok("commit", "--user", "second", "--branch", "main", "-q")
    for text in ("@{u}", "@{upstream}", "idea@{u}", "HEAD@{U}"):
        assert ok("rev-parse", text).text == ok("rev-parse", "main").text
    assert ok("rev-parse", "@{u}~1").text == ok("rev-parse", "HEAD~1").text
    assert ok("rebase", "--print-todo").lines[0].endswith("assistant: beside")
    ok("rebase", "-q")
    assert ok("rev-parse", "HEAD~1").text == ok("rev-parse", "main").text
    ok("reset", "-q", "--hard", "@{1}")
    ok("merge", "-q")
    assert ok("rev-parse", "HEAD^2").text == ok("rev-parse", "main").text
    assert "merge main" in ok("log", "-n", "1").text
    assert "no branch 'nope'" in _failed(repository, 4, "rev-parse", "nope@{u}")
    ok("switch", "-q", "--detach")
    assert "no branch '{u}'" in _failed(repository, 4, "rev-parse", "{u}@{u}")
    assert "HEAD is detached" in _failed(repository, 6, "rev-parse", "@{u}")


def test_what_is_staged_and_a_search_that_goes_on_are_told(ok: Run) -> None:
    for text in ("first", "second", "third"):
        ok("commit", "--user", text, "-q")
    nothing = json.loads(ok("status", "--json").out)
    assert (nothing["staged"], nothing["bisecting"]) == (None, False)
    tip = ok("rev-parse", "HEAD").text
    ok("reset", "-q", "HEAD~2")
    assert "staged: commits up to" in ok("status").text
    assert json.loads(ok("status", "--json").out)["staged"] == tip.strip()
    ok("commit", "--branch", "beside", "--user", "x", "-q")
    ok("commit", "--user", "between", "-q")
    assert "not on top of HEAD; `trace branch NAME staged/heads/main`" in ok("status").text
    ok("undo", "-q")
    ok("commit", "--staged", "-q")
    assert "staged" not in ok("status").text
    ok("bisect", "start", "HEAD", "HEAD~1")
    assert "bisecting: `trace bisect log`" in ok("status").text
    assert json.loads(ok("status", "--json").out)["bisecting"] is True
    ok("bisect", "reset")
    assert "bisecting" not in ok("status").text


def test_what_is_on_the_branch_again_is_not_staged(ok: Run, repository: Trace) -> None:
    for text in ("first", "second", "third"):
        ok("commit", "--user", text, "-q")
    ok("reset", "-q", "HEAD~1")
    ok("reset", "-q", "--hard", "ORIG_HEAD")
    for _ in range(2):
        assert "staged" not in ok("status").text
        assert json.loads(ok("status", "--json").out)["staged"] is None
        assert "nothing is staged" in _failed(repository, 6, "commit", "--staged")
        ok("commit", "--user", "further", "-q")
    tip = ok("rev-parse", "HEAD").text.strip()
    ok("reset", "-q", "HEAD~1")
    assert json.loads(ok("status", "--json").out)["staged"] == tip
    assert "refs/trash/staged" not in ok("for-each-ref").text


def test_an_empty_revision_is_refused(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "first", "-q")
    for command, what in (("merge", "REVISION"), ("rebase", "UPSTREAM")):
        assert f"{what} is empty" in _failed(repository, 2, command, "")
    _failed(repository, 2, "cherry-pick", "")
    _failed(repository, 2, "revert", "")


def _failed(trace: Trace, code: int, *arguments: str) -> str:
    """Return the error output of a failing command."""
    outcome = trace(*arguments)
    assert outcome.code == code
    return outcome.err
