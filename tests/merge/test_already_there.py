"""Reapplied or copied commits are merged only once; validation of rebase plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.merge.support.lines import ADA, pending, said
from tests.support.lines import LINES, repo_and_line
from trace_store import FixedClock, ObjectId, Repo
from trace_store.errors import ConflictError, InvalidInputError
from trace_store.merge import in_progress
from trace_store.merge.todo import PICK, SQUASH, Step
from trace_store.repo.line import Line


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """`main` with m, `side` with s1 and s2 beside it, both on q."""
    repo = Repo.init(tmp_path, environment=ADA, clock=FixedClock(step=1000))
    repo.append("user", "q")
    repo.branches.create("side")
    repo.append("user", "m")
    repo.branches.switch("side")
    repo.append("user", "s1")
    repo.append("user", "s2")
    return repo


def test_a_branch_on_a_branch_follows_its_rebase(repo: Repo) -> None:
    second = repo.compile().messages[-1].address
    repo.annotate(second, priority="pinned")
    repo.branches.switch("topic", create=True)
    repo.append("user", "t")
    repo.edit(second, "s2, reworded")
    repo.branches.switch("side")
    assert repo.rebase("main").there == ()
    repo.branches.switch("topic")
    found = repo.rebase("side")
    assert (len(found.made), len(found.there)) == (2, 3)
    assert said(repo) == ["q", "m", "s1", "s2, reworded", "t"]
    assert repo.compile().messages[3].priority == "pinned"
    assert second == repo.compile().messages[3].address


def test_what_is_said_of_a_copy_is_said_of_what_it_is_made_anew_as(repo: Repo) -> None:
    """The pin already exists, but on the original of the copy."""
    repo.branches.create("before")
    repo.annotate(repo.compile().messages[-1].address, priority="pinned")
    repo.branches.create("pinned")
    repo.rebase("main")
    copy = repo.compile().messages[-1].address
    repo.merge("before")
    repo.rebase("pinned")
    pinned = [each.address for each in repo.compile().messages if each.priority == "pinned"]
    assert copy in pinned


def test_what_was_squashed_is_there_where_its_message_is(repo: Repo) -> None:
    """The first squashed commit added no message; later changes still apply."""
    repo.branches.switch("main")
    repo.branches.switch("label", create=True)
    repo.annotate(repo.compile().messages[0].address, labels="decision")
    repo.append("user", "l")
    repo.branches.create("apart")
    repo.rebase(
        "main~1",
        plan=lambda steps: [steps[0], Step(PICK, steps[1].oid), Step(SQUASH, steps[2].oid)],
    )
    repo.edit(repo.compile().messages[-1].address, "l, reworded")
    found = repo.rebase("apart")
    assert (found.outcome, len(found.made)) == ("done", 1)
    assert said(repo) == ["q", "m", "l, reworded"]


def test_back_on_what_it_was_before_a_rebase(repo: Repo) -> None:
    repo.branches.create("before")
    repo.rebase("main")
    repo.append("user", "s3")
    found = repo.rebase("before")
    assert (len(found.made), len(found.there)) == (2, 2)
    assert said(repo) == ["q", "s1", "s2", "m", "s3"]


def test_a_pick_that_was_written_is_not_written_again(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repo.compile().messages[0].address
    repo.edit(first, "q, reworded")
    repo.branches.switch("main")
    repo.edit(first, "q, otherwise")
    repo.cherry_pick("side")
    pending(repo).resolve("all", "theirs")
    with monkeypatch.context() as killed:
        killed.setattr(in_progress, "clear_stop", lambda _: None)  # the process ends before it
        assert pending(repo).continue_().outcome == "done"
    tip = repo.resolve("HEAD")
    assert pending(repo).continue_().outcome == "up-to-date"
    assert (repo.resolve("HEAD"), repo.in_progress) == (tip, None)


@pytest.mark.parametrize("onto", ["side", "side~1", "main"])
def test_commits_do_not_go_on_themselves(repo: Repo, onto: str) -> None:
    repo.annotate(repo.compile().messages[-1].address, priority="pinned")
    repo.branches.switch("main")
    repo.merge("side~1")
    repo.branches.switch("side")
    before = said(repo)
    found = repo.rebase("main~1^1", onto=onto, plan=lambda every: list(reversed(every)))
    assert said(repo) == (before if onto != "main" else ["q", "m", "s1", "s2"])
    assert [old == new for old, new, _ in found.there].count(True) == len(found.there)
    assert repo.compile().messages[-1].priority == "pinned"


@pytest.mark.parametrize("name", ["v1.0", "v1.9"])
def test_a_tag_that_ends_in_a_number_is_a_commit(repo: Repo, name: str) -> None:
    repo.tags.create(name, "side~1")
    repo.branches.create("v1", "side")
    repo.branches.switch("main")
    repo.cherry_pick(name)
    assert said(repo) == ["q", "m", "s1"]


@pytest.mark.parametrize("copied", ["side~1", "side", "side~2..side"])
def test_what_was_picked_is_not_made_anew(repo: Repo, copied: str) -> None:
    repo.branches.switch("main")
    repo.cherry_pick(copied)
    repo.branches.switch("side")
    found = repo.rebase("main")
    assert len(found.there) == (2 if ".." in copied else 1)
    assert sorted(said(repo)) == ["m", "q", "s1", "s2"]
    assert repo.rebase("main").outcome == "up-to-date"


def test_copies_are_not_made_anew_on_what_they_were_made_from(repo: Repo) -> None:
    repo.branches.switch("main")
    repo.cherry_pick("side~2..side")
    repo.append("user", "later")
    found = repo.rebase("side")
    assert (len(found.made), len(found.there)) == (2, 2)
    assert said(repo) == ["q", "s1", "s2", "m", "later"]


def test_what_a_squash_was_made_of_is_there_and_a_part_of_one_is_not_the_whole(repo: Repo) -> None:
    repo.branches.switch("topic", create=True)
    repo.append("user", "t")
    repo.branches.switch("side")

    def squashed(steps: Sequence[Step]) -> Sequence[Step]:
        return [steps[0], Step(SQUASH, steps[1].oid)]

    repo.rebase("main", plan=squashed)
    repo.branches.switch("topic")
    repo.branches.create("parts")
    assert len(repo.rebase("side").there) == 2
    assert said(repo) == ["q", "m", "s1", "s2", "t"]
    repo.branches.switch("side")
    repo.reset("main", hard=True)
    repo.cherry_pick("parts~2")  # s1 alone
    repo.branches.switch("topic")
    assert repo.rebase("side").there == ()


def test_a_plan_leaves_nothing_out_unseen(repo: Repo) -> None:
    repo.annotate("HEAD.0", priority="pinned")
    before = said(repo)
    with pytest.raises(ConflictError, match="a pinned message would be dropped"):
        repo.rebase("main", plan=lambda steps: [])
    assert said(repo) == before
    assert len(repo.rebase("main", plan=lambda steps: [], drop_pinned=True).dropped) == 3
    assert said(repo) == ["q", "m"]


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (lambda s: [s[0], s[0], s[1]], "is repeated"),
        (lambda s: [Step("nonsense", s[0].oid)], "not one of pick"),
        (lambda s: [Step(SQUASH, s[0].oid), s[1]], "the first commit cannot be squashed"),
    ],
)
def test_an_unsound_plan_is_refused(repo: Repo, plan: object, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        repo.rebase("main", plan=plan)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="not a commit of the range"):
        repo.rebase("main", plan=lambda _: [Step(PICK, repo.resolve("main"))])
    assert said(repo) == ["q", "s1", "s2"]


def test_a_squash_of_what_another_line_squashed_comes_in_once(repo: Repo) -> None:
    repo.branches.switch("other", create=True)
    repo.reset("main", hard=True)
    repo.append("user", "o")
    repo.merge("side", squash=True)
    repo.branches.switch("main")
    repo.merge("side", squash=True)
    repo.merge("other")
    assert sorted(said(repo)) == ["m", "o", "q", "s1", "s2"]


@pytest.fixture
def with_third(repo: Repo) -> Repo:
    """`side` has merged `third`, with t1 and t2, and continues; HEAD is on main."""
    repo.branches.switch("third", create=True)
    repo.reset("main~1", hard=True)
    repo.append("user", "t1")
    repo.append("user", "t2")
    repo.branches.switch("side")
    repo.merge("third")
    repo.append("user", "s3")
    repo.branches.switch("main")
    return repo


def test_what_a_merge_said_of_what_it_brought_is_said_of_the_copies(with_third: Repo) -> None:
    repo = with_third
    repo.branches.switch("side")
    repo.reset("HEAD~2", hard=True)
    first = repo.compile("third").messages[1].address
    repo.edit(repo.compile().messages[0].address, "q, reworded")
    repo.merge("third", fast_forward="never")
    repo.edit(first, "t1, reworded")
    repo.branches.switch("main")
    repo.cherry_pick("main..side")
    assert said(repo) == ["q, reworded", "m", "s1", "s2", "t1, reworded", "t2"]


def appended(line: Line) -> ObjectId:
    return line.append("user", "new").oid


def edited(line: Line) -> ObjectId:
    return line.edit(line.compile().messages[0].address, "Be very brief.").oid


def pinned(line: Line) -> ObjectId:
    return line.annotate(line.compile().messages[0].address, priority="pinned").oid


def measured(line: Line) -> ObjectId:
    return line.record_usage({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}).oid


def configured(line: Line) -> ObjectId:
    with line.batch() as draft:
        draft.configure(settings={"temperature": 1})
    assert draft.result is not None
    return draft.result.oid


def merged_without_change(line: Line) -> ObjectId:
    line.append("user", "theirs", ref="merged")
    oid = line.merge("merged", strategy="ours").after
    assert oid is not None
    return oid


def merged_again(line: Line) -> ObjectId:
    line.append("user", "theirs", ref="merged")
    line.cherry_pick("merged")
    oid = line.merge("merged").after
    assert oid is not None
    return oid


CHANGES = [appended, edited, pinned, measured, configured, merged_without_change, merged_again]


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_pick_of_what_is_already_there_makes_no_commit(
    name: str, change: Callable[[Line], ObjectId]
) -> None:
    repo, line = repo_and_line(name)
    for each in ("side", "merged"):
        repo.branches.create(each, name)
    oid = change(repo.line("side"))
    line.append("user", "ours")
    line.cherry_pick(str(oid))
    for picking in (line, repo.line("side")):  # from another branch, and from its own history
        tip = picking.resolve("HEAD")
        found = picking.cherry_pick(str(oid))
        assert (found.outcome, found.there, found.made) == ("up-to-date", (oid,), ())
        assert (found.after, picking.resolve("HEAD")) == (tip, tip)
    copies = line.cherry_pick(f"{name}~1", str(oid))
    assert (copies.outcome, copies.made) == ("up-to-date", ())


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("change", [merged_without_change, merged_again])
def test_a_pick_of_a_merge_that_changed_nothing_makes_no_commit(
    name: str, change: Callable[[Line], ObjectId]
) -> None:
    repo, line = repo_and_line(name)
    for each in ("side", "merged"):
        repo.branches.create(each, name)
    oid = change(repo.line("side"))
    tip = line.resolve("HEAD")
    found = line.cherry_pick(str(oid))
    assert (found.outcome, found.there, line.resolve("HEAD")) == ("up-to-date", (oid,), tip)


def test_a_rebase_leaves_out_usage_that_was_picked(repo: Repo) -> None:
    usage = repo.record_usage({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6})
    repo.cherry_pick(str(usage.oid), ref="main")
    found = repo.rebase("main")
    assert (len(found.made), found.there) == (2, (usage.oid,))
