"""Options of git on merges and rebases, and mistakes that git users make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_store.base.environment import Environment


@pytest.fixture
def waiting(repository: Trace) -> Trace:
    """A merge of `side` into `main`, stopped at two conflicts."""
    for words in (
        *(
            ["commit", "--user", "a", "-q"],
            ["commit", "--user", "b", "-q"],
            ["branch", "side", "-q"],
        ),
        *(["edit", "HEAD.0", "b, mine", "-q"], ["edit", "HEAD~2.0", "a, mine", "-q"]),
        *(["switch", "side", "-q"], ["edit", "HEAD.0", "b, yours", "-q"]),
        *(["edit", "HEAD~2.0", "a, yours", "-q"], ["commit", "--user", "c", "-q"]),
        *(["switch", "main", "-q"],),
    ):
        assert repository(*words).code == 0, words
    assert repository("merge", "side").code == 3
    return repository


@pytest.mark.parametrize(
    "option",
    ["--squash", "--no-ff", "--ff-only", "-sours", "-Xours", "--allow-unrelated-histories"],
)
def test_how_to_begin_is_not_asked_again(waiting: Trace, option: str) -> None:
    for way in ("--continue", "--abort", "--skip"):
        outcome = waiting("merge", way, option)
        assert (outcome.code, "cannot be combined" in outcome.err) == (2, True)
    assert waiting("rebase", "--continue", "--onto", "main").code == 2
    assert waiting("cherry-pick", "--abort", "-X", "ours").code == 2
    assert "is in progress" in waiting("status").text


def test_contradictions_are_refused(waiting: Trace) -> None:
    waiting("merge", "--abort")
    for words in (
        *(
            ["merge", "side", "--squash", "--no-ff"],
            ["merge", "side", "-s", "theirs", "-X", "ours"],
        ),
        *(
            ["rebase", "side", "--print-todo", "--todo", "list"],
            ["rebase", "side", "-i", "--todo", "list"],
        ),
        *(["whohas", ""],),
    ):
        assert waiting(*words).code == 2, words


def test_a_conflict_that_is_asked_about_is_shown_alone(waiting: Trace) -> None:
    assert len([row for row in waiting("resolve").lines if "both-edited" in row]) == 2
    shown = waiting("resolve", "2").lines
    assert [row.split()[0] for row in shown if "both-edited" in row] == ["2"]
    for which in ("9", "abc"):
        outcome = waiting("resolve", which)
        assert (outcome.code, "no conflict" in outcome.err) == (2, True)
    assert waiting("resolve", "all", "--theirs").code == 0
    outcome = waiting("resolve", "all", "--ours")
    assert (outcome.code, "by the conflict's number" in outcome.err) == (2, True)
    assert waiting("resolve", "1", "--ours").code == 0
    assert waiting("merge", "--continue").code == 0


def test_a_list_with_a_mistake_is_kept(waiting: Trace) -> None:
    waiting("merge", "--abort")
    surroundings = Environment(author="Ada", discovery=False, editor="sed -i -e s/^pick/pikc/")
    waiting("switch", "-q", "side")
    outcome = waiting("rebase", "-i", "main", environment=surroundings)
    assert outcome.code == 2
    assert "actions: pick, reword" in outcome.err
    kept = outcome.err.partition("--todo ")[2].split()[0]
    assert "pikc" in Path(kept).read_text(encoding="utf-8")
    mended = Path(kept).read_text(encoding="utf-8").replace("pikc", "pick")
    Path(kept).write_text(mended, encoding="utf-8")
    assert waiting("rebase", "main", "--todo", kept).code == 3


def test_editors_are_looked_for_as_git_does(waiting: Trace, tmp_path: Path) -> None:
    waiting("merge", "--abort")
    outcome = waiting("rebase", "-i", "main~1", environment=Environment(discovery=False))
    assert "or use --todo FILE" in outcome.err
    assert "-F" not in outcome.err
    variables = ["TRACE_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_EDITOR", "VISUAL", "EDITOR"]
    for number, name in enumerate(variables):
        read = Environment.read({each: each for each in variables[number:]})
        assert read.list_editor == name
        assert read.editor == ("GIT_EDITOR" if name == "GIT_SEQUENCE_EDITOR" else name)
    lists = Environment.read({"GIT_SEQUENCE_EDITOR": "sed -i -e s/^pick/pikc/", "EDITOR": "false"})
    assert "actions: pick" in waiting("rebase", "-i", "main~1", environment=lists).err


def test_a_call_that_loses_its_result_is_told(repository: Trace, tmp_path: Path) -> None:
    messages = (
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", '
        '"function": {"name": "look", "arguments": "{}"}}]}',
        '{"role": "tool", "tool_call_id": "c1", "content": "seen"}',
    )
    repository("commit", "--user", "go", "-q")
    repository("tag", "start")
    for text in messages:
        outcome = repository("commit", "--jsonl", "-q", stdin=text.encode())
        assert outcome.code == 0, outcome.err
    listed = repository("rebase", "start", "--print-todo").text
    todo = tmp_path / "todo"
    todo.write_text(listed.splitlines()[0] + "\n", encoding="utf-8")
    outcome = repository("rebase", "start", "--todo", str(todo))
    assert outcome.code == 0
    assert "warning:" in outcome.err


def test_a_branch_that_begins_with_nothing_is_told(repository: Trace) -> None:
    first = repository("commit", "--user", "a", "--branch", "idea")
    assert "note:" not in first.err  # nothing else is there
    repository("switch", "-q", "idea")
    assert (
        "is a new branch; this commit is its first"
        in repository("commit", "--user", "b", "--branch", "ideas").err
    )


def test_what_is_there_already_does_not_come_in_again(repository: Trace) -> None:
    for words in (
        *(
            ["commit", "--user", "q", "-q"],
            ["branch", "side", "-q"],
            ["commit", "--user", "m", "-q"],
        ),
        *(
            ["switch", "side", "-q"],
            ["commit", "--user", "s1", "-q"],
            ["commit", "--user", "s2", "-q"],
        ),
        *(["switch", "main", "-q"], ["cherry-pick", "side~1", "-q"]),
    ):
        assert repository(*words).code == 0, words
    outcome = repository("merge", "side")
    assert "merged: 1 new message\n" in outcome.text
    assert outcome.err == ""
    assert repository("undo", "-q").code == 0
    for words in (["switch", "side"], ["edit", "HEAD~1.0", "s1, reworded"], ["switch", "main"]):
        assert repository(*words, "-q").code == 0, words
    outcome = repository("merge", "side")
    assert "merged: 1 new message, 1 changed\n" in outcome.text
    assert repository("undo", "-q").code == 0
    assert repository("merge", "--squash", "side").code == 0
    outcome = repository("merge", "side")
    assert "merged: 0 new messages\n" in outcome.text
    assert outcome.err == ""


def test_a_pick_of_either_side_leaves_out_what_both_share(repository: Trace) -> None:
    for words in (
        *(["commit", "-q", "--system", "S", "--user", "base"], ["branch", "-q", "side"]),
        *(["commit", "-q", "--user", "m1"], ["switch", "-q", "side"]),
        *(["commit", "-q", "--user", "s1"], ["switch", "-q", "-c", "pick", "HEAD~1"]),
    ):
        assert repository(*words).code == 0, words
    assert len(repository("rev-list", "main...side").lines) == 2
    assert "2 commits picked" in repository("cherry-pick", "main...side").text


def test_the_way_back_is_one_that_is_open_while_something_waits(waiting: Trace) -> None:
    waiting("branch", "plan")
    moved = waiting("branch", "-f", "plan", "HEAD~1").lines[-1]
    for said in (waiting("branch", "-d", "plan").lines[-1], moved):
        back = said.partition("`trace ")[2].partition("`")[0].split()
        assert waiting(*back).code == 0
    waiting("tag", "v1")
    back = waiting("tag", "-d", "v1").lines[-1].partition("`trace ")[2].partition("`")[0].split()
    assert waiting(*back).code == 0
    assert waiting("rev-parse", "plan").text == waiting("rev-parse", "v1").text
    waiting("merge", "--abort")
    assert "`trace undo` restores it" in waiting("branch", "-d", "plan").text


def test_what_is_skipped_is_not_said_to_be_up_to_date(waiting: Trace) -> None:
    assert waiting("merge", "--skip").text == (
        "main is unchanged: the conflicting commit was skipped\n"
    )
    assert waiting("cherry-pick", "side~2").code == 3
    assert waiting("cherry-pick", "--skip").text == "main is unchanged: 1 commit dropped\n"
    assert waiting("merge", "main~1").text == "main is already up to date\n"


def test_a_list_of_nothing_is_up_to_date(waiting: Trace) -> None:
    waiting("merge", "--abort")
    for words in (["rebase", "HEAD"], ["rebase", "-i", "HEAD"]):
        outcome = waiting(*words, environment=Environment(discovery=False, editor="false"))
        assert (outcome.code, outcome.text) == (0, "main is already up to date\n")
    emptied = Environment(discovery=False, editor="truncate -s 0")
    outcome = waiting("rebase", "-i", "HEAD~1", environment=emptied)
    assert (outcome.code, "the to-do list is empty" in outcome.err) == (2, True)


def test_a_number_is_no_message_for_taking_a_merge_back(repository: Trace) -> None:
    for words in (
        *(["commit", "-q", "--user", "a"], ["branch", "-q", "side"]),
        *(["commit", "-q", "--user", "m"], ["switch", "-q", "side"]),
        *(["commit", "-q", "--user", "s"], ["switch", "-q", "main"], ["merge", "-q", "side"]),
    ):
        assert repository(*words).code == 0, words
    outcome = repository("revert", "-m", "1", "HEAD")
    assert (outcome.code, "is a merge, and -m 1 would be the commit message" in outcome.err) == (
        2,
        True,
    )
    outcome = repository("revert", "-m", "1", "^HEAD")
    assert (outcome.code, "not a revision: '^HEAD'" in outcome.err) == (2, True)
    assert repository("revert", "-q", "-m", "1", "HEAD~1").code == 0
    assert repository("revert", "-q", "-m", "The side was wrong.", "HEAD~1").code == 0
