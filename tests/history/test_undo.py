"""Undo, redo and the list of operations: which one is taken back, and which never is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Environment, FixedClock, Repo, Store
from trace_store.errors import InvalidInputError, StateError
from trace_store.maintenance.purge import PurgePlan

ADA, BOB = Environment(author="ada"), Environment(author="bob")


def listed(repo: Repo, *, everyone: bool = False) -> list[tuple[int | None, str]]:
    return [(each.number, each.summary) for each in repo.operations(everyone=everyone)]


@pytest.mark.parametrize("name", LINES)
def test_the_list_names_and_numbers_what_undo_takes_back(name: str) -> None:
    repo, line = repo_and_line(name)
    line.append("user", "one")
    at = line.append("user", "two").addresses[0]
    line.annotate(at, priority="pinned")
    pinned = f"commit: pinned: {at.short(8)}"
    assert listed(repo)[:3] == [(1, pinned), (2, "commit: user: two"), (3, "commit: user: one")]
    assert [each.summary for each in repo.operations(2)] == [pinned, "commit: user: two"]
    tip = line.resolve("HEAD~2")
    planned = repo.undo_to(2, dry_run=True)
    assert line.resolve("HEAD~2") == tip
    done = repo.undo_to(2)
    assert [each.summary for each in done] == [pinned, "commit: user: two"]
    assert [each.moves for each in done] == [each.moves for each in planned]
    assert line.resolve("HEAD") == tip
    assert listed(repo)[0] == (1, "commit: user: one")


@pytest.mark.parametrize("name", LINES)
def test_a_redo_names_what_it_redoes(name: str) -> None:
    repo, line = repo_and_line(name)
    line.append("user", "one")
    line.append("user", "two")
    tip = line.resolve("HEAD")
    repo.undo_to(2)
    assert [repo.redo().summary for _ in range(2)] == ["commit: user: one", "commit: user: two"]
    assert line.resolve("HEAD") == tip
    with pytest.raises(StateError, match="nothing to redo"):
        repo.redo()
    assert listed(repo)[:2] == [(1, "commit: user: two"), (2, "commit: user: one")]


def test_what_was_undone_and_redone_is_listed_once() -> None:
    repo, _ = repo_and_line("main")
    for text in ("one", "two", "three"):
        repo.append("user", text)
    repo.undo()
    repo.undo()
    repo.redo()
    repo.branches.create("idea")
    repo.undo()
    assert [summary for _, summary in listed(repo)] == [
        f"commit: {said}" for said in ("user: two", "user: one", "system: Be brief.")
    ]
    assert repo.undo().summary == "commit: user: two"
    assert repo.undo().summary == "commit: user: one"


def test_a_number_that_is_not_listed() -> None:
    repo, _ = repo_and_line("main")
    with pytest.raises(InvalidInputError, match="only 1 can be undone, not 2"):
        repo.undo_to(2)
    with pytest.raises(InvalidInputError):
        repo.undo_to(0)
    assert len(repo.compile()) == 1


def test_all_or_none() -> None:
    """Another author went on on the branch of the second operation."""
    repo, _ = repo_and_line("other")
    repo.append("user", "two")
    repo.line("other").append("user", "on the other")
    tip = repo.head.oid
    other = Repo(repo.store, author="bob")
    other.append("user", "bob's")
    with pytest.raises(StateError, match="has moved since"):
        repo.undo_to(3)
    assert repo.line("other").compile().messages[-1].text == "on the other"
    assert repo.resolve("HEAD~1") == tip


def test_commands_that_move_head_are_undone_together() -> None:
    repo, _ = repo_and_line("other")
    repo.branches.switch("idea", create=True)
    repo.append("user", "an idea")
    repo.branches.checkout("HEAD~1")
    repo.append("user", "on no branch")
    repo.branches.rename("idea", "plan")
    assert "commit: user: on no branch" in [summary for _, summary in listed(repo)]
    done = repo.undo_to(5)
    assert [each.head.ref for each in done[-2:]] == ["refs/heads/idea", "refs/heads/main"]
    assert repo.head.ref == "refs/heads/main"
    assert [each.name for each in repo.branches.list()] == ["main", "other"]
    for _ in done:
        repo.redo()
    assert [each.name for each in repo.branches.list()] == ["main", "other", "plan"]
    assert [each.text for each in repo.compile()][-1] == "on no branch"


def purge(repo: Repo) -> None:
    plan: PurgePlan = repo.maintenance.plan_purge(texts=["a secret thing"])
    assert repo.maintenance.purge(plan).tombstones


@pytest.mark.parametrize("verb", ["purge", "config", "unset"])
def test_after_what_cannot_be_undone_undo_refuses_and_says_what_is_before(
    tmp_path: Path, verb: str
) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("user", "one")
        repo.append("user", "a secret thing")
        repo.append("user", "three")
        if verb == "purge":
            purge(repo)
        else:
            repo.configure("budget", 1000)
        if verb == "unset":
            repo.configure("budget", None)
    said = {"purge": "purge: ", "config": "config: budget = 1000", "unset": "config: budget rem"}
    wording = "commit: purge: wordings without the text"
    before = wording if verb == "purge" else "commit: user: three"
    with Repo.open(tmp_path, environment=ADA) as repo:
        tip = repo.head.oid
        for dry_run in (False, True):
            with pytest.raises(StateError, match=said[verb]) as told:
                repo.undo(dry_run=dry_run)
            assert told.value.code == "cannot-undo"
            assert f"the one before it: {before}" in told.value.message
        assert repo.head.oid == tip
        first = next(iter(repo.operations()))
        assert (first.number, first.can_be_undone) == (None, False)
        assert first.message.startswith(said[verb])
        [done] = repo.undo_to(1)
        assert done.summary == before
        assert repo.redo().summary == before
        repo.append("user", "four")
        assert repo.undo().summary == "commit: user: four"
        assert repo.undo().summary == before  # the user was told


def test_a_setting_that_stays_is_no_command(tmp_path: Path) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.configure("budget", 1000)
        repo.append("user", "one")
        assert not repo.configure("budget", 1000)
        assert repo.undo().summary == "commit: user: one"


def test_what_another_author_did_is_not_undone_unasked(tmp_path: Path) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("user", "ada's")
        repo.branches.create("side")
    with Repo.open(tmp_path, environment=BOB) as repo:
        repo.line("side").append("user", "bob's")
        bobs = repo.line("side").resolve("HEAD")
    with Repo.open(tmp_path, environment=ADA) as repo:
        assert listed(repo)[0] == (None, "commit: user: bob's")
        assert [number for number, _ in listed(repo, everyone=True)] == [1, 2, 3]
        repo.append("user", "ada's second")
        done = repo.undo()
        assert (done.summary, done.others) == ("commit: user: ada's second", 0)
        with pytest.raises(StateError, match="heads/side has moved since"):
            repo.undo()  # the creation of the branch that bob went on with
        assert repo.line("side").resolve("HEAD") == bobs
        assert repo.undo(everyone=True).summary == "commit: user: bob's"
        assert repo.undo().summary == "branch: created from HEAD"
        assert repo.undo().summary == "commit: user: ada's"
    with Repo.open(tmp_path, environment=BOB) as repo:
        repo.line("main").append("user", "bob's own")
    with Repo.open(tmp_path, environment=Environment(author="eve")) as repo:
        with pytest.raises(StateError, match="of others, by bob: commit: user: bob's own") as told:
            repo.undo()
        assert told.value.code == "nothing-to-undo"


def test_what_passes_over_others_says_so(tmp_path: Path) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("user", "ada's")
    with Repo.open(tmp_path, environment=BOB) as repo:
        repo.line("side").append("user", "bob's")
    with Repo.open(tmp_path, environment=ADA) as repo:
        done = repo.undo()
        assert (done.summary, done.others) == ("commit: user: ada's", 1)
        assert [each.text for each in repo.line("side").compile()] == ["bob's"]


def test_what_another_process_did_meanwhile_is_not_undone_unasked(tmp_path: Path) -> None:
    """The author is the same; this process wrote before and after."""
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("user", "mine")
        script = (
            "import sys; from trace_store import Environment, Repo\n"
            "with Repo.open(sys.argv[1], environment=Environment(author='ada')) as repo:\n"
            "    repo.line('side').append('user', 'theirs')\n"
        )
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
        tip = repo.line("side").resolve("HEAD")
        assert listed(repo)[:2] == [(None, "commit: user: theirs"), (1, "commit: user: mine")]
        done = repo.undo()
        assert (done.summary, done.others) == ("commit: user: mine", 1)
        assert repo.line("side").resolve("HEAD") == tip
        with pytest.raises(StateError):
            repo.undo()
        assert repo.undo(everyone=True).summary == "commit: user: theirs"
    with Repo.open(tmp_path, environment=ADA) as repo:
        assert repo.redo().summary == "commit: user: theirs"


def test_many_writes_of_this_process_are_its_own() -> None:
    repo = Repo(Store.memory(clock=FixedClock()), author="ada")
    for number in range(1500):
        repo.append("user", str(number))
    assert repo.undo().summary == "commit: user: 1499"
    assert repo.undo_to(900)[-1].summary == "commit: user: 599"


def test_an_import_and_a_trajectory_are_the_users_own(tmp_path: Path) -> None:
    (sample,) = (Path(__file__).parents[2] / "trace_store" / "samples").glob("*.jsonl")
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.transcripts.import_(str(sample))
        state = repo.trajectories.start("a task")
        repo.trajectories.record("note", "seen", trajectory=state.id, agent="an agent")
        assert {each.author for each in repo.operations()} == {"ada", "import"}
        assert [each.number for each in repo.operations()] == [1, 2, 3]
        assert repo.undo().message == "trajectory: note: seen"
        assert repo.undo_to(2)[-1].message == f"import: {sample.name}"
        assert repo.branches.list() == []


def test_each_import_is_one_operation(tmp_path: Path) -> None:
    (sample,) = (Path(__file__).parents[2] / "trace_store" / "samples").glob("*.jsonl")
    lines = sample.read_text().splitlines(keepends=True)
    first, grown, other = (tmp_path / name for name in ("a.jsonl", "a2.jsonl", "b.jsonl"))
    first.write_text("".join(lines[:8]))
    other.write_text('{"role": "user", "content": "hello"}\n')
    with Repo.init(tmp_path / "repo", environment=ADA) as repo:
        repo.transcripts.import_(first)
        few = repo.compile().commit
        grown.write_text("".join(lines))
        repo.transcripts.import_(grown)
        repo.transcripts.import_(grown, other)
        assert listed(repo) == [
            (1, "import: 2 files"),
            (2, "import: a2.jsonl"),
            (3, "import: a.jsonl"),
        ]
        assert len(repo.branches.list()) == 2
        assert repo.undo().summary == "import: 2 files"
        assert len(repo.branches.list()) == 1
        repo.undo()
        assert repo.compile().commit == few
        repo.undo()
        assert repo.branches.list() == []
        for name in ("a.jsonl", "a2.jsonl", "2 files"):
            assert repo.redo().summary == f"import: {name}"
        assert len(repo.branches.list()) == 2
        with pytest.raises(StateError):
            repo.redo()
