"""Each command that would change nothing says so, exits 0 and writes nothing; --json tells a script."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Outcome, Run, Trace, first, record
from trace_store import Environment, Repo

NOTHING = "nothing to do"
ADDRESS = "HEAD~1.0"
TABLE: list[tuple[str, str]] = [
    (f"edit {ADDRESS} x", NOTHING),
    (f"pin {ADDRESS}", NOTHING),
    (f"important {ADDRESS} --keep y", NOTHING),
    (f"normal {ADDRESS}", NOTHING),
    (f"skip {ADDRESS}", NOTHING),
    (f"label {ADDRESS} --add a", NOTHING),
    (f"label {ADDRESS} --take a", NOTHING),
    (f"remove {ADDRESS}", NOTHING),
    (f"remove {ADDRESS} --ghost", NOTHING),
    (f"restore {ADDRESS}", NOTHING),
    (f"restore {ADDRESS} --version 0", NOTHING),
    (f"expand {ADDRESS}", f"{NOTHING}: the message is shown in full"),
    (f"move {ADDRESS} --first", f"{NOTHING}: 1 message is already there"),
    ("tools set tools.json", NOTHING),
    ("trim --to 100k", "nothing to trim"),
    ("dedupe", "nothing to dedupe"),
    ("compress --to 100k --extractive", "nothing to compress"),
    ("suggest --apply all", NOTHING),
    ("config budget 1000", NOTHING),
    ("config budget --unset", NOTHING),
    ("tag -f v1", f"{NOTHING}: tag v1 at "),
    ("branch -f idea", f"{NOTHING}: branch idea is at "),
    ("branch -m main main", f"{NOTHING}: the branch is named main"),
    ("branch -u side main", f"{NOTHING}: the upstream of branch main: side"),
    ("branch --unset-upstream main", f"{NOTHING}: the upstream of branch main: nothing"),
    ("switch main", "already on branch main"),
    ("switch -C main", "already on branch main"),
    ("checkout main", "already on branch main"),
    ("reset HEAD", f"{NOTHING}: main is at "),
    ("reset --hard HEAD", f"{NOTHING}: main is at "),
    ("checkpoint restore here", f"{NOTHING}: main is at "),
    ("checkpoint inject short", "the context has it already"),
    ("merge side", "already up to date"),
    ("rebase side", "already up to date"),
    ("cherry-pick side", "is already there"),
    ("revert usage", f"{NOTHING}: no change of "),
    ("seal", "everything is sealed"),
    ("pack", "nothing to pack"),
    ("gc", "nothing to remove"),
    ("prune", "nothing to remove"),
    ("trash empty", "nothing to empty"),
    ("adopt", "no ref had moved"),
    ("repair", "nothing to repair"),
    ("sessions rename main Title", NOTHING),
    ("trajectory amend --title Task", NOTHING),
    ("trajectory capture", "no new blocks"),
    ("import session.jsonl", "unchanged"),
]
"""Commands that run twice, and what the second run says."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is copied for each test; the first one fills it."""
    return tmp_path_factory.mktemp("template")


@pytest.fixture
def filled(trace: Trace, tmp_path: Path, template: Path) -> Run:
    """A repository with what the commands name."""

    def ok(*words: str, stdin: bytes = b"") -> Outcome:
        outcome = trace(*words, stdin=stdin)
        assert outcome.code == 0, outcome.err
        return outcome

    if not Path(template, ".trace").exists():
        fill(ok, tmp_path)
        shutil.copytree(tmp_path, template, dirs_exist_ok=True)
    else:
        shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return ok


def fill(ok: Run, folder: Path) -> None:
    ok("init", "-q")
    Path(folder, "tools.json").write_text('[{"name": "r", "parameters": {}}]', encoding="utf-8")
    Path(folder, "session.jsonl").write_bytes(ok("demo", "--sample").out)
    for text in ("one", "two", "three"):
        ok("commit", "--user", text, "-q")
    ok("tag", "side")
    ok("branch", "side")
    ok("usage", "record", "-q", stdin=b'{"input_tokens": 1, "output_tokens": 1}')
    ok("tag", "usage")
    ok("commit", "--user", "four", "-q")
    ok("commit", "--assistant", "five", "-q")
    ok("checkpoint", "save", "here", "-q")
    ok("checkpoint", "save", "short", "--soft", "-q")
    ok("trajectory", "start", "Task", "-q")


def state(folder: Path) -> tuple[object, ...]:
    with Repo.open(folder, environment=Environment(author="Ada")) as repo:
        refs = dict(repo.store.refs.iterate_tips())
        operations = [each for each in repo.operations() if each.can_be_undone]
        return refs, repo.head, dict(repo.store.config.items()), operations


def tells_nothing(found: dict[str, Any]) -> bool:
    """Return True if JSON says that nothing was done, as docs/json.md says where."""
    if "outcome" in found:
        return found["outcome"] in ("up-to-date", "sound")
    if "changed" in found:
        return not found["changed"]
    if "files" in found:
        return not found["commits"]
    if "checkpoint" in found:
        return found["commit"] is None
    counts = ("transactions", "objects", "taken", "messages", "refs", "recorded")
    return not any(found.get(name) for name in counts)


@pytest.mark.parametrize(("command", "said"), TABLE, ids=lambda each: each[:40])
def test_the_second_run(filled: Run, tmp_path: Path, command: str, said: str) -> None:
    address = next(iter(record(filled("show", ADDRESS, "--json"))["address"].split()))
    words = [address if word == ADDRESS else word for word in command.split()]
    filled(*words)
    before = state(tmp_path)
    again = filled(*words)
    assert said in again.text + again.err
    assert state(tmp_path) == before
    assert tells_nothing(first(filled(*words, "--json")))
    assert state(tmp_path) == before


