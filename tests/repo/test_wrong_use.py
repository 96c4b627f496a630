"""Common mistakes of agent authors: clear errors or the obvious result, no damage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, pending, said
from trace_store import FixedClock, Message, Repo, Store
from trace_store.errors import (
    ClosedError,
    ConflictError,
    InvalidInputError,
    InvalidOperationError,
    RevisionNotFoundError,
    StateError,
    TraceError,
)
from trace_store.merge.conflicts import Resolution
from trace_store.merge.todo import Step


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """`main` with a and b."""
    repo = Repo.init(tmp_path, environment=ADA, clock=FixedClock(step=1000))
    repo.append("user", "a")
    repo.append("assistant", "b")
    return repo


@pytest.fixture
def stopped(repo: Repo) -> Repo:
    """A merge that waits, since both sides reworded a."""
    target = repo.compile().messages[0].address
    repo.branches.create("idea")
    repo.edit(target, "mine")
    repo.branches.switch("idea")
    repo.edit(target, "yours")
    repo.branches.switch("main")
    assert repo.merge("idea").outcome == "stopped"
    return repo


def test_usage_is_about_any_revision(repo: Repo) -> None:
    counts = {"input_tokens": 1, "output_tokens": 1}
    repo.record_usage(counts, about="HEAD~1")
    repo.record_usage(counts, about=repo.resolve("HEAD"))
    for wrong in ("nothing", ""):
        with pytest.raises((RevisionNotFoundError, InvalidInputError)):
            repo.record_usage(counts, about=wrong)
    with pytest.raises(InvalidInputError):
        repo.record_usage(counts, about=7)  # type: ignore[arg-type]
    assert said(repo) == ["a", "b"]


def test_a_repository_that_cannot_be_opened_stays_closed(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.close()
    closed: list[str] = []
    monkeypatch.setattr(Store, "close", lambda store: closed.append(store.layout.root))
    with pytest.raises(InvalidInputError):
        Repo.open(tmp_path, environment=ADA, secrets="unknown")
    assert closed == [repo.store.layout.root]


def test_a_compiler_is_not_ignored(repo: Repo) -> None:
    assert len(repo.compile(compiler=lambda _: [Message("user", "a")])) == 1
    with pytest.raises(InvalidInputError, match="strategy 'messages'"):
        repo.compile(strategy="messages", compiler=lambda _: [Message("user", "a")])


NO_NAMES: Sequence[Any] = (None, 7, b"main", ["main"], {})


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_is_a_text(repo: Repo, name: Any) -> None:
    repo.tags.create("kept")
    for use in (
        lambda: repo.branches.create(name),
        lambda: repo.branches.switch(name),
        lambda: repo.branches.rename("main", name),
        lambda: repo.branches.rename(name, "other"),
        lambda: repo.branches.delete(name),
        lambda: repo.branches.track(name, "main"),
        lambda: repo.tags.create(name),
        lambda: repo.tags.delete(name),
        lambda: repo.branches.reflog(name),
    ):
        with pytest.raises(InvalidInputError):
            use()
    assert [each.name for each in repo.branches.list()] == ["main"]


@pytest.mark.parametrize("path", [7, b"x", ["x"]])
def test_a_path_is_named_when_it_is_none(repo: Repo, path: Any) -> None:
    for argument, use in (
        ("path", lambda: Repo.init(path)),
        ("path", lambda: Repo.open(path)),
        ("directory", lambda: Repo.open(".", directory=path)),
        ("paths", lambda: repo.transcripts.import_(path)),
        ("folder", lambda: repo.transcripts.discover(path)),
        ("path", lambda: repo.sessions.export("main", path=path)),
        ("folder", lambda: repo.sessions.export_pages(path)),
        ("folder", lambda: repo.transcripts.export_originals(path)),
        ("source", lambda: repo.maintenance.repair(source=path)),
        ("path", lambda: repo.maintenance.scan_files(path)),
        ("file", lambda: repo.bundles.create(path)),
        ("file", lambda: repo.bundles.import_(path)),
        ("file", lambda: repo.bundles.verify(path)),
        ("file", lambda: repo.bundles.list(path)),
    ):
        with pytest.raises(InvalidInputError, match=f"^{argument} is a path"):
            use()


def test_a_bundle_may_be_named_by_any_path(repo: Repo, tmp_path: Path) -> None:
    file = tmp_path / "main.bundle"
    repo.bundles.create(file)
    assert repo.bundles.list(file).refs == repo.bundles.list(str(file)).refs
    repo.bundles.verify(file)
    assert repo.bundles.import_(file, prefix="copy").refs


@pytest.mark.parametrize("wrong", [7, b"x", ["x"], [], {}, "", ("x", 0), (b"x", "0")])
def test_an_address_is_that_of_a_message(repo: Repo, wrong: Any) -> None:
    first = repo.compile().messages[0].address
    for use in (
        lambda: repo.edit(wrong, "c"),
        lambda: repo.move(first, after=wrong),
    ):
        with pytest.raises(TraceError):
            use()
    assert said(repo) == ["a", "b"]


def test_nothing_is_no_wish(repo: Repo) -> None:
    """An empty call is a mistake of the caller."""
    before = repo.resolve("HEAD")
    favour: Any = None
    message: Any = b"said"
    one: Any = Message("user", "c")
    for use in (
        repo.revert,
        repo.cherry_pick,
        lambda: repo.branches.whohas(""),
        lambda: repo.merge("main", favour=favour),
        lambda: repo.commit([], message=message),
        lambda: repo.commit(one),
        lambda: repo.tags.create("t", message=message),
    ):
        with pytest.raises(TraceError):
            use()
    assert (repo.resolve("HEAD"), repo.tags.list()) == (before, [])


@pytest.mark.parametrize("reason", [b"summary", 1, ["summary"]])
def test_what_could_not_be_read_is_not_written(repo: Repo, reason: Any) -> None:
    target = repo.compile().messages[0].address
    with pytest.raises(InvalidOperationError, match="no valid reason"):
        repo.replace(target, [Message("user", "z")], reason=reason)
    with repo.batch() as draft, pytest.raises(InvalidOperationError, match="no valid about"):
        draft.record_usage({"input_tokens": 1, "output_tokens": 1}, about="HEAD")  # type: ignore[arg-type]
    assert said(repo) == ["a", "b"]


def test_a_plan_that_takes_its_time_loses_nothing(repo: Repo) -> None:
    def plan(steps: Sequence[Step]) -> Sequence[Step]:
        repo.append("user", "said meanwhile")
        return steps

    repo.append("user", "c")
    repo.rebase("HEAD~2", plan=plan)
    assert said(repo) == ["a", "b", "c", "said meanwhile"]


def test_a_plan_may_be_an_iterator(repo: Repo) -> None:
    repo.append("user", "c")
    repo.rebase("HEAD~2", plan=lambda steps: reversed(steps))  # type: ignore[arg-type,return-value]
    assert said(repo) == ["a", "c", "b"]


@pytest.mark.parametrize("plan", [["pick"], [1], [Step("pick", "no id")]])  # type: ignore[arg-type]
def test_a_plan_of_something_else_is_refused(repo: Repo, plan: Any) -> None:
    with pytest.raises(InvalidInputError):
        repo.rebase("HEAD~1", plan=lambda _: plan)
    assert said(repo) == ["a", "b"]


def test_a_rebase_that_leaves_nothing_is_refused(repo: Repo) -> None:
    with pytest.raises(InvalidInputError, match="no commit would be left"):
        repo.rebase(None, plan=lambda _: [])
    repo.annotate(repo.compile().messages[0].address, priority="pinned")
    with pytest.raises(ConflictError, match="a pinned message would be dropped"):
        repo.rebase(None, plan=lambda _: [])
    assert said(repo) == ["a", "b"]


@pytest.mark.parametrize(
    ("how", "text"),
    [("text", None), ("text", 5), ("text", ""), (Resolution("text"), "late"), (None, ""), (7, "")],
)
def test_what_settles_nothing_is_refused(stopped: Repo, how: Any, text: Any) -> None:
    with pytest.raises(InvalidInputError):
        pending(stopped).resolve("1", how, text)
    with pytest.raises(InvalidInputError):
        pending(stopped).continue_(resolver=lambda _: how if how == "text" else True)  # type: ignore[arg-type,return-value]
    assert [each.number for each in pending(stopped).conflicts] == [1]
    assert pending(stopped).resolve("1", "theirs") == ()
    pending(stopped).continue_()
    assert said(stopped) == ["yours", "b"]


@pytest.mark.parametrize("by", ["number", "address", "conflict"])
def test_a_conflict_is_named_in_any_way(stopped: Repo, by: str) -> None:
    (conflict,) = pending(stopped).conflicts
    which = {"number": 1, "address": conflict.addresses[0], "conflict": conflict}[by]
    assert pending(stopped).resolve(which, "text", "ours") == ()  # type: ignore[arg-type]
    pending(stopped).continue_()
    assert said(stopped) == ["ours", "b"]


def test_a_closed_repository_answers_nothing(stopped: Repo) -> None:
    found = pending(stopped)
    stopped.close()
    for ask in (
        lambda: stopped.in_progress,
        lambda: found.conflicts,
        lambda: found.resolve("1", "ours"),
    ):
        with pytest.raises(ClosedError):
            ask()


def test_one_label_is_one_label(repo: Repo) -> None:
    target = repo.compile().messages[0].address
    repo.annotate(target, labels="decision", keep="a")
    entry = repo.contexts.fold(repo.resolve("HEAD")).entry(target)
    assert (entry.labels, len(entry.keep)) == (frozenset({"decision"}), 1)
    repo.annotate(target, unlabels="decision")
    assert not repo.contexts.fold(repo.resolve("HEAD")).entry(target).labels


def test_a_draft_takes_one_address_or_several(repo: Repo) -> None:
    target = repo.compile().messages[0].address
    with repo.batch() as draft:
        made = draft.append("user", "c")
        draft.annotate(made, priority="pinned")
        draft.annotate(target, priority="important")
        draft.move(target, after=made)
        draft.remove([target])
        with pytest.raises(InvalidInputError, match="expected message addresses"):
            draft.remove(7)  # type: ignore[arg-type]
    assert said(repo) == ["b", "c"]
    with pytest.raises(StateError, match="the draft is already written"):
        draft.append("user", "late")


WRONG: dict[str, Any] = {
    "a version that is text": lambda repo, a: repo.restore(a, version="1"),
    "a version below 0": lambda repo, a: repo.restore(a, version=-1),
    "a limit that is text": lambda repo, a: list(repo.log(limit="x")),
    "a limit below 0": lambda repo, a: list(repo.log(limit=-1)),
    "a limit below 0 of some": lambda repo, a: list(repo.log(limit=-1, role="user")),
    "a model that is a number": lambda repo, a: repo.compile(model=7),
    "a model of a diff": lambda repo, a: repo.diff("HEAD~1", model=7),
    "a model of the status": lambda repo, a: repo.status(model=7),
    "a pattern of branches": lambda repo, a: repo.branches.list(7),
    "tools that are no list": lambda repo, a: repo.set_tools(7),
    "a source that is nowhere": lambda repo, a: repo.replace([a], [], sources=[(bytes(32), 0)]),
    "a source without a message": lambda repo, a: repo.replace([a], [], sources=[(a[0], 9)]),
    "usage about what is nowhere": lambda repo, a: repo.record_usage(
        {"input_tokens": 1, "output_tokens": 1}, about=bytes(32)
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_meant_is_refused_and_writes_nothing(repo: Repo, what: str) -> None:
    tip = repo.resolve("HEAD")
    with pytest.raises(TraceError):
        WRONG[what](repo, repo.compile().messages[0].address)
    assert repo.resolve("HEAD") == tip
    assert said(repo) == ["a", "b"]


@pytest.mark.parametrize("wrong", [-7.5, b"x", [None], {1: 2}])
def test_an_argument_of_another_type_is_named(repo: Repo, wrong: Any) -> None:
    address = repo.compile().messages[0].address
    repo.checkpoints.save("start")
    repo.trajectories.start("Task")
    repo.trajectories.decide("How?", "so")
    for argument, use in (
        ("priority", lambda: repo.annotate(address, priority=wrong)),
        ("labels", lambda: repo.annotate(address, labels=wrong)),
        ("text", lambda: list(repo.log(text=wrong))),
        ("role", lambda: list(repo.line("main").log(role=wrong))),
        ("limit", lambda: repo.search("a", limit=wrong)),
        ("path", lambda: repo.search("a", path=wrong)),
        ("squash", lambda: repo.merge("HEAD", squash=wrong)),
        ("sent", lambda: repo.record_usage({"input_tokens": 1}, sent=wrong)),
        ("patterns", lambda: repo.branches.list(wrong)),
        ("patterns", lambda: repo.tags.list(wrong)),
        ("patterns", lambda: repo.checkpoints.list(wrong)),
        ("ref", lambda: repo.checkpoints.save("other", ref=wrong)),
        ("ref", lambda: repo.checkpoints.diff("start", wrong)),
        ("start", lambda: repo.forks.create("plan", start=wrong)),
        ("right", lambda: repo.forks.compare("main", wrong)),
        ("at", lambda: repo.sessions.read(at=wrong)),
        ("progress", lambda: repo.sessions.list(progress=wrong)),
        ("level", lambda: repo.bundles.create("main.bundle", level=wrong)),
        ("prefix", lambda: repo.bundles.import_("main.bundle", prefix=wrong)),
        ("grace_days", lambda: repo.maintenance.gc(grace_days=wrong)),
        ("plan", lambda: repo.maintenance.purge(wrong)),
        ("ids", lambda: repo.maintenance.allow_secrets(wrong)),
        ("kinds", lambda: repo.trash.list(kinds=wrong)),
        ("keep", lambda: repo.trash.expire(keep=wrong)),
        ("context", lambda: repo.compression.heat(wrong)),
        ("title", lambda: repo.trajectories.chapter(wrong)),
        ("chosen", lambda: repo.trajectories.decide("", wrong)),
        ("agent", lambda: repo.trajectories.record("note", "x", agent=wrong)),
        ("event", lambda: repo.trajectories.amend(wrong, confidence=0.5)),
        ("query", lambda: repo.trajectories.search(wrong)),
        ("target", lambda: repo.trajectories.why(wrong)),
        ("branch", lambda: repo.trajectories.capture.scan(wrong)),
        ("text", lambda: repo.trajectories.tasks.named(wrong)),
        ("path", lambda: repo.trajectories.exports.save_folder(wrong)),
        ("environment", lambda: Repo.open(".", environment=wrong)),
        ("author", lambda: Repo.memory(author=wrong)),
    ):
        if argument == "sent" and isinstance(wrong, bytes):
            continue
        with pytest.raises(InvalidInputError, match=f"^{argument} is ") as caught:
            use()
        assert caught.value.argument == argument
    assert said(repo) == ["a", "b"]


def test_a_text_that_no_message_holds_is_no_query(repo: Repo) -> None:
    for wrong in ("a\0b", "\udcff"):
        with pytest.raises(InvalidInputError, match=r"^query "):
            repo.search(wrong)
        with pytest.raises(InvalidInputError, match=r"^tool "):
            repo.search("a", tool=wrong)


def test_an_amendment_without_a_value_is_refused(repo: Repo) -> None:
    trajectories = repo.trajectories
    trajectories.start("Task")
    trajectories.decide("How?", "so", confidence=0.5)
    for empty in ({"confidence": None}, {"reasoning": ""}):
        with pytest.raises(InvalidInputError, match="nothing to change"):
            trajectories.amend("d1", **empty)
    trajectories.record("amended", event=trajectories.read().decisions[0].id.hex)
    [decision] = trajectories.read().decisions
    assert decision.data["confidence"] == 0.5
