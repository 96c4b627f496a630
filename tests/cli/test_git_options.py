"""git's options for the commands that list and show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Run, Trace
from trace_store.base.environment import Environment


@pytest.fixture
def merged(ok: Run) -> Run:
    """`side` is merged into `main`, and `ahead` continues from there."""
    for words in (
        *(["commit", "--user", "a"], ["branch", "side"], ["branch", "old"]),
        *(["commit", "--user", "m"], ["switch", "side"], ["commit", "--user", "s"]),
        *(["switch", "main"], ["merge", "side"], ["branch", "ahead"]),
        ["commit", "--branch", "ahead", "--user", "more"],
    ):
        ok(*words, "-q")
    return ok


def names(outcome: Outcome) -> list[str]:
    return [json.loads(line)["name"] for line in outcome.lines]


def test_branches_that_have_a_commit_or_are_merged(merged: Run, repository: Trace) -> None:
    assert names(merged("branch", "--json", "--contains")) == ["ahead", "main"]
    assert names(merged("branch", "--json", "--contains", "side")) == ["ahead", "main", "side"]
    assert names(merged("branch", "--json", "--contains", "side", "a*")) == ["ahead"]
    assert names(merged("branch", "--json", "--merged")) == ["main", "old", "side"]
    assert names(merged("branch", "--json", "--merged", "side")) == ["old", "side"]
    assert names(merged("branch", "--json", "--no-merged")) == ["ahead"]
    assert merged("branch", "-v", "--no-merged", "old").text.count("ahead") == 1
    assert repository("branch", "--contains", "nope").code == 4
    assert repository("branch", "--merged", "-d", "side").code == 2


def test_merges_and_all_but_merges(merged: Run, repository: Trace) -> None:
    every = merged("log", "--all", "--json").lines
    merges = merged("log", "--all", "--merges", "--json").lines
    assert merges == [line for line in every if len(json.loads(line)["parents"]) > 1]
    assert merged("log", "--all", "--no-merges", "--json").lines == [
        line for line in every if line not in merges
    ]
    assert len(merged("log", "--merges", "--graph").lines) == 1
    assert repository("log", "--merges", "--no-merges").code == 2


def test_help_is_a_command_too(repository: Trace) -> None:
    assert repository("help") == repository("--help")
    assert repository("help", "log") == repository("log", "--help")
    assert repository("help", "bundle", "create") == repository("bundle", "create", "--help")
    assert repository("help", "nope").code == 2


def test_a_merge_is_shown_without_marks_of_python(merged: Run) -> None:
    assert '    merge: {"strategy": "append"}' in merged("show").lines
    assert "'" not in merged("show").text


def test_nothing_to_blame_on_a_branch_without_a_commit(repository: Trace) -> None:
    outcome = repository("blame")
    assert (outcome.code, "HEAD has no commit yet" in outcome.err) == (6, True)


def test_the_list_of_a_rebase_as_json(merged: Run) -> None:
    merged("switch", "-q", "ahead")
    (line,) = merged("rebase", "--print-todo", "--json", "main").lines
    tip = merged("rev-parse", "ahead").text.strip()
    assert json.loads(line) == {"action": "pick", "commit": tip, "summary": "user: more"}


def test_json_is_said_to_be_the_input_of_a_commit(repository: Trace) -> None:
    outcome = repository("commit", "--user", "x", "--json")
    assert (outcome.code, "--result-json prints the result" in outcome.err) == (2, True)
    assert "hint" not in repository("commit", "--json").err
    assert "nothing" not in repository("commit", "--user", "x", "--result-json").err


def test_the_author_is_a_setting_of_the_user(trace: Trace, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    here = Environment.read(variables)
    assert trace("init", "-q", environment=here).code == 0
    assert trace("config", "user.name", "Ada Lovelace", environment=here) == (0, b"", "")
    assert trace("config", "user.name", environment=here).lines == ["Ada Lovelace"]
    assert trace("commit", "-q", "--user", "hello", environment=here).code == 0
    assert trace("log", "--author", "Lovelace", environment=here).text.count("hello") == 1
    assert trace("config", "user.name", "--unset", environment=here).code == 0
    unset = trace("config", "user.name", environment=here)
    assert unset.lines == []
    assert unset.err.startswith("note: user.name is not set; without it the author is ")
    named = Environment.read({**variables, "TRACE_AUTHOR": "Grace"})
    assert (
        "TRACE_AUTHOR is set and comes first"
        in trace("config", "user.name", "Ada", environment=named).err
    )


def test_an_option_of_all_commands_behind_the_command_is_explained(repository: Trace) -> None:
    for option in ("--no-pager", "--no-color"):
        refused = repository("view", option)
        assert refused.code == 2
        assert refused.err.splitlines()[1] == (
            f"hint: {option} goes before the command, as in `trace {option} …`"
        )
    assert "`trace view --help` shows the usage" in repository("view", "--nope").err
