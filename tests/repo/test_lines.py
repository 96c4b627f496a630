"""Verbs on branches other than HEAD's, with `repo.line(name)` and `ref=`."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, pending
from trace_store import FixedClock, Message, Repo, Text, ToolCall, ToolResult
from trace_store.context.compiled import tokens_before
from trace_store.errors import (
    AlreadyExistsError,
    BudgetError,
    InvalidInputError,
    InvalidRefNameError,
    RefChangedError,
    RefNotFoundError,
    RepositoryNotFoundError,
    StateError,
)
from trace_store.merge.todo import DROP, Step
from trace_store.repo.line import Line

SECRET = "sk-ant-api03-" + "Ab3dEf9hIj" * 9 + "AA"


@pytest.fixture(params=["disk", "memory"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repo]:
    """HEAD is on main, which has one message."""
    clock = FixedClock(step=1000)
    if request.param == "memory":
        made = Repo.memory(author="ada", clock=clock)
    else:
        made = Repo.init(tmp_path, environment=ADA, clock=clock)
    with made as repo:
        repo.append("user", "on main")
        yield repo


def texts(line: Line, revision: str = "HEAD") -> list[str]:
    return [each.text for each in line.compile(revision)]


def test_a_line_begins_where_its_first_commit_is(repo: Repo) -> None:
    idea = repo.line("idea")
    assert (idea.head.ref, idea.head.oid) == ("refs/heads/idea", None)
    made = idea.append("user", "a thought")
    assert (made.ref, made.parents, idea.head.oid) == ("refs/heads/idea", (), made.oid)
    assert texts(idea) == ["a thought"]
    assert texts(repo) == ["on main"]
    assert repo.head.ref == "refs/heads/main"


@pytest.mark.parametrize("name", ["refs/tags/v1", "refs/trash/1"])
def test_a_line_is_a_branch(repo: Repo, name: str) -> None:
    for fails in (lambda: repo.line(name), lambda: repo.append("user", "a", ref=name)):
        with pytest.raises(RefNotFoundError, match="not a branch"):
            fails()


def test_only_commits_on_heads_own_branch_are_in_its_reflog(repo: Repo) -> None:
    before = len(repo.branches.reflog())
    for line in (repo.line("idea"), repo.line("refs/heads/other")):
        line.append("user", "a")
        line.annotate("HEAD.0", labels="x")
        with line.batch("several") as draft:
            draft.append("user", "b")
    assert len(repo.branches.reflog()) == before
    assert len(repo.branches.reflog("idea")) == 3
    repo.line("main").append("assistant", "by its name")
    assert len(repo.branches.reflog()) == before + 1
    assert texts(repo) == ["on main", "by its name"]


def on_idea(repo: Repo, how: str) -> tuple[Line, dict[str, Any]]:
    return (repo, {"ref": "idea"}) if how == "ref" else (repo.line("idea"), {})


@pytest.mark.parametrize("how", ["line", "ref"])
def test_every_verb_of_messages_works_on_the_branch(repo: Repo, how: str) -> None:
    line, on = on_idea(repo, how)
    tip = repo.resolve("HEAD")
    first = line.append("user", "a", message="asked", meta={"ticket": "T-1"}, **on).addresses[0]
    line.commit([Message("assistant", [ToolCall("c", "look", "{}")])], **on)
    line.commit([Message("tool", [ToolResult("c", "seen")])], message="looked", **on)
    last = line.append("assistant", "b", **on).addresses[0]
    for change in (
        line.edit(first, "a, reworded", message="clearer", meta={"by": "review"}, **on),
        line.annotate(first, priority="pinned", keep="a", labels="task", message="pin", **on),
        line.remove(last, ghost=True, message="not needed", **on),
        line.restore(last, message="needed", **on),
        line.replace(last, [Message("assistant", "c")], reason="shorter", message="sum", **on),
        line.set_tools([{"name": "look", "parameters": {}}], message="tools", **on),
        line.record_usage({"input_tokens": 5, "output_tokens": 1}, model="m", **on),
    ):
        assert change.ref == "refs/heads/idea"
    assert line.move(first, last=True, message="later", **on).moved == (first,)
    assert [each.text for each in line.compile(**on)] == ["", "", "c", "a, reworded"]
    state = line.message(first, **on)
    assert (state.priority, [*state.labels], [*state.keep]) == ("pinned", ["task"], ["a"])
    assert (state.version, state.version_count, state.is_shown) == (1, 2, True)
    assert line.message(last, **on).unit == (last,)
    assert [each.text for each in line.versions(first, **on)] == ["a", "a, reworded"]
    (report,) = line.usage(**on)
    assert (report.fields["input_total"], report.model) == (5, "m")
    shown = repo.compression.in_full(last, ref="idea")
    assert "b" in [each.text for each in line.compile(compiler=shown, **on)]
    status = line.status(**on)
    assert (status.branch, status.summary) == ("idea", next(line.log(**on)).summary())
    assert [each.message for each in line.log(meta="ticket", **on)] == ["asked"]
    assert [each.message for each in line.log(follow=first, operation="edit", **on)] == ["clearer"]
    assert len(list(line.blame(**on))) == 4
    assert line.get("HEAD", **on).parents == next(line.log(limit=1, **on)).commit.parents
    assert len(line.diff("HEAD~1", **on).changes) == 1
    assert repo.resolve("HEAD") == tip


@pytest.mark.parametrize("how", ["line", "ref"])
def test_every_verb_of_history_works_on_the_branch(repo: Repo, how: str) -> None:
    repo.branches.create("idea")
    line, on = on_idea(repo, how)
    mine = line.append("user", "idea 1", **on)
    line.append("user", "idea 2", **on)
    other = repo.append("user", "main 2")
    assert line.merge("main", **on).outcome == "merged"
    (done,) = line.revert("HEAD", **on).made
    assert done.ref == "refs/heads/idea"
    assert "main 2" not in texts(repo.line("idea"))
    assert line.reset("HEAD~2", **on).ref == "refs/heads/idea"
    assert line.status(**on).is_staged_here
    assert not repo.status().staged
    assert line.commit_staged("again", **on).ref == "refs/heads/idea"
    line.reset(mine, hard=True, **on)
    assert line.cherry_pick(other, **on).ref == "refs/heads/idea"
    assert texts(repo.line("idea")) == ["on main", "idea 1", "main 2"]
    todo = repo.todo("main", ref="idea")
    assert [step.action for step in todo] == ["pick", "pick"]
    line.rebase("main", plan=lambda steps: [Step(DROP, steps[0].oid)], **on)
    assert (texts(repo), texts(repo.line("idea"))) == (["on main", "main 2"],) * 2
    assert repo.head.ref == "refs/heads/main"


def stopped_on_idea(repo: Repo, verb: str) -> Any:
    """Let a verb stop at conflicts on idea, while HEAD is on main."""
    asked = repo.compile().messages[0].address
    repo.branches.create("idea", force=True)
    idea = repo.line("idea")
    changed = idea.edit(asked, f"theirs, for a {verb}")
    repo.edit(asked, f"ours, at {idea.head.oid}")
    if verb == "revert":
        idea.edit(asked, "theirs, later")
        return idea.revert(changed)
    return getattr(idea, verb)("main")


@pytest.mark.parametrize("verb", ["merge", "cherry_pick", "rebase", "revert"])
def test_what_stopped_goes_on_where_it_began(repo: Repo, verb: str) -> None:
    found = stopped_on_idea(repo, verb)
    before = repo.line("idea").resolve("HEAD")
    assert (found.outcome, found.ref, len(found.conflicts)) == ("stopped", "refs/heads/idea", 1)
    with pytest.raises(StateError, match="stopped at conflicts, so it has no after"):
        found.after  # noqa: B018
    assert pending(repo).ref == "refs/heads/idea"
    repo.reset("HEAD", hard=True)  # moves another branch
    found.abort()
    assert (repo.in_progress, repo.line("idea").resolve("HEAD")) == (None, before)
    with pytest.raises(StateError):
        found.continue_()
    found = stopped_on_idea(repo, verb)
    assert found.resolve("", "text", "both") == ()
    done = pending(repo).continue_()
    assert done.ref == "refs/heads/idea"
    assert texts(repo.line("idea"))[0] == "both"
    assert repo.in_progress is None
    assert repo.head.ref == "refs/heads/main"


def test_what_stopped_on_a_branch_that_is_gone_is_refused(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path, environment=ADA)
    repo.append("user", "on main")
    found = stopped_on_idea(repo, "revert")
    repo.branches.delete("idea", force=True)
    with pytest.raises(RefChangedError, match="refs/heads/idea no longer exists"):
        found.resolve("", "ours")
    found.abort()


def test_head_is_moved_by_the_repository_alone(repo: Repo) -> None:
    line = repo.line("idea")
    with pytest.raises(StateError, match="HEAD cannot be moved"):
        line.store.refs.set_head("refs/heads/main")
    for name in ("", "HEAD", "a..b", "refs/heads/"):
        with pytest.raises(InvalidRefNameError):
            repo.line(name)
    with pytest.raises(InvalidInputError, match="ref is text"):
        repo.append("user", "a", ref=7)  # type: ignore[arg-type]


WRONG: dict[str, tuple[str, Callable[[Any], object]]] = {
    "message": ("message", lambda repo: repo.append("user", "a", message=b"said")),
    "private": ("private", lambda repo: repo.edit("HEAD.0", "a", private="yes")),
    "ghost": ("ghost", lambda repo: repo.remove("HEAD.0", ghost="yes")),
    "version": ("version", lambda repo: repo.restore("HEAD.0", version="1")),
    "budget": ("budget", lambda repo: repo.compile(budget=-1)),
    "limit": ("limit", lambda repo: repo.log(limit=True)),
    "since": ("since", lambda repo: list(repo.log(since=[]))),
    "follow": ("follow", lambda repo: list(repo.log(follow=7))),
    "targets": ("targets", lambda repo: repo.annotate(7, labels="x")),
    "about": ("about", lambda repo: repo.record_usage({}, about=7)),
    "resolver": ("resolver", lambda repo: repo.merge("main", resolver="ours")),
    "plan": ("plan", lambda repo: repo.rebase(None, plan=[])),
    "hard": ("hard", lambda repo: repo.reset("HEAD", hard=1)),
    "path": ("path", lambda repo: Repo.open(7)),  # type: ignore[arg-type]
    "create": ("create", lambda repo: Repo.open(".", create=1)),  # type: ignore[arg-type]
    "address": ("address", lambda repo: repo.message(7)),
    "what": ("what", lambda repo: repo.get(7)),
    "start": ("start", lambda repo: repo.branches.create("x", 7)),
    "query": ("query", lambda repo: repo.search(7)),
    "test": ("test", lambda repo: repo.branches.bisect("x")),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_named(repo: Repo, case: str) -> None:
    argument, use = WRONG[case]
    tip = repo.resolve("HEAD")
    with pytest.raises(InvalidInputError, match=argument) as caught:
        use(repo)
    assert caught.value.argument == argument
    assert repo.resolve("HEAD") == tip


def test_a_budget_is_enforced_when_asked(repo: Repo) -> None:
    count = repo.compile().token_count
    assert repo.compile(budget=count, strict=True).token_count == count
    assert len(repo.compile(budget=1)) == 1
    with pytest.raises(BudgetError) as caught:
        repo.compile(budget=count - 1, strict=True)
    assert (caught.value.needed, caught.value.allowed) == (count, count - 1)


def test_results_and_entries_tell_tokens_and_what_was_redacted(repo: Repo) -> None:
    made = repo.append("user", f"the key is {SECRET}, and no other")
    (entry,) = repo.log(limit=1)
    assert made.token_count == entry.token_count > 4
    assert dict(made.redacted) == entry.redacted == {"anthropic-api-key": 1}
    plain = repo.annotate(made.addresses[0], labels="x")
    (entry,) = repo.log(limit=1)
    assert (plain.token_count, entry.token_count, entry.redacted) == (0, 0, {})


def test_contexts_are_of_one_type_whoever_made_them(repo: Repo) -> None:
    repo.append("assistant", "b")
    whole = repo.compile()
    for made in (
        repo.compile(strategy="messages"),
        repo.compile(compiler=lambda c: [Message("user", "x")]),
    ):
        assert type(whole) in type(made).__mro__
        assert (whole.has_addresses, made.has_addresses) == (True, False)
        assert len(made.prefix_hashes()) == len(made) == len(made.message_tokens())
        assert made.prefix_hash == made.prefix_hashes()[-1]
        assert made.token_count > made.text_token_count > 0
        assert tokens_before(made, len(made)) == sum(count for count, _ in made.message_tokens())
        assert made.reported_token_count is None


def test_objects_are_values(repo: Repo) -> None:
    tag = repo.tags.create("v1", message="first")
    commit = repo.get(tag.target)
    assert repo.get("v1").target == tag.target
    blob = commit.operations[0].fields["messages"][0]["parts"][0]["blob"]
    assert repo.get(blob.hex()) == b"on main"
    assert repo.message("HEAD.0").message.parts == (Text("on main"),)


def test_opening_creates_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(RepositoryNotFoundError):
        Repo.open(tmp_path, environment=ADA)
    with Repo.open_or_init(tmp_path, environment=ADA, durability="fast") as repo:
        repo.append("user", "a")
        assert repo.store.durability == "fast"
    assert len(Repo.open(tmp_path, environment=ADA).compile()) == 1


WORKER = """
import sys
from trace_store import Environment, Repo
folder, name = sys.argv[1:]
with Repo.open(folder, environment=Environment(author=name)) as repo:
    line = repo.line(name)
    for number in range(20):
        line.append("user", f"{name} {number}")
        line.annotate("HEAD.0", labels=name)
