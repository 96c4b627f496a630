"""Branches, tags, reset, undo and the reflog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run, Trace


@pytest.fixture
def line(ok: Run) -> Run:
    """Four commits on main."""
    for number in range(4):
        ok("commit", "-q", "--user", f"m{number}")
    return ok


def at(ok: Run, revision: str = "HEAD") -> str:
    return ok("rev-parse", revision).text.strip()


def texts(ok: Run) -> list[str]:
    messages = json.loads(ok("compile", "--format", "openai").text)["messages"]
    return [message["content"] for message in messages]


def branches(ok: Run) -> dict[str, dict[str, Any]]:
    found = [json.loads(each) for each in ok("branch", "--json").lines]
    return {each["name"]: each for each in found}


class TestBranch:
    def test_make_list_rename_delete(self, line: Run) -> None:
        line("branch", "idea", "HEAD~2")
        assert branches(line)["idea"]["commit"] == at(line, "HEAD~2")
        assert [name for name, each in branches(line).items() if each["current"]] == ["main"]
        line("branch", "-m", "idea", "plan")
        assert set(branches(line)) == {"main", "plan"}
        told = line("branch", "-d", "plan").text
        assert "trash/heads/plan/" in told
        assert set(branches(line)) == {"main"}
        kept = told.split("kept as ")[1].split(";")[0]
        assert at(line, kept) == at(line, "HEAD~2")

    def test_renaming_over_another_branch(self, line: Run, repository: Trace) -> None:
        line("branch", "idea", "HEAD~1")
        taken, tip = at(line, "idea"), at(line)
        outcome = repository("branch", "-m", "main", "idea")
        assert (outcome.code, "`branch -M`" in outcome.err) == (5, True)
        line("branch", "-M", "main", "idea")
        assert (at(line), at(line, f"trash/heads/idea/{taken[:12]}")) == (tip, taken)
        line("branch", "-q", "other", "HEAD~1")
        outcome = repository("branch", "-M", "other", "idea")
        assert (outcome.code, at(line)) == (6, tip)
        assert "HEAD is on idea" in outcome.err

    def test_renaming_the_branch_at_hand_takes_head_along(self, line: Run) -> None:
        before = at(line)
        line("branch", "-m", "trunk")
        assert line("branch", "--show-current").text == "trunk\n"
        assert at(line) == before

    def test_a_branch_without_a_commit_is_renamed(self, ok: Run) -> None:
        ok("branch", "-m", "trunk")
        assert ok("branch", "--show-current").text == "trunk\n"
        ok("commit", "-q", "--user", "x")
        assert set(branches(ok)) == {"trunk"}

    def test_the_reflog_follows_a_new_name(self, line: Run) -> None:
        before = [row.split("  ", 3)[-1] for row in line("reflog", "main").lines]
        tip, earlier = at(line), at(line, "main@{1}")
        line("branch", "-m", "main", "trunk")
        line("branch", "-m", "trunk", "stem")
        rows = line("reflog", "stem").lines
        assert len(rows) == len(before) + 2
        assert "renamed refs/heads/trunk to refs/heads/stem" in rows[0]
        assert "renamed refs/heads/main to refs/heads/trunk" in rows[1]
        assert (at(line, "stem@{2}"), at(line, "stem@{3}")) == (tip, earlier)
        line("commit", "-q", "--user", "more")
        blamed = [json.loads(row)["branch"] for row in line("blame", "--json").lines]
        assert set(blamed) == {"refs/heads/stem"}
        line("branch", "main", "HEAD~1")
        assert len(line("reflog", "stem").lines) == len(before) + 3
        for _ in range(4):
            line("undo")
        assert (set(branches(line)), at(line)) == ({"main"}, tip)

    def test_undo_brings_the_upstream_of_a_deleted_branch_back(self, line: Run) -> None:
        line("branch", "idea")
        line("branch", "-u", "main", "idea")
        line("branch", "-d", "idea")
        line("undo")
        assert branches(line)["idea"]["upstream"] == "refs/heads/main"
        line("redo")
        line("branch", "idea")
        assert branches(line)["idea"]["upstream"] is None
        line("undo")
        line("undo")
        assert branches(line)["idea"]["upstream"] == "refs/heads/main"

    def test_ahead_and_behind(self, line: Run) -> None:
        line("switch", "-q", "-c", "idea", "HEAD~1")
        line("commit", "-q", "--user", "a")
        line("commit", "-q", "--user", "b")
        line("branch", "-u", "main")
        idea = branches(line)["idea"]
        assert (idea["upstream"], idea["ahead"], idea["behind"]) == ("refs/heads/main", 2, 1)
        assert "[main: ahead 2, behind 1]" in line("branch").text
        line("branch", "-m", "main", "trunk")
        assert "[trunk: ahead 2, behind 1]" in line("branch").text
        line("branch", "-d", "trunk")
        assert "[trunk: gone]" in line("branch").text
        line("branch", "--unset-upstream")
        assert branches(line)["idea"]["upstream"] is None

    def test_patterns(self, line: Run) -> None:
        for name in ("feature/a", "feature/b"):
            line("branch", "-q", name)
        listed = line("branch", "--list", "feature/*", "--json").lines
        assert [json.loads(each)["name"] for each in listed] == ["feature/a", "feature/b"]

    def test_forced_to_another_commit_the_old_one_is_kept(self, line: Run) -> None:
        line("branch", "-q", "idea")
        kept = json.loads(line("branch", "-f", "idea", "HEAD~3", "--json").text)["kept"]
        assert at(line, kept) == at(line, "HEAD")
        assert at(line, "idea") == at(line, "HEAD~3")


class TestSwitch:
    def test_there_and_back(self, line: Run) -> None:
        line("switch", "-c", "idea", "HEAD~1")
        line("commit", "-q", "--user", "else")
        assert texts(line) == ["m0", "m1", "m2", "else"]
        line("switch", "main")
        assert texts(line) == ["m0", "m1", "m2", "m3"]
        line("switch", "-")
        assert line("branch", "--show-current").text == "idea\n"

    def test_to_a_session_by_the_beginning_of_its_id(self, line: Run) -> None:
        line("update-ref", "refs/heads/sessions/codex/0199-ab", "HEAD~1")
        line("switch", "0199")
        assert line("branch", "--show-current").text == "sessions/codex/0199-ab\n"

    def test_a_commit_without_a_branch(self, line: Run) -> None:
        outcome = line("checkout", "HEAD~2")
        assert "HEAD is detached at" in outcome.text
        assert "trace switch -c NAME" in outcome.err
        assert texts(line) == ["m0", "m1"]
        line("switch", "-")
        assert line("branch", "--show-current").text == "main\n"

    def test_to_where_head_is(self, line: Run) -> None:
        assert line("checkout", "HEAD").lines == ["already on branch main"]
        line("checkout", "HEAD~2")
        there = at(line)
        assert "HEAD is detached at" in line("checkout", "HEAD").text
        assert at(line) == there

    def test_a_branch_that_there_is_begins_elsewhere(self, line: Run) -> None:
        line("branch", "other", "HEAD~2")
        tip = at(line)
        assert line("switch", "-C", "other").lines[0] == f"on branch other, reset to {tip[:12]}"
        record = json.loads(line("switch", "-C", "other", "HEAD~1", "--json").text)
        assert (record["created"], record["reset"]) == (False, True)
        assert record["commit"] == at(line, "main~1")
        record = json.loads(line("switch", "-C", "third", "--json").text)
        assert (record["created"], record["reset"]) == (True, False)

    def test_what_a_branch_stood_for_is_kept_when_it_begins_elsewhere(self, line: Run) -> None:
        line("branch", "other", "HEAD~2")
        taken = at(line, "other")
        kept = f"trash/heads/other/{taken[:12]}"
        assert line("switch", "-C", "other").lines[1] == f"the old tip is kept as {kept}"
        assert at(line, kept) == taken

    def test_to_one_that_was_left_before(self, line: Run, repository: Trace) -> None:
        for name in ("a", "b"):
            line("switch", "-q", "-c", name)
        line("switch", "-q", "@{-2}")
        assert line("branch", "--show-current").text == "main\n"
        assert line("checkout", "-q", "--detach").code == 0
        assert "HEAD detached" in line("status").text
        assert "--detach detaches HEAD there" in repository("switch", "main~1").err
        assert "-c creates a branch" in repository("switch", "nope").err

    def test_what_was_committed_without_a_branch_is_kept(self, line: Run) -> None:
        line("switch", "--detach", "HEAD~2")
        line("commit", "-q", "--user", "alone")
        alone = at(line)
        line("switch", "main")
        assert at(line, f"trash/HEAD/{alone[:12]}") == alone
        line("switch", "-")
        assert at(line) == alone

    def test_what_a_branch_has_is_not_said_to_be_on_none(self, line: Run) -> None:
        line("switch", "--detach")
        line("reset", "HEAD~1")
        assert line("switch", "main").lines[1:] == []
        line("tag", "v1", "main", "-m", "An annotated one also leads there.")
        line("switch", "-q", "-c", "other", "HEAD~3")
        line("branch", "-d", "-q", "main")
        line("switch", "--detach", "v1")
        line("reset", "HEAD~2")
        assert "no branch has" not in line("switch", "other").text
        assert "refs/trash/HEAD" not in line("for-each-ref").text

    def test_a_branch_whose_commit_is_not_here_keeps_nothing(self, line: Run) -> None:
        line("switch", "--detach", "HEAD~1")
        line("commit", "-q", "--user", "alone")
        alone = at(line)
        lost = Path(".trace/refs/heads/lost", "ab" * 32)
        lost.parent.mkdir(parents=True)
        lost.touch()
        line("switch", "main")
        assert at(line, f"trash/HEAD/{alone[:12]}") == alone

    def test_unborn(self, ok: Run) -> None:
        ok("switch", "-c", "idea")
        ok("commit", "-q", "--user", "x")
        assert set(branches(ok)) == {"idea"}
        ok("switch", "--orphan", "other")
        ok("commit", "-q", "--user", "y")
        assert texts(ok) == ["y"]


class TestReset:
    @pytest.mark.parametrize(("flag", "place"), [("--hard", "trash"), ("--soft", "staged")])
    def test_what_was_after_is_kept(self, line: Run, flag: str, place: str) -> None:
        before = at(line)
        kept = json.loads(line("reset", flag, "HEAD~2", "--json").text)
        assert kept["count"] == 2
        assert kept["kept"].startswith(f"refs/{place}/heads/main")
        assert at(line, kept["kept"]) == at(line, "ORIG_HEAD") == at(line, "HEAD@{1}") == before
        assert texts(line) == ["m0", "m1"]
        line("reset", "--hard", "ORIG_HEAD")
        assert at(line) == before

    def test_two_soft_steps_are_one(self, line: Run) -> None:
        before = at(line)
        line("reset", "HEAD~1")
        line("reset", "HEAD~1")
        assert at(line, "staged/heads/main") == before

    def test_detached(self, line: Run) -> None:
        main = at(line)
        line("switch", "--detach")
        line("reset", "--hard", "HEAD~3")
        assert texts(line) == ["m0"]
        assert at(line, "main") == at(line, "ORIG_HEAD") == main


class TestTag:
    def test_light_and_annotated(self, line: Run) -> None:
        line("tag", "v1", "HEAD~1")
        line("tag", "-a", "v2", "-m", "Sent to Bob.")
        one, two = (json.loads(each) for each in line("tag", "--json").lines)
        assert (one["name"], one["annotated"], one["target"]) == ("v1", False, at(line, "HEAD~1"))
        assert (two["author"], two["message"], two["target"]) == ("Ada", "Sent to Bob.", at(line))
        assert at(line, "v2^{commit}") == at(line)
        assert "Sent to Bob." in line("tag").text

    def test_delete_and_force(self, line: Run) -> None:
        line("tag", "v1", "HEAD~1")
        line("tag", "-f", "v1")
        assert at(line, "v1") == at(line)
        assert at(line, f"trash/tags/v1/{at(line, 'HEAD~1')[:12]}") == at(line, "HEAD~1")
        line("tag", "-d", "v1")
        assert line("tag").text == ""


class TestReflog:
    def test_lists_newest_first(self, line: Run) -> None:
        line("reset", "--hard", "HEAD~1")
        entries = [json.loads(each) for each in line("reflog", "--json").lines]
        assert [each["number"] for each in entries] == list(range(5))
        assert entries[0]["message"] == "reset: moving to HEAD~1"
        assert entries[0]["commit"] == at(line)
        assert len(line("reflog", "main", "-n", "2").lines) == 2

    def test_what_a_commit_did_is_said_where_nobody_said_more(self, line: Run) -> None:
        line("pin", "-q", "HEAD.0")
        at_pin = at(line)
        line("commit", "-q", "--user", "named", "-m", "why")
        rows = [row.split("  ", 2)[2] for row in line("reflog", "-n", "2").lines]
        assert rows[0] == "HEAD@{0}: commit: why"
        assert rows[1].startswith("HEAD@{1}: commit: pinned: ")
        line("undo")
        undone = line("undo").lines
        assert undone[0].startswith("undone: commit: pinned: ")
        assert undone[1:2] == [f"    refs/heads/main: {at_pin[:12]} -> {at(line)[:12]}"]
        assert "undo: commit: pinned: " in line("reflog", "-n", "1").text

    def test_of_a_branch_that_is_gone(self, line: Run) -> None:
        line("branch", "idea")
        line("branch", "-d", "idea")
        assert "branch: deleted idea" in line("reflog", "idea").text


class TestUndo:
    def test_each_command_and_back(self, line: Run) -> None:
        def state() -> tuple[str, ...]:
            refs = [r for r in line("for-each-ref").lines if "refs/trash" not in r]
            return (line("branch", "--show-current").text, at(line), *refs)

        line("switch", "-q", "-c", "idea", "HEAD~1")
        steps = [
            ["commit", "-q", "--user", "x"],
            ["pin", "HEAD.0", "-q"],
            ["branch", "other"],
            ["branch", "-f", "other", "HEAD~2"],
            ["branch", "-d", "other"],
            ["branch", "-m", "plan"],
            ["tag", "v1"],
            ["tag", "-f", "v1", "HEAD~1"],
            ["tag", "-d", "v1"],
            ["reset", "HEAD~1"],
            ["reset", "--hard", "HEAD~1"],
            ["switch", "main"],
            ["switch", "-c", "new"],
            ["switch", "--detach", "HEAD~1"],
            ["commit", "-q", "--user", "alone"],
            ["commit", "-q", "--user", "alone"],
            ["reset", "--hard", "HEAD~1"],
            ["switch", "main"],
        ]
        states = [state()]
        for words in steps:
            line(*words)
            states.append(state())
        for words, before in zip(reversed(steps), reversed(states[:-1]), strict=True):
            line("undo")
            assert state() == before, words
        for words, after in zip(steps, states[1:], strict=True):
            line("redo")
            assert state() == after, words

    def test_a_merge_is_taken_back(self, line: Run) -> None:
        line("switch", "-q", "-c", "idea", "HEAD~1")
        line("commit", "-q", "--user", "else")
        line("switch", "-q", "main")
        before = texts(line)
        line("merge", "idea")
        assert texts(line) != before
        merge = at(line)
        line("revert", "HEAD")
        assert texts(line) == before
        line("undo")
        assert at(line) == merge
        line("undo")
        assert (texts(line), at(line, "ORIG_HEAD")) == (before, merge)

    def test_redo_is_over_once_something_else_was_done(self, line: Run) -> None:
        line("undo")
        line("commit", "-q", "--user", "else")
        outcome = line("undo")
        assert "undone: commit" in outcome.text
        assert texts(line) == ["m0", "m1", "m2"]
        line("undo")
        assert texts(line) == ["m0", "m1"]

    def test_dry_run_changes_nothing(self, line: Run) -> None:
        before = at(line)
        assert "would be undone: commit" in line("undo", "-n").text
        assert at(line) == before


class TestBadInput:
    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (["switch", "nothing"], 4, "no branch 'nothing'"),
            (["switch", "v1"], 4, "no branch 'v1'"),
            (["switch", "-"], 4, "no previous branch"),
            (["switch", "-c", "idea"], 5, "branch idea already exists"),
            (["switch", "-c", "a b"], 2, "invalid ref name"),
            (["switch", "-c", "new", "nothing"], 4, "no revision 'nothing'"),
            (["switch"], 2, "no branch is named"),
            (["checkout", "nothing"], 4, "no revision 'nothing'"),
            (["branch", "idea"], 5, "branch idea already exists"),
            (["branch", "ORIG_HEAD"], 2, "not a valid branch name"),
            (["branch", "HEAD"], 2, "not a valid branch name"),
            (["branch", "-d", "main"], 6, "HEAD is on main"),
            (["branch", "-d", "idea", "nothing"], 4, "no branch 'nothing'"),
            (["branch", "-m", "idea", "main"], 5, "branch main already exists"),
            (["branch", "-f", "main", "HEAD~1"], 6, "HEAD is on main"),
            (["branch", "-u", "nothing"], 4, "no branch 'nothing'"),
            (["branch", "-u", "main"], 2, "its own upstream"),
            (["branch", "-d", "idea", "-m"], 2, "exclude each other"),
            (["tag", "v1"], 5, "tag v1 already exists"),
            (["tag", "-d", "nothing"], 4, "no tag 'nothing'"),
            (["tag", "HEAD"], 2, "not a valid tag name"),
            (["tag", "-a", "v2"], 2, "an annotated tag needs a message"),
            (["reset", "nothing"], 4, "no revision 'nothing'"),
            (["reset", "--soft", "--hard"], 2, "exclude each other"),
            (["redo"], 6, "nothing to redo"),
            (["reflog", "nothing"], 4, "no reflog for 'nothing'"),
            (["rev-parse", "ORIG_HEAD"], 4, "ORIG_HEAD is not set"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_said_in_one_line(
        self, line: Run, repository: Trace, words: list[str], code: int, said: str
    ) -> None:
        line("branch", "-q", "idea", "HEAD~1")
        line("tag", "-q", "v1", "HEAD~2")
        before = line("for-each-ref").text
        outcome = repository(*words)
        assert (outcome.code, outcome.out) == (code, b"")
        assert said in outcome.err.splitlines()[0]
        assert line("for-each-ref").text == before

    def test_several_sessions_begin_so(self, line: Run, repository: Trace) -> None:
        for name in ("sessions/codex/0199-ab", "sessions/gemini-cli/0199-cd"):
            line("branch", "-q", name)
        outcome = repository("switch", "0199")
        assert outcome.code == 2
        assert "several sessions start with 0199" in outcome.err

    def test_unborn(self, repository: Trace) -> None:
        for words in (["branch", "idea"], ["tag", "v1"], ["reset", "HEAD~1"], ["switch", "-d"]):
            outcome = repository(*words)
            assert outcome.code == 6, words
            assert "has no commit yet" in outcome.err
        assert repository("undo").code == 6
        assert repository("branch").code == 0

    def test_detached(self, line: Run, repository: Trace) -> None:
        line("switch", "--detach")
        for words in (["branch", "-m", "trunk"], ["branch", "-u", "main"]):
            outcome = repository(*words)
            assert outcome.code == 6, words
            assert "HEAD is detached" in outcome.err

    def test_while_a_merge_waits(self, line: Run, repository: Trace) -> None:
        line("switch", "-q", "-c", "idea", "HEAD~1")
        line("edit", "-q", "HEAD~1.0", "one way")
        line("switch", "-q", "main")
        line("edit", "-q", "HEAD~2.0", "another")
        assert repository("merge", "idea").code == 3
        before = line("for-each-ref").text
        for words in (
            *(["reset", "--hard", "HEAD~1"], ["revert", "HEAD"], ["commit", "--staged"]),
            *(["branch", "-m", "trunk"], ["undo"], ["branch", "-f", "main", "idea"]),
            *(["branch", "-m", "HEAD", "trunk"], ["branch", "-M", "idea", "main"]),
        ):
            outcome = repository(*words)
            assert outcome.code == 6, words
            assert "is in progress" in outcome.err
        assert line("for-each-ref").text == before
        line("switch", "-q", "idea")  # the stopped merge stays with its branch
        line("commit", "-q", "--user", "more")
        line("undo")
        assert repository("merge", "--continue").code == 3
        line("merge", "--abort")
        line("switch", "-q", "main")
        line("undo")

    def test_a_ref_that_moved_since(self, line: Run, repository: Trace, tmp_path: Path) -> None:
        line("branch", "idea")
        line("seal")
        tips = tmp_path / ".trace" / "refs" / "heads" / "idea"
        (tip,) = tips.iterdir()
        tip.rename(tips / at(line, "HEAD~1"))
        outcome = repository("undo")
        assert outcome.code == 6
        assert "refs/heads/idea has moved since" in outcome.err


def test_c15_the_grammar_of_steps_back(line: Run) -> None:
    """Trap C15: HEAD~n, @ and ORIG_HEAD, with suffixes."""
    commits = line("rev-list", "HEAD").lines
    line("reset", "--hard", "HEAD~1")
    assert [at(line, text) for text in ("ORIG_HEAD", "HEAD@{1}", "main@{1}")] == [commits[0]] * 3
    assert [at(line, text) for text in ("@", "HEAD", "ORIG_HEAD~1", "ORIG_HEAD^")] == (
        [commits[1]] * 4
    )
    assert [at(line, f"HEAD~{n}") for n in range(3)] == commits[1:]
    assert at(line, "ORIG_HEAD.0") == f"{commits[0][:32]}.0"
    assert (
        line("log", "--json", "HEAD..ORIG_HEAD").lines[0].startswith(f'{{"commit": "{commits[0]}')
    )
    line("undo")
    assert at(line, "ORIG_HEAD") == commits[1]


def test_c13_what_was_given_up_outlives_collecting_with_age_0(line: Run) -> None:
    """Trap C13: ORIG_HEAD, tags, staged commits, the trash, and all reflog entries."""
    line("tag", "v1", "HEAD~1")
    line("tag", "-m", "Sent.", "v2")
    line("switch", "-c", "idea")
    line("commit", "-q", "--user", "given up")
    line("switch", "main")
    line("branch", "-D", "idea")
    line("reset", "--soft", "HEAD~1")
    line("switch", "--detach", "HEAD~1")
    line("commit", "-q", "--user", "alone")
    line("reset", "--hard", "HEAD~1")
    line("switch", "main")
    line("commit", "-q", "--user", "else")
    line("undo")
    names = ["HEAD", "ORIG_HEAD", "v1", "v2^{commit}", "staged/heads/main"]
    names += [each.split("\t")[1] for each in line("for-each-ref").lines]
    logs = [json.loads(each)["commit"] for each in line("reflog", "--json").lines]
    before = {name: at(line, name) for name in names}
    line("gc", "--grace", "0")
    line("prune", "--now")
    line("gc", "--grace", "0")
    assert {name: at(line, name) for name in names} == before
    for oid in (*before.values(), *filter(None, logs)):
        assert line("cat-file", "-t", oid).text in ("commit\n", "tag\n")
    assert "no problems found" in line("fsck").err
