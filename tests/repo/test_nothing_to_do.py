"""A verb that would change nothing says so and writes nothing, on any branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.lines import LINES, repo_and_line
from trace_store import Message, Repo, Text, ToolCall, ToolResult, record
from trace_store.errors import InvalidInputError
from trace_store.objects.address import Address
from trace_store.repo.line import Line

TOOLS = [{"name": "Read", "parameters": {}}]
LONG = "word " * 400

Verb = Callable[[Repo, Line, Address], Any]


def name_of(line: Line) -> str:
    assert line.head.ref is not None
    return line.head.ref.removeprefix("refs/heads/")


TWICE: dict[str, Verb] = {
    "edit": lambda _, line, at: line.edit(at, "said better"),
    "pin": lambda _, line, at: line.annotate(at, priority="pinned"),
    "important": lambda _, line, at: line.annotate(at, priority="important", keep="42"),
    "normal": lambda _, line, at: line.annotate(at, priority="normal"),
    "skip": lambda _, line, at: line.annotate(at, priority="skip"),
    "label": lambda _, line, at: line.annotate(at, labels=["decision", "api"]),
    "unlabel": lambda _, line, at: line.annotate(at, unlabels="decision"),
    "remove": lambda _, line, at: line.remove(at),
    "remove --ghost": lambda _, line, at: line.remove(at, ghost=True),
    "restore": lambda _, line, at: line.restore(at),
    "restore --version": lambda _, line, at: line.restore(at, version=0),
    "replace": lambda _, line, at: line.replace([*{at, *hidden(line)}], []),
    "move": lambda _, line, at: line.move(at, last=True),
    "tools": lambda _, line, at: line.set_tools(TOOLS),
    "expand": lambda repo, line, at: repo.compression.expand(at, ref=name_of(line)),
    "trim": lambda repo, line, at: repo.compression.trim(100_000, ref=name_of(line)),
    "dedupe": lambda repo, line, at: repo.compression.dedupe(ref=name_of(line)),
    "compress": lambda repo, line, at: repo.compression.compress(100_000, ref=name_of(line)),
    "reset": lambda _, line, at: line.reset("HEAD"),
    "reset --hard": lambda _, line, at: line.reset("HEAD", hard=True),
    "branch -f": lambda repo, line, at: repo.branches.create("new", name_of(line), force=True),
    "branch -m": lambda repo, line, at: repo.branches.rename(name_of(line), name_of(line)),
    "branch -u": lambda repo, line, at: repo.branches.track(name_of(line), "upstream"),
    "branch --unset-upstream": lambda repo, line, at: repo.branches.track(name_of(line), None),
    "tag -f": lambda repo, line, at: repo.tags.create("v1", line.resolve("HEAD"), force=True),
    "switch": lambda repo, line, at: repo.branches.switch(name_of(line)),
    "switch -C": lambda repo, line, at: repo.branches.switch(
        name_of(line), create=True, force=True, start=line.resolve("HEAD")
    ),
    "checkpoint restore": lambda repo, line, at: repo.checkpoints.restore(
        name_of(line), ref=name_of(line)
    ),
}
"""Verbs whose second run has nothing to do."""
REWRITES: dict[str, Verb] = {
    "merge": lambda _, line, at: line.merge("upstream"),
    "rebase": lambda _, line, at: line.rebase("upstream"),
    "cherry-pick": lambda _, line, at: line.cherry_pick("upstream"),
    "cherry-pick of a merge": lambda _, line, at: line.cherry_pick("merged"),
    "revert": lambda _, line, at: line.revert("HEAD"),
}
"""Verbs that say `up-to-date`."""


def hidden(line: Line) -> list[Address]:
    state = line.contexts.fold(line.resolve("HEAD"))
    return [entry.address for entry in state.entries if entry.hidden]


def prepared(name: str) -> tuple[Repo, Line, Address]:
    repo, line = repo_and_line(name)
    line.append("user", "a question")
    line.commit([Message("assistant", [ToolCall("c", "Read", '{"path": "a"}')])])
    line.commit([Message("tool", [ToolResult("c", [Text("the text")])])])
    at = line.append("user", "a wording").addresses[0]
    repo.branches.create("upstream", line.resolve("HEAD"))
    line.append("assistant", "the end")
    repo.checkpoints.save(name, ref=name)
    return repo, line, at


def everything(repo: Repo) -> tuple[object, ...]:
    entries = [
        (each.message, each.time) for each in repo.operations(everyone=True) if each.can_be_undone
    ]
    return dict(repo.store.refs.iterate_tips()), repo.head, len(entries), entries[:3]


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", TWICE)
def test_the_second_time_nothing_is_done(name: str, verb: str) -> None:
    repo, line, at = prepared(name)
    TWICE[verb](repo, line, at)
    before = everything(repo)
    done = TWICE[verb](repo, line, at)
    found = record(done)
    assert found["changed"] is False
    assert everything(repo) == before
    if found.get("commit") is not None and "message_count" in found:
        assert (found["commit"], found["message_count"]) == (str(line.resolve("HEAD")), 0)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", TWICE)
def test_what_changes_something_says_so(name: str, verb: str) -> None:
    """The same verbs, once: what says that it changed nothing did not."""
    repo, line, at = prepared(name)
    before = everything(repo)
    changed = record(TWICE[verb](repo, line, at))["changed"]
    assert (everything(repo) != before or verb.startswith("branch -u")) == changed


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", REWRITES)
def test_what_is_there_is_not_brought_again(name: str, verb: str) -> None:
    repo, line, at = prepared(name)
    line.merge("upstream")
    repo.branches.create("aside", line.resolve("HEAD~1"))
    aside = repo.line("aside")
    aside.append("user", "aside")
    made = aside.merge(name, strategy="ours")
    assert made.outcome == "merged"
    repo.branches.create("merged", "aside")
    if verb == "revert":
        line.revert("HEAD")
        line.record_usage({"input_tokens": 1, "output_tokens": 1})
    before = everything(repo)
    done = record(REWRITES[verb](repo, line, at))
    assert (done["outcome"], done["commit"]) == ("up-to-date", str(line.resolve("HEAD")))
    assert everything(repo) == before


@pytest.mark.parametrize("name", LINES)
def test_a_batch_of_nothing_writes_nothing_and_a_batch_of_something_everything(name: str) -> None:
    _, line, at = prepared(name)
    tip = line.resolve("HEAD")
    with line.batch() as draft:
        draft.annotate([at], priority="normal")
        draft.edit(at, "a wording")
    assert draft.result is not None
    assert not draft.result.changed
    assert draft.result.oid == line.resolve("HEAD") == tip
    with line.batch() as draft:
        draft.annotate([at], priority="normal")
        draft.remove(at)
    assert draft.result is not None
    assert draft.result.changed
    assert line.message(at).hidden == "removed"


@pytest.mark.parametrize("name", LINES)
def test_a_commit_that_records_a_fact_is_written(name: str) -> None:
    _, line, at = prepared(name)
    line.annotate(at, priority="pinned")
    tip = line.resolve("HEAD")
    assert line.annotate(at, priority="pinned", meta={"ticket": "T-1"}).changed
    assert line.resolve("HEAD~1") == tip


@pytest.mark.parametrize("name", LINES)
def test_a_whole_unit_counts_not_the_named_message_alone(name: str) -> None:
    """The result of a pinned call is pinned, too."""
    _, line, _ = prepared(name)
    call, result = [m.address for m in line.compile().messages if m.role != "user"][1:3]
    assert line.annotate(call, priority="pinned").changed
    assert not line.annotate(result, priority="pinned").changed
    assert line.remove(result).changed
    assert not line.remove(call).changed


@pytest.mark.parametrize("name", LINES)
def test_nothing_to_do_on_a_detached_head(name: str) -> None:
    repo, line, at = prepared(name)
    repo.branches.checkout(line.resolve("HEAD"))
    assert repo.annotate(at, priority="pinned").changed
    tip = repo.head.oid
    done = repo.annotate(at, priority="pinned")
    assert (done.changed, done.oid, done.ref, repo.head.oid) == (False, tip, None, tip)


@pytest.mark.parametrize("name", LINES)
def test_a_dedupe_says_dedupe(name: str) -> None:
    repo, line = repo_and_line(name)
    for call in ("c1", "c2"):
        line.append("user", "read it")
        line.commit([Message("assistant", [ToolCall(call, "Read", '{"path": "a.txt"}')])])
        line.commit([Message("tool", [ToolResult(call, [Text(LONG)])])])
    line.append("user", "and now?")
    line.append("assistant", "done")
    done = repo.compression.dedupe(ref=name)
    assert done.changed
    entry = next(iter(line.log(limit=1)))
    assert entry.message.startswith("dedupe: ")


@pytest.mark.parametrize("argument", ["start", "force"])
def test_a_switch_refuses_an_argument_that_it_would_ignore(argument: str) -> None:
    repo, _ = repo_and_line("other")
    options: dict[str, dict[str, Any]] = {"start": {"start": "HEAD"}, "force": {"force": True}}
    with pytest.raises(InvalidInputError, match=f"{argument} requires create") as told:
        repo.branches.switch("other", **options[argument])
    assert told.value.argument == argument
    assert repo.head.ref == "refs/heads/main"


def test_settings_and_titles() -> None:
    repo, _ = repo_and_line("other")
    assert [repo.configure("budget", given) for given in (1000, "1k", None, None)] == [
        *(True, False),
        *(True, False),
    ]
    assert [repo.sessions.rename("other", "A title").changed for _ in range(2)] == [True, False]
    before = everything(repo)
    assert not repo.sessions.rename("other", "A title").changed
    assert everything(repo) == before


def test_an_amendment_of_nothing_is_no_event() -> None:
    repo, _ = repo_and_line("main")
    state = repo.trajectories.start("a task")
    made = repo.trajectories.decide("how?", "so", trajectory=state.id)
    amendments: list[dict[str, Any]] = [
        {"event": made.event.id.hex, "reasoning": "because"},
        {"title": "another"},
    ]
    for given in amendments:
        assert repo.trajectories.amend(trajectory=state.id, **given).changed
        count = len(repo.trajectories.read(state.id).events)
        assert not repo.trajectories.amend(trajectory=state.id, **given).changed
        assert len(repo.trajectories.read(state.id).events) == count
