"""`trace merge`, `rebase` and `cherry-pick`: output, exit codes, and resolution in an editor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Run, Trace, record
from trace_cli.porcelain.editor import marked
from trace_store.base.environment import Environment


@pytest.fixture
def apart(ok: Run) -> Run:
    """Two branches that edited the same message; HEAD is on main."""
    ok("commit", "--user", "a\nb\nc", "-q")
    ok("update-ref", "refs/heads/side", "HEAD")
    ok("edit", "HEAD.0", "a\nmine\nc", "-q")
    ok("symbolic-ref", "HEAD", "refs/heads/side")
    ok("edit", "HEAD.0", "a\nyours\nc", "-q")
    ok("symbolic-ref", "HEAD", "refs/heads/main")
    return ok


def test_a_conflict_from_beginning_to_end(apart: Run, trace: Trace) -> None:
    stopped = trace("merge", "side")
    assert stopped.code == 3
    assert "1  both-edited" in stopped.text
    assert "hint: `trace resolve NUMBER --ours | --theirs | --both | TEXT`" in stopped.err
    assert "`trace merge --continue`, or --abort" in stopped.err
    again = trace("merge", "side")
    assert (again.code, "a merge of side into main is in progress" in again.err) == (6, True)
    assert trace("resolve", "1", "--ours", "--theirs").code == 2
    meanwhile = trace("commit", "--user", "meanwhile")
    assert "note: a merge of side into main is in progress" in meanwhile.err
    assert "all conflicts are resolved" in apart("resolve", "1", "in the middle").text
    said = apart("merge", "--continue").text
    assert "merged: 0 new messages, 1 changed, 1 conflict resolved" in said
    assert "in the middle" in apart("compile").text
    assert "already up to date" in apart("merge", "side").text
    assert "nothing to merge" in apart("merge").text
    assert trace("merge", "--continue").code == 6


def test_a_branch_with_a_stopped_merge_is_not_deleted(apart: Run, trace: Trace) -> None:
    trace("merge", "side", "-q")
    apart("switch", "side", "-q")
    refused = trace("branch", "-d", "main")
    assert (refused.code, "a merge of side into main is in progress" in refused.err) == (6, True)
    assert "`trace switch main`, then `trace merge --abort` cancels it; -d -f" in refused.err
    assert "deleted branch main" in apart("branch", "-d", "-f", "main").text


def test_whoever_writes_while_something_waits_is_told(apart: Run, trace: Trace) -> None:
    def said(*words: str) -> str:
        return trace(*words).err

    assert json.loads(apart("status", "--json").text)["waiting"] is None
    assert "waiting" not in apart("status").text
    trace("merge", "side", "-q")
    waits = {"kind": "merge", "ref": "refs/heads/main"}
    note = "note: a merge of side into main is in progress"
    assert note in said("commit", "--user", "meanwhile")
    assert note in said("edit", "HEAD.0", "in the meantime")
    assert note in said("pin", "HEAD~1.0")
    assert note in said("move", "HEAD~2.0", "--first")
    assert note not in said("commit", "--user", "quietly", "-q")
    assert json.loads(apart("label", "HEAD.0", "-a", "x", "--json").text)["waiting"] == waits
    assert json.loads(apart("status", "--json").text)["waiting"] == waits
    told = apart("status").text
    assert "waiting: a merge of side into main is in progress" in told
    assert "`trace merge --continue`" in told
    assert "in progress" not in said("branch", "another")
    assert "in progress" not in said("commit", "--user", "elsewhere", "--branch", "another")
    apart("resolve", "1", "--theirs")
    apart("merge", "--continue")
    assert json.loads(apart("status", "--json").text)["waiting"] is None


def test_what_is_committed_while_a_rebase_waits_is_made_anew_too(apart: Run, trace: Trace) -> None:
    assert trace("rebase", "side").code == 3
    assert "`trace rebase --continue` continues from it" in trace("commit", "--user", "late").err
    assert "both-edited" in apart("resolve").text
    apart("resolve", "1", "--theirs")
    assert "2 commits reapplied" in apart("rebase", "--continue").text
    assert apart("log", "--oneline").text.count("late") == 1
    assert apart("compile", "--format", "text").text.rstrip().endswith("late")


def test_a_rebase_whose_branch_went_elsewhere_is_only_given_up(apart: Run, trace: Trace) -> None:
    assert trace("rebase", "side").code == 3
    apart("update-ref", "refs/heads/main", "side")
    for words in (["resolve"], ["rebase", "--continue"]):
        assert "no longer contains the tip that is being rebased" in trace(*words).err
    apart("rebase", "--abort")


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["resolve", "1", "--ours"], "mine"),
        (["resolve", "1", "--theirs"], "a b c"),
        (["resolve", "1", "a third way"], "a third way"),
        ([], "mine"),
    ],
    ids=["ours", "theirs", "text", "skip"],
)
def test_a_revert_stops_is_settled_and_goes_on(
    ok: Run, trace: Trace, words: list[str], after: str
) -> None:
    ok("commit", "--user", "a b c")
    ok("edit", "HEAD.0", "b c", "-q")
    ok("edit", "HEAD~1.0", "mine", "-q")
    ok("commit", "--user", "more", "-q")
    ok("tag", "before")
    stopped = trace("revert", "HEAD", "HEAD~2")
    assert stopped.code == 3
    assert "1  both-edited" in stopped.text
    assert "theirs  user: a b c" in stopped.text
    assert "`trace revert --continue`" in stopped.err
    assert ok("rev-parse", "HEAD").text == ok("rev-parse", "before").text
    assert "a revert on main is in progress" in trace("reset", "HEAD~1").err
    assert "no merge is in progress, but a revert is" in trace("merge", "--continue").err
    assert trace("revert", "--continue").code == 3
    if words:
        assert "`trace revert --continue`" in ok(*words).text
        done = ok("revert", "--continue").text
    else:
        done = ok("revert", "--skip").text
    assert "reverts" in done
    assert ok("compile", "--format", "text").text.split("\n")[1] == after
    assert "more" not in ok("compile", "--format", "text").text
    ok("undo")
    assert ok("rev-parse", "HEAD").text == ok("rev-parse", "before").text


def test_a_revert_is_given_up_and_nothing_has_changed(
    ok: Run, trace: Trace, tmp_path: Path
) -> None:
    ok("commit", "--assistant", "first")
    ok("edit", "HEAD.0", "second", "-q")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and "refs" in p.parts}
    [record] = [json.loads(x) for x in trace("revert", "HEAD~1", "--json").text.splitlines()]
    assert (record["outcome"], record["ref"]) == ("stopped", "refs/heads/main")
    assert record["conflicts"][0]["kind"] == "edited-and-removed"
    assert record["conflicts"][0]["theirs"][0]["hidden"] == "removed"
    assert "theirs  [removed] assistant: second" in ok("resolve").text
    assert trace("revert").code == 2
    assert trace("revert", "HEAD", "--abort").code == 2
    assert "revert aborted" in ok("revert", "--abort").text
    assert {p: p.read_bytes() for p in before} == before
    ok("revert", "HEAD~1", "-X", "theirs")
    assert ok("compile", "--format", "text").text.strip() == ""


def test_a_revert_on_a_detached_head(ok: Run, trace: Trace) -> None:
    ok("commit", "--user", "a")
    ok("edit", "HEAD.0", "b", "-q")
    ok("edit", "HEAD~1.0", "c", "-q")
    ok("checkout", "--detach", "HEAD", "-q")
    assert trace("revert", "HEAD~1").code == 3
    ok("resolve", "--theirs")
    ok("revert", "--continue")
    assert "a" in ok("compile", "--format", "text").text
    ok("edit", "HEAD~3.0", "d", "-q")
    assert trace("revert", "HEAD~2").code == 3
    assert "in progress" in trace("switch", "main").err
    ok("symbolic-ref", "HEAD", "refs/heads/main")
    assert "no revert is in progress" in trace("revert", "--continue").err


@pytest.fixture
def rebased_twice(ok: Run) -> tuple[Run, str]:
    """A message carried through two rebases, and the commit that first added it."""
    ok("commit", "--user", "start", "-q")
    ok("tag", "start")
    born = ok("commit", "--user", "work to be found").text.split()[0]
    ok("edit", "HEAD.0", "work that was found", "-q")
    for name in ("one", "two"):
        ok("switch", "-q", "-c", name, "start")
        ok("commit", "-q", "--user", name)
        ok("tag", "-f", "start")
        ok("switch", "-q", "main")
        ok("rebase", "-q", name)
    return ok, born


def test_an_address_stays_through_two_rebases(rebased_twice: tuple[Run, str]) -> None:
    ok, born = rebased_twice
    assert ok("rev-parse", "HEAD~1").text.strip() != born
    shown = ok("show", f"{born}.0")
    assert (shown.err, "work that was found" in shown.text) == ("", True)
    address = f"{born[:32]}.0"
    for asked in (f"{born[:10]}.0", "HEAD~1.0"):
        assert json.loads(ok("show", asked, "--json").text)["address"] == address
    record = json.loads(ok("blame", "--address", f"{born}.0", "--json").text)
    assert record["address"] == address
    assert [deed["operation"] for deed in record["since"]] == ["edit"]
    followed = ok("log", "--follow", f"{born}.0", "--oneline")
    assert (followed.err, len(followed.text.splitlines())) == ("", 2)
    assert "heads/main" in ok("whohas", f"{born}.0").text
    assert ok("pin", f"{born}.0").err == ""


def test_a_message_is_found_where_the_commit_of_its_birth_is_not_here(
    rebased_twice: tuple[Run, str], trace: Trace, tmp_path: Path
) -> None:
    ok, born = rebased_twice
    ok("bundle", "create", "main.bundle", "main")
    (tmp_path / "elsewhere").mkdir()

    def there(*words: str) -> Outcome:
        return trace("-C", str(tmp_path / "elsewhere"), *words)

    there("init", "-q")
    assert there("bundle", "import", str(tmp_path / "main.bundle")).code == 0
    assert there("cat-file", "-t", born).code != 0
    assert "work" in there("show", f"{born[:12]}.0").text  # though HEAD has no commit yet
    there("switch", "-q", "main")
    for words in (["show"], ["blame", "--address"], ["log", "--follow"], ["whohas"]):
        found = there(*words, f"{born[:12]}.0")
        assert (found.err, "work" in found.text) == ("", True), words
    for words in (["pin", f"{born}.0"], ["edit", f"{born}.0", "work that is done"]):
        assert there(*words).code == 0, words
    assert "work that is done" in there("show", f"{born}.0").text
    assert there("show", "abcdefabcdef.0").code == 4


def test_a_log_of_all_follows_what_refs_have_and_not_the_trash(ok: Run) -> None:
    """An undone rebase leaves copies in the trash; a kept one the originals."""
    ok("commit", "--user", "base", "-q")
    ok("branch", "-q", "up")
    topic = ok("commit", "--user", "topic").text.split()[0]
    ok("switch", "-q", "up")
    ok("commit", "--user", "u", "-q")
    ok("switch", "-q", "main")
    ok("rebase", "-q", "up")
    ok("undo", "-q")
    ok("label", "-q", f"{topic}.0", "--add", "x")
    for head in ("main", "up"):
        ok("switch", "-q", head)
        found = ok("log", "--all", "--follow", f"{topic}.0")
        assert (found.text.count("\n"), "trash" in found.text, found.err) == (2, False, "")
        assert "+x" in found.text
    ok("pin", "-q", "HEAD.0")
    pinned = ok("log", "--all", "--priority", "pinned").text
    assert ("user: u" in pinned, "user: topic" in pinned) == (True, False)
    ok("switch", "-q", "main")
    ok("rebase", "-q", "up")
    for head in ("main", "up"):
        ok("switch", "-q", head)
        found = ok("log", "--all", "--follow", f"{topic}.0")
        assert ("trash" in found.text, found.text.count("\n"), found.err) == (False, 2, "")


def test_what_stands_on_another_branch_is_shown_as_it_is_there(ok: Run) -> None:
    ok("commit", "--user", "start", "-q")
    ok("switch", "-q", "-c", "side")
    made = ok("commit", "--user", "aside").text.split()[0]
    ok("switch", "-q", "main")
    found = ok("show", f"{made}.0")
    assert ("aside" in found.text, found.err) == (True, "")


def test_a_rebase_of_all_commits(ok: Run, trace: Trace) -> None:
    ok("commit", "--user", "a", "-q")
    ok("commit", "--user", "b", "-q")
    todo = ok("rebase", "--root", "--print-todo").lines
    assert [line.split()[0] for line in todo[:2]] == ["pick", "pick"]
    turned = "\n".join(reversed(todo[:2])).encode()
    assert "2 commits reapplied" in ok("rebase", "--root", "--todo", "-", stdin=turned).text
    assert ok("compile", "--format", "text").lines[1] == "b"
    assert trace("rebase", "--root", "HEAD~1").code == 2


def test_refusals(apart: Run, trace: Trace) -> None:
    for words, code, said in (
        (["merge", "side", "--ff-only"], 6, "without --ff-only a merge commit is created"),
        (["merge", "side", "--ff-only", "--no-ff"], 2, "exclude"),
        (["merge", "side", "--abort"], 2, "give one of"),
        (["merge", "nowhere"], 4, "no revision"),
        (["merge", "side", "-s", "octopus"], 2, "octopus"),
        (["merge", "--abort"], 6, "no merge is in progress"),
        (["resolve"], 6, "in progress"),
    ):
        found = trace(*words)
        assert (found.code, said in found.err) == (code, True), found.err


def test_settling_in_an_editor(apart: Run, trace: Trace, tmp_path: Path) -> None:
    trace("merge", "side", "-q")
    editor = tmp_path / "editor.sh"
    editor.write_text(
        '#!/bin/sh\ncp "$1" seen\nprintf "from the editor\\n" > "$1"\n', encoding="utf-8"
    )
    editor.chmod(0o755)
    keeps = Environment(author="Ada", discovery=False, editor="true")
    assert "markers are still there" in trace("resolve", "1", "-e", environment=keeps).err
    assert "no editor is set" in trace("resolve", "1", "-e").err
    changes = Environment(author="Ada", discovery=False, editor=str(editor))
    assert trace("resolve", "1", "--edit", environment=changes).code == 0
    assert (tmp_path / "seen").read_text(encoding="utf-8") == (
        "a\n<<<<<<< ours\nmine\n=======\nyours\n>>>>>>> theirs\nc\n"
    )
    apart("merge", "--continue")
    assert "from the editor" in apart("compile").text


def test_markers_stand_around_what_differs() -> None:
    assert marked("same", "same") == "same\n<<<<<<< ours\n=======\n>>>>>>> theirs\n"
    assert marked("a", "b") == "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"


def test_a_rebase_from_beginning_to_end(apart: Run, trace: Trace, tmp_path: Path) -> None:
    old = apart("rev-parse", "HEAD").text.strip()
    stopped = trace("rebase", "side")
    assert (stopped.code, "both-edited" in stopped.text) == (3, True)
    assert "`trace rebase --continue`" in stopped.err
    assert trace("merge", "--continue").code == 6
    assert "rebase aborted" in apart("rebase", "--abort").text
    assert apart("rev-parse", "HEAD").text.strip() == old
    assert "1 dropped" in apart("rebase", "side", "-X", "ours").text
    apart("commit", "--user", "more", "-q")
    made = apart("rev-parse", "HEAD").text.strip()
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/^pick/reword/; s/user: more/Another/" "$1"\n', "utf-8")
    editor.chmod(0o755)
    changes = Environment(author="Ada", discovery=False, editor=str(editor))
    assert trace("rebase", "-i", "HEAD~1", environment=changes).code == 0
    assert "Another" in apart("log", "-n", "1").text
    assert trace("pin", f"{made}.0").code == 0
    assert trace("edit", f"{made}.0", "much more").code == 0
    dropped = trace("rebase", "HEAD~3", "--todo", "-", stdin=b"# nothing\n")
    assert (dropped.code, "--drop-pinned" in dropped.err) == (3, True)
    assert trace("rebase", "HEAD~3", "--todo", "-", stdin=b"grab it\n").code == 2
    assert trace("rebase").code == 4


def test_picks_and_moves_are_told(apart: Run, trace: Trace) -> None:
    apart("commit", "--assistant", "new", "-q")
    apart("symbolic-ref", "HEAD", "refs/heads/side")
    assert "1 commit picked" in apart("cherry-pick", "main").text
    assert "already up to date" in apart("rebase", "HEAD").text
    assert "1 message moved" in apart("move", "HEAD.0", "--first").text
    assert "is already there" in apart("move", "HEAD~1.0", "--first").text
    assert trace("move", "HEAD~1.0").code == 2
    assert trace("cherry-pick").code == 2
    assert trace("cherry-pick", "--continue").code == 6


def test_a_pick_says_what_is_already_there(apart: Run) -> None:
    apart("commit", "--assistant", "new", "-q")
    apart("switch", "side", "-q")
    apart("cherry-pick", "main", "-q")
    tip = apart("rev-parse", "HEAD").text
    assert "is unchanged: " in apart("cherry-pick", "main").text
    assert "is already there" in apart("cherry-pick", "main").text
    apart("switch", "-c", "merged", "-q")
    apart("merge", "main", "-s", "ours", "-q")
    apart("switch", "side", "-q")
    nothing = record(apart("cherry-pick", "merged", "--json"))
    assert (nothing["outcome"], len(nothing["there"])) == ("up-to-date", 1)
    assert apart("rev-parse", "HEAD").text == tip


@pytest.mark.parametrize("command", [["rebase", "main"], ["merge", "main"]])
def test_an_answer_after_a_new_message_of_the_user_is_warned_about(
    trace: Trace, repository: Trace, command: list[str]
) -> None:
    answers, asks = ("side", "main") if command[0] == "rebase" else ("main", "side")
    repository("commit", "-q", "--user", "What is left to do?")
    repository("branch", "-q", "side")
    repository("commit", "-q", "--branch", asks, "--user", "Only bugs, please.")
    repository("commit", "-q", "--branch", answers, "--assistant", "Bugs and the changelog.")
    repository("switch", "-q", "side")
    warned = repository(*command)
    assert (warned.code, "user message was added before it" in warned.err) == (0, True)


def test_a_rebase_that_waits_may_still_be_allowed_to_drop_pinned(apart: Run, trace: Trace) -> None:
    apart("commit", "-q", "--user", "pinned")
    apart("pin", "-q", "HEAD.0")
    listed = apart("rebase", "side", "--print-todo").text.splitlines()
    todo = "\n".join([listed[0], f"drop {listed[1].split()[1]}", f"drop {listed[2].split()[1]}"])
    assert trace("rebase", "side", "--todo", "-", stdin=todo.encode()).code == 3
    apart("resolve", "1", "--theirs")
    assert "--drop-pinned" in trace("rebase", "--continue").err
    assert "2 dropped" in apart("rebase", "--continue", "--drop-pinned").text
    assert "pinned" not in apart("compile", "--format", "text").text


def test_who_settles_a_conflict_may_drop_what_was_pinned(ok: Run, repository: Trace) -> None:
    ok("commit", "-q", "--user", "q")
    ok("branch", "-q", "base")
    ok("commit", "-q", "--user", "left out")
    ok("commit", "-q", "--user", "pinned")
    ok("pin", "-q", "HEAD.0")
    assert repository("rebase", "--onto", "base", "HEAD~1").code == 3
    ok("resolve", "1", "--ours")
    assert "0 commits reapplied, 1 dropped" in ok("rebase", "--continue").text


def test_a_list_that_comes_back_from_the_editor(ok: Run, repository: Trace) -> None:
    for text in "abc":
        ok("commit", "-q", "--user", text)
    before = ok("rev-parse", "HEAD").text
    emptied = Environment(author="Ada", discovery=False, editor="sed -i -e /./d")
    outcome = repository("rebase", "-i", "HEAD~2", environment=emptied)
    assert (outcome.code, "the to-do list is empty" in outcome.err) == (2, True)
    assert ok("rev-parse", "HEAD").text == before
    # The editor comes once more for each message that `reword` asks for.
    editor = "sed -i -e s/^pick/reword/ -e 1s/^$/said/"
    asking = Environment(author="Ada", discovery=False, editor=editor)
    assert repository("rebase", "-q", "-i", "HEAD~2", environment=asking).code == 0
    made = map(json.loads, ok("log", "-n", "2", "--json").lines)
    assert [record["message"] for record in made] == ["said", "said"]


def test_a_conflict_keeps_its_number_and_may_be_settled_anew(ok: Run, repository: Trace) -> None:
    ok("commit", "-q", "--system", "S", "--user", "one", "--user", "two", "--user", "three")
    start = ok("rev-parse", "HEAD").text.strip()
    ok("branch", "-q", "idea")
    for branch in ("main", "idea"):
        ok("switch", "-q", branch)
        for number in (1, 2, 3):
            ok("edit", "-q", f"{start}.{number}", f"{number} on {branch}")
    assert repository("merge", "main").code == 3
    left = ok("resolve", "2", "--ours").lines
    assert [line[0] for line in left if line[0] != " "] == ["1", "3"]
    listed = ok("resolve").lines
    assert [line[0] for line in listed if line[0] != " "] == ["1", "2", "3"]
    assert any(line.endswith("resolved: ours") for line in listed)
    ok("resolve", "1", "another wording")
    ok("resolve", "2", "--theirs")
    ok("resolve", "all", "--ours")
    found = json.loads(ok("resolve", "--json").out)
    assert found["conflicts"] == []
    settled = [(each["number"], each["choice"]) for each in found["settled"]]
    assert settled == [(1, "text"), (2, "theirs"), (3, "ours")]
    merged = json.loads(ok("merge", "--continue", "--json").out)
    assert merged["settled"] == found["settled"]
    said = ok("compile", "--format", "text").text
    assert all(text in said for text in ("another wording", "2 on main", "3 on idea"))


def test_numbers_of_conflicts_go_on_through_the_steps_of_a_rebase(
    ok: Run, repository: Trace
) -> None:
    ok("commit", "-q", "--user", "one", "--user", "two")
    start = ok("rev-parse", "HEAD").text.strip()
    ok("branch", "-q", "idea")
    for branch in ("main", "idea"):
        ok("switch", "-q", branch)
        for number in (0, 1):
            ok("edit", "-q", f"{start}.{number}", f"{number} on {branch}")
    assert "\n1  both-edited" in repository("rebase", "main").text
    ok("resolve", "1", "--ours")
    assert "\n2  both-edited" in repository("rebase", "--continue").text
    ok("resolve", "2", "--theirs")
    ok("resolve", "1", "--theirs")
    ok("rebase", "--continue", "-q")
    said = ok("compile", "--format", "text").text
    assert "0 on idea" in said
    assert "1 on idea" in said


def test_a_fixup_leaves_out_what_was_said_about_it(ok: Run, trace: Trace) -> None:
    ok("commit", "-q", "--user", "first", "-m", "the first")
    for number in (2, 3):
        ok("commit", "-q", "--user", f"message {number}", "-m", f"said of {number}")
    todo = ok("rebase", "HEAD~2", "--print-todo").text
    assert "#   fixup ID" in todo
    two = [f"pick {line.split()[1]}" for line in todo.splitlines()[:2]]
    listed = f"{two[0]}\n{two[1].replace('pick', 'f')}\n".encode()
    done = trace("rebase", "HEAD~2", "--todo", "-", stdin=listed)
    assert done.text.endswith("2 commits reapplied as 1\n")
    assert "said of 2" in ok("show").text
    assert "said of 3" not in ok("show").text
    assert "message 3" in ok("compile", "--format", "text").text


def test_a_hint_names_what_waits(apart: Run, trace: Trace) -> None:
    assert "`trace rebase UPSTREAM` starts one" in trace("rebase", "--abort").err
    assert trace("merge", "side").code == 3
    refused = trace("rebase", "--abort")
    assert (refused.code, "`trace merge --abort` cancels it" in refused.err) == (6, True)
    apart("merge", "--abort")