"""


def test_threads_and_processes_work_on_lines_of_their_own(tmp_path: Path) -> None:
    Repo.init(tmp_path, environment=ADA).close()
    processes = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), name]) for name in ("p", "q")
    ]

    def work(name: str) -> None:
        with Repo.open(tmp_path, environment=ADA) as repo:
            for number in range(20):
                repo.append("user", f"{name} {number}", ref=name)
                repo.line("shared").append("user", f"{name} {number}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ("t", "u")))
    assert [each.wait() for each in processes] == [0, 0]
    with Repo.open(tmp_path, environment=ADA) as repo:
        for name in "pqtu":
            assert texts(repo.line(name)) == [f"{name} {number}" for number in range(20)]
        assert len(texts(repo.line("shared"))) == 40
        assert repo.head.oid is None
        assert repo.maintenance.fsck() == []


def test_a_branch_that_was_not_imported_has_the_title_that_it_is_given() -> None:
    with Repo.memory() as repo:
        repo.append("user", "first")
        repo.branches.create("idea")
        assert repo.sessions.rename("idea", "A better idea").title == "A better idea"
        assert "A better idea" in [each.title for each in repo.sessions.list()]
        assert repo.sessions.titles("refs/heads/idea") == {"refs/heads/idea": "A better idea"}


def test_a_branch_without_a_commit_replaces_none() -> None:
    with Repo.memory() as repo:
        repo.line("old").append("user", "kept")
        for force in (False, True):
            with pytest.raises(AlreadyExistsError):
                repo.branches.rename("main", "old", force=force)
        assert repo.head.ref == "refs/heads/main"


def test_a_stopped_merge_can_be_copied() -> None:
    with Repo.memory() as repo:
        asked = repo.append("user", "a").addresses[0]
        repo.branches.create("theirs")
        repo.edit(asked, "ours")
        repo.line("theirs").edit(asked, "theirs")
        stopped = repo.merge("theirs")
        assert copy.copy(stopped).outcome == "stopped"
