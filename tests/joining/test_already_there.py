"""Commits that are there already, made anew or copied, come in once; and the plan of a rebase is sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.joining.support.lines import ADA, said
from tests.stateful.support.pictures import Picture, faults, picture
from tests.support.valid_requests import assert_valid_requests
from trace_store import FixedClock, Message, Repo, Settlement, Text, ToolCall, ToolResult, context
from trace_store.errors import ConflictError, InvalidInputError
from trace_store.joining import Step, stops
from trace_store.joining.rewriting.todo import PICK, SQUASH
from trace_store.objects.commit import read_commit


def now_of(repo: Repo) -> Picture:
    """Return the context of HEAD."""
    read = repo.store.objects.read
    return picture(context.fold(repo.resolve("HEAD"), lambda oid: read_commit(oid, read)))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """`main` with m, `side` with s1 and s2 beside it, both on q."""
    repo = Repo.init(tmp_path, environment=ADA, clock=FixedClock(step=1000))
    repo.append("user", "q")
    repo.branch("side")
    repo.append("user", "m")
    repo.switch("side")
    repo.append("user", "s1")
    repo.append("user", "s2")
    return repo


def test_a_branch_on_a_branch_follows_its_rebase(repo: Repo) -> None:
    second = repo.compile().messages[-1].address
    repo.annotate(second, priority="pinned")
    repo.switch("topic", create=True)
    repo.append("user", "t")
    repo.edit(second, "s2, reworded")
    repo.switch("side")
    assert repo.rebase("main").there == ()
    repo.switch("topic")
    found = repo.rebase("side")
    assert (len(found.made), len(found.there)) == (2, 3)
    assert said(repo) == ["q", "m", "s1", "s2, reworded", "t"]
    assert repo.compile().messages[3].priority == "pinned"
    assert repo.rewritten(second) == repo.compile().messages[3].address


def test_what_is_said_of_a_copy_is_said_of_what_it_is_made_anew_as(repo: Repo) -> None:
    """The pin is there already, but on what the copy was made from."""
    repo.branch("before")
    repo.annotate(repo.compile().messages[-1].address, priority="pinned")
    repo.branch("pinned")
    repo.rebase("main")
    copy = repo.compile().messages[-1].address
    repo.merge("before")
    repo.rebase("pinned")
    pinned = [each.address for each in repo.compile().messages if each.priority == "pinned"]
    assert repo.rewritten(copy) in pinned


def test_what_was_squashed_is_there_where_its_message_is(repo: Repo) -> None:
    """The first of what was put together brought none; what is said of the message since follows it all the same."""
    repo.switch("main")
    repo.switch("label", create=True)
    repo.annotate(repo.compile().messages[0].address, labels="decision")
    repo.append("user", "l")
    repo.branch("apart")
    repo.rebase(
        "main~1",
        plan=lambda steps: [steps[0], Step(PICK, steps[1].oid), Step(SQUASH, steps[2].oid)],
    )
    repo.edit(repo.compile().messages[-1].address, "l, reworded")
    found = repo.rebase("apart")
    assert (found.outcome, len(found.made)) == ("done", 1)
    assert said(repo) == ["q", "m", "l, reworded"]


def test_back_on_what_it_was_before_a_rebase(repo: Repo) -> None:
    repo.branch("before")
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
    repo.switch("main")
    repo.edit(first, "q, otherwise")
    repo.cherry_pick("side")
    repo.settle("all", "theirs")
    with monkeypatch.context() as killed:
        killed.setattr(stops, "clear_stop", lambda _: None)  # the process ends before it
        assert repo.resume().outcome == "done"
    tip = repo.resolve("HEAD")
    assert repo.resume().outcome == "up-to-date"
    assert (repo.resolve("HEAD"), repo.waiting()) == (tip, None)


@pytest.mark.parametrize("onto", ["side", "side~1", "main"])
def test_commits_do_not_go_on_themselves(repo: Repo, onto: str) -> None:
    repo.annotate(repo.compile().messages[-1].address, priority="pinned")
    repo.switch("main")
    repo.merge("side~1")
    repo.switch("side")
    before = said(repo)
    found = repo.rebase("main~1^1", onto=onto, plan=lambda every: list(reversed(every)))
    assert said(repo) == (before if onto != "main" else ["q", "m", "s1", "s2"])
    assert [old == new for old, new, _ in found.there].count(True) == len(found.there)
    assert repo.compile().messages[-1].priority == "pinned"


@pytest.mark.parametrize("strategy", ["append", "interleave"])
def test_a_merge_shows_once_what_was_picked_before(repo: Repo, strategy: str) -> None:
    repo.switch("main")
    repo.cherry_pick("side")
    found = repo.merge("side", strategy=strategy)
    assert (found.included, found.hidden, found.again) == (2, 1, ())
    assert sorted(said(repo)) == ["m", "q", "s1", "s2"]
    repo.switch("side")
    repo.append("user", "s3")
    repo.switch("main")
    found = repo.merge("side", strategy=strategy)
    assert (found.included, found.hidden) == (1, 0)
    assert sorted(said(repo)) == ["m", "q", "s1", "s2", "s3"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_merge_shows_once_a_call_that_was_picked_with_its_result(repo: Repo, number: int) -> None:
    call = Message("assistant", [ToolCall("c", "look", "{}")])
    made = repo.commit([call, Message("tool", [ToolResult("c", "seen")]), Message("user", "s3")])
    repo.switch("main")
    repo.cherry_pick(f"{made.oid}.{number}", at="side")
    before = said(repo)
    found = repo.merge("side")
    assert (found.included, found.hidden, found.again) == (5, 2, ())
    assert said(repo) == [*before, "s1", "s2", "s3"]
    assert_valid_requests(repo.compile().messages)


def test_a_merge_shows_what_was_changed_since_it_was_picked(repo: Repo) -> None:
    second = repo.compile().messages[-1].address
    repo.switch("main")
    repo.cherry_pick("side")
    repo.switch("side")
    repo.edit(second, "s2, reworded")
    repo.switch("main")
    found = repo.merge("side")
    assert (found.included, found.hidden, found.again) == (2, 0, (second[0],))
    assert said(repo) == ["q", "m", "s2", "s1", "s2, reworded"]


def test_a_merge_shows_once_what_a_rebase_made_anew(repo: Repo) -> None:
    repo.branch("before")
    repo.rebase("main")
    found = repo.merge("before")
    assert (found.included, found.hidden) == (2, 2)
    assert said(repo) == ["q", "m", "s1", "s2"]


@pytest.mark.parametrize("name", ["v1.0", "v1.9"])
def test_a_tag_that_ends_in_a_number_is_a_commit(repo: Repo, name: str) -> None:
    repo.tag(name, "side~1")
    repo.branch("v1", "side")
    repo.switch("main")
    repo.cherry_pick(name)
    assert said(repo) == ["q", "m", "s1"]


@pytest.mark.parametrize("copied", ["side~1", "side", "side~2..side"])
def test_what_was_picked_is_not_made_anew(repo: Repo, copied: str) -> None:
    repo.switch("main")
    repo.cherry_pick(copied)
    repo.switch("side")
    found = repo.rebase("main")
    assert len(found.there) == (2 if ".." in copied else 1)
    assert sorted(said(repo)) == ["m", "q", "s1", "s2"]
    assert repo.rebase("main").outcome == "up-to-date"


def test_copies_are_not_made_anew_on_what_they_were_made_from(repo: Repo) -> None:
    repo.switch("main")
    repo.cherry_pick("side~2..side")
    repo.append("user", "later")
    found = repo.rebase("side")
    assert (len(found.made), len(found.there)) == (2, 2)
    assert said(repo) == ["q", "s1", "s2", "m", "later"]


def test_what_a_squash_was_made_of_is_there_and_a_part_of_one_is_not_the_whole(repo: Repo) -> None:
    repo.switch("topic", create=True)
    repo.append("user", "t")
    repo.switch("side")

    def squashed(steps: Sequence[Step]) -> Sequence[Step]:
        return [steps[0], Step(SQUASH, steps[1].oid)]

    repo.rebase("main", plan=squashed)
    repo.switch("topic")
    repo.branch("parts")
    assert len(repo.rebase("side").there) == 2
    assert said(repo) == ["q", "m", "s1", "s2", "t"]
    repo.switch("side")
    repo.reset("main", hard=True)
    repo.cherry_pick("parts~2")  # s1 alone
    repo.switch("topic")
    assert repo.rebase("side").there == ()


def test_a_message_that_is_there_is_not_brought_a_second_time_with_the_rest_of_its_commit(
    repo: Repo,
) -> None:
    several = repo.commit([Message("user", "x"), Message("user", "y")])
    repo.switch("main")
    copy = repo.cherry_pick(several.addresses[0]).made[0][1]
    repo.switch("side")
    repo.edit(several.addresses[0], "x, reworded")
    found = repo.rebase("main")
    assert found.there == ()
    assert found.present == ((several.addresses[0], (copy, 0)),)
    assert said(repo) == ["q", "m", "x, reworded", "s1", "s2", "y"]
    assert repo.rewritten(several.addresses[1]) == repo.compile().messages[-1].address


def test_what_one_squashed_oneself_is_there_on_what_it_is_of(repo: Repo) -> None:
    """A branch that took main in by a squash goes on main, and shows its messages once."""
    repo.switch("main")
    call = Message("assistant", [ToolCall("c", "look", "{}")])
    repo.commit([call, Message("tool", [ToolResult("c", "seen")])])
    pinned = repo.append("user", "pinned").addresses[0]
    repo.annotate(pinned, priority="pinned")
    repo.switch("side")
    repo.merge("main", squash=True)
    copies = [each.address for each in repo.compile().messages[-4:]]
    repo.append("user", "s3")
    repo.edit(copies[0], "m, reworded")
    before = sorted(said(repo))
    found = repo.rebase("main")
    assert (len(found.there), len(found.made), found.dropped) == (1, 4, ())
    assert [old for old, _ in found.present] == copies
    assert said(repo)[1] == "m, reworded"
    assert sorted(said(repo)) == before
    assert_valid_requests(repo.compile().messages)
    assert [each.address for each in repo.compile().messages if each.priority == "pinned"] == [
        pinned
    ]


def test_an_exchange_is_there_as_a_whole_or_not_at_all(repo: Repo) -> None:
    """A call was reworded while it was put together with others: its result is not hidden for what is there."""
    call = Message("assistant", [Text("Let me look."), ToolCall("c", "look", "{}")])
    made = repo.commit([call, Message("tool", [ToolResult("c", "seen")])])
    last = repo.append("user", "s3")
    repo.branch("as-it-was")
    deeds = ["pick", "pick", "edit", "squash"]
    repo.rebase(
        "main",
        plan=lambda s: [Step(deed, each.oid) for deed, each in zip(deeds, s, strict=True)],
        resolver=lambda c: Settlement("text", "I look.") if c.addresses[0][1] == 0 else "ours",
    )
    repo.switch("main")
    repo.cherry_pick(str(made.oid), str(last.oid))
    repo.switch("side")
    found = repo.rebase("main", favour="ours")
    assert found.outcome == "done"
    assert_valid_requests(repo.compile().messages)
    assert said(repo).count("s3") == 1
    assert not any(each[0] == "call without result" for each in faults(now_of(repo)))


def test_a_summary_of_a_copy_hides_what_it_is_of(repo: Repo) -> None:
    """Of a commit that was put together one part is there, and so is the summary that stands for that part."""
    part = repo.append("user", "s3")
    repo.branch("parts")
    repo.rebase(
        "main",
        plan=lambda s: [s[0], Step(PICK, s[1].oid), Step(SQUASH, s[2].oid)],
    )
    repo.branch("as-one")
    repo.switch("parts")
    repo.switch("main")
    repo.cherry_pick(str(part.oid))
    copied = repo.compile().messages[-1].address
    repo.replace([copied], [Message("user", "a summary of s3")])
    repo.switch("as-one")
    found = repo.rebase("main")
    assert [there for _, there in found.present] == [copied]
    assert said(repo) == ["q", "m", "a summary of s3", "s1", "s2"]


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
        (lambda s: [s[0], s[0], s[1]], "named again"),
        (lambda s: [Step("nonsense", s[0].oid)], "none of pick"),
        (lambda s: [Step(SQUASH, s[0].oid), s[1]], "no commit before the first"),
    ],
)
def test_an_unsound_plan_is_refused(repo: Repo, plan: object, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        repo.rebase("main", plan=plan)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="no commit of the range"):
        repo.rebase("main", plan=lambda _: [Step(PICK, repo.resolve("main"))])
    assert said(repo) == ["q", "s1", "s2"]


def test_old_addresses_are_understood_after_what_was_rebased_is_committed_as_one(
    repo: Repo,
) -> None:
    old = [message.address for message in repo.compile().messages[1:]]
    repo.rebase("main")
    repo.reset("main")
    tip = repo.commit_staged().oid
    assert [repo.rewritten(each) for each in old] == [(tip, 0), (tip, 1)]


def test_what_was_squashed_in_comes_in_once(repo: Repo) -> None:
    """A merge that squashes leaves copies; the line they are of may be merged, or go on top of them, all the same."""
    second = repo.compile().messages[-1].address
    repo.edit(second, "s2, reworded")
    repo.annotate(second, priority="pinned")
    repo.append("assistant", "s1")
    repo.switch("main")
    repo.merge("side", squash=True)
    once = ["q", "m", "s1", "s2, reworded", "s1"]
    assert said(repo) == once
    repo.branch("squashed")
    found = repo.merge("side")
    assert (found.included, found.hidden, found.again) == (3, 3, ())
    assert said(repo) == once
    repo.switch("side")
    repo.append("user", "s3")
    repo.branch("beside")
    rebased = repo.rebase("squashed")
    assert (len(rebased.made), len(rebased.there)) == (1, 5)
    assert said(repo) == [*once, "s3"]
    repo.switch("beside")
    assert repo.merge("squashed").hidden == 3
    assert said(repo) == ["q", "s1", "s2, reworded", "s1", "s3", "m"]


def test_what_is_squashed_again_brings_what_is_new(repo: Repo) -> None:
    repo.switch("main")
    repo.merge("side", squash=True)
    repo.switch("side")
    repo.append("user", "s1")
    repo.switch("main")
    found = repo.merge("side", squash=True)
    assert (found.outcome, found.included, found.again) == ("squashed", 1, ())
    assert said(repo) == ["q", "m", "s1", "s2", "s1"]
    assert repo.merge("side").hidden == 3
    assert said(repo) == ["q", "m", "s1", "s2", "s1"]


def test_a_squash_of_what_another_line_squashed_comes_in_once(repo: Repo) -> None:
    repo.switch("other", create=True)
    repo.reset("main", hard=True)
    repo.append("user", "o")
    repo.merge("side", squash=True)
    repo.switch("main")
    repo.merge("side", squash=True)
    repo.merge("other")
    assert sorted(said(repo)) == ["m", "o", "q", "s1", "s2"]


def test_a_squashed_exchange_comes_in_once(repo: Repo) -> None:
    repo.commit([Message("assistant", [ToolCall("c", "look", "{}")])])
    repo.commit([Message("tool", [ToolResult("c", "seen")]), Message("user", "s3")])
    repo.switch("main")
    repo.merge("side", squash=True)
    before = said(repo)
    assert repo.merge("side").hidden == 5
    assert said(repo) == before
    assert_valid_requests(repo.compile().messages)


def test_what_a_rebase_put_together_comes_in_once_either_way(repo: Repo) -> None:
    repo.branch("apart")
    repo.rebase("main", plan=lambda steps: [steps[0], Step(SQUASH, steps[1].oid)])
    repo.branch("together")
    assert repo.merge("apart").hidden == 2
    assert said(repo) == ["q", "m", "s1", "s2"]
    repo.switch("apart")
    assert repo.merge("together").hidden == 2
    assert said(repo) == ["q", "s1", "s2", "m"]


def test_a_copy_is_one_wherever_a_rebase_puts_it(repo: Repo) -> None:
    repo.switch("main")
    repo.append("user", "n")
    repo.cherry_pick("side")
    repo.rebase("main~2", plan=lambda steps: [steps[0], Step(SQUASH, steps[1].oid)])
    assert said(repo) == ["q", "m", "n", "s2"]
    found = repo.merge("side")
    assert (found.included, found.hidden) == (2, 1)
    assert said(repo) == ["q", "m", "n", "s2", "s1"]


def test_a_message_that_theirs_picked_from_ours_comes_in_once(repo: Repo) -> None:
    several = repo.commit([Message("user", "x"), Message("user", "y")])
    repo.switch("main")
    repo.cherry_pick(several.addresses[1])
    repo.switch("side")
    assert repo.merge("main").hidden == 1
    assert said(repo) == ["q", "s1", "s2", "x", "y", "m"]


@pytest.fixture
def with_third(repo: Repo) -> Repo:
    """`side` has merged `third`, on which are t1 and t2, and goes on; HEAD is on main."""
    repo.switch("third", create=True)
    repo.reset("main~1", hard=True)
    repo.append("user", "t1")
    repo.append("user", "t2")
    repo.switch("side")
    repo.merge("third")
    repo.append("user", "s3")
    repo.switch("main")
    return repo


def test_a_range_with_a_merge_copies_each_message_once(with_third: Repo) -> None:
    repo = with_third
    found = repo.cherry_pick("main..side")
    once = ["q", "m", "s1", "s2", "t1", "t2", "s3"]
    assert said(repo) == once
    assert len(found.dropped) == 1  # the merge brings nothing more
    assert repo.merge("side").hidden == 5
    assert said(repo) == once


def test_what_a_merge_said_of_what_it_brought_is_said_of_the_copies(with_third: Repo) -> None:
    repo = with_third
    repo.switch("side")
    repo.reset("HEAD~2", hard=True)
    first = repo.compile("third").messages[1].address
    repo.edit(repo.compile().messages[0].address, "q, reworded")
    repo.merge("third", fast_forward="never")
    repo.edit(first, "t1, reworded")
    repo.switch("main")
    repo.cherry_pick("main..side")
    assert said(repo) == ["q, reworded", "m", "s1", "s2", "t1, reworded", "t2"]


def test_a_merge_is_picked_as_what_the_line_does_not_show(with_third: Repo) -> None:
    repo = with_third
    repo.merge("third")
    assert repo.cherry_pick("side~1").outcome == "up-to-date"
    assert said(repo) == ["q", "m", "t1", "t2"]
    repo.remove(repo.compile().messages[2].address)
    repo.cherry_pick("side~1")
    assert said(repo) == ["q", "m", "t2", "t1"]