def test_the_first_run_tells_a_script_that_something_changed(filled: Run) -> None:
    for words in (
        ["edit", "side.0", "x"],
        ["pin", "side.0"],
        ["tools", "set", "tools.json"],
        ["config", "budget", "1000"],
        ["tag", "v1"],
        ["branch", "idea"],
        ["branch", "-u", "side", "idea"],
        ["switch", "idea"],
        ["reset", "HEAD~1"],
        ["sessions", "rename", "main", "Title"],
        ["trajectory", "amend", "--title", "Another"],
        ["move", "side.0", "--first"],
    ):
        assert record(filled(*words, "--json"))["changed"] is True, words


def test_a_start_point_without_a_new_branch_is_an_error(filled: Run, trace: Trace) -> None:
    for command in ("switch", "checkout"):
        refused = trace(command, "side", "HEAD~1")
        assert refused.code == 2
        assert "a start point requires a new branch" in refused.err


def test_restore_goes_back_one_wording_and_says_to_which(filled: Run) -> None:
    filled("edit", "HEAD~1.0", "second", "-q")
    address = record(filled("show", "HEAD~2.0", "--json"))["address"]
    filled("edit", address, "third", "-q")
    assert filled("restore", address).text.endswith("to version 1\n")
    assert filled("restore", address).text.endswith("to version 0\n")
    assert filled("restore", address).text == f"{NOTHING}\n"
    assert "four" in filled("show", address).text


def test_undo_refuses_after_a_prune_and_says_what_is_before(filled: Run, trace: Trace) -> None:
    filled("hash-object", "-w", "--stdin", stdin=b"unreachable")
    assert "1 object" in filled("prune", "--now").text
    refused = trace("undo")
    assert refused.code == 6
    assert "the last operation cannot be undone (prune: 1 objects removed)" in refused.err
    assert "the one before it: trajectory: started: Task" in refused.err
    assert "`trace undo 1`" in refused.err
    listed = filled("undo", "--list").lines
    assert listed[0].startswith("  -  ")
    assert listed[0].endswith("prune: 1 objects removed (cannot be undone)")
    assert listed[1].startswith("  1  ")
    assert filled("undo", "1").text.startswith("undone: trajectory: started: Task (")
    assert filled("undo").text.startswith("undone: checkpoint: short (")


def test_undo_takes_a_number_of_the_list(filled: Run, trace: Trace) -> None:
    listed = [json.loads(line) for line in filled("undo", "--list", "--json").lines]
    assert [each["number"] for each in listed[:3]] == [1, 2, 3]
    assert listed[3]["summary"] == "commit: assistant: five"
    done = [json.loads(line) for line in filled("undo", "4", "--json").lines]
    assert [each["summary"] for each in done] == [each["summary"] for each in listed[:4]]
    assert filled("redo").text.startswith("redone: commit: assistant: five (")
    for words in (["0"], ["99"], ["x"], ["1", "--list"]):
        assert trace("undo", *words).code == 2


def test_undo_leaves_alone_what_others_did(filled: Run, trace: Trace) -> None:
    bob = Environment(author="Bob", discovery=False)
    trace("commit", "--user", "bob's", "--branch", "bobs", environment=bob)
    listed = filled("undo", "--list").lines
    assert listed[0].startswith("  -  ")
    assert listed[0].endswith("commit: user: bob's (by Bob)")
    done = filled("undo")
    assert done.text.startswith("undone: trajectory: started: Task (")
    assert done.err == "note: 1 newer operation of others stays; `trace undo --list` shows which\n"
    assert filled("undo", "--all").text.startswith("undone: commit: user: bob's (")


def test_an_id_of_a_session_and_of_an_object(filled: Run, trace: Trace) -> None:
    tip = record(filled("status", "--json"))["commit"]
    digits = tip[:6]
    filled("update-ref", f"refs/heads/sessions/codex/{digits}-5ef1", "side")
    for words in (["show", digits], ["log", digits], ["checkout", digits]):
        refused = trace(*words)
        assert refused.code == 2
        assert f"{digits} starts the ids of a session and of an object" in refused.err
        assert f"candidates: sessions/codex/{digits}-5ef1, {tip[:16]}" in refused.err
    assert "three" in filled("view", digits).text
    assert "five" not in filled("view", digits).text
    filled("switch", digits, "-q")
    assert filled("branch", "--show-current").text == f"sessions/codex/{digits}-5ef1\n"
    assert record(filled("show", tip[:16], "--json"))["commit"] == tip


def test_a_text_that_is_nowhere_is_not_purged_and_nothing_is_removed(ok: Run, trace: Trace) -> None:
    ok("commit", "-q", "--user", "hello there")
    ok("search", "hello")
    before = {path: path.read_bytes() for path in Path(".trace").rglob("*") if path.is_file()}
    outcome = trace("purge", "--match", "no such text anywhere")
    assert (outcome.code, outcome.text) == (4, "")
    assert (
        "the text is in no object of this repository, nor in another file; nothing was purged"
        in outcome.err
    )
    assert before.keys() <= {path for path in Path(".trace").rglob("*") if path.is_file()}


def test_a_pick_of_what_a_revert_hides_says_how_to_see_it(ok: Run) -> None:
    ok("commit", "-q", "--user", "base")
    ok("switch", "-q", "-c", "side")
    ok("commit", "-q", "--user", "added on side")
    ok("switch", "-q", "main")
    ok("cherry-pick", "side", "-q")
    ok("revert", "HEAD", "-q")
    first, second = ok("cherry-pick", "side").lines
    assert first.endswith("is already there")
    restore = second.split("`")[1]
    assert second == f"it is hidden here; `{restore}` shows it"
    ok(*restore.split()[1:])
    assert "added on side" in ok("compile").text
