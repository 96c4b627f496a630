"""Cherry-pick, rebase and move: preserved data, refusals and warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.merge.support.lines import ADA, apart, branch, commit_of, files, on, pending, said
from tests.support.examples import examples
from tests.support.valid_requests import assert_valid_requests
from trace_store import FixedClock, Message, Repo, Text, ToolCall, ToolResult
from trace_store.errors import ConflictError, InvalidInputError, MessageNotFoundError, StateError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import INFO
from trace_store.merge import in_progress
from trace_store.merge.cherry_pick import cherry_pick
from trace_store.merge.conflicts import Resolution
from trace_store.merge.merge import merge
from trace_store.merge.move import move
from trace_store.merge.rebase import rebase
from trace_store.merge.replay import continue_replay
from trace_store.merge.resolve import abort, open_conflicts, resolve
from trace_store.merge.result import MergeOptions, Rewrite
from trace_store.merge.todo import SQUASH, Step, Todo
from trace_store.odb.database import ObjectDatabase
from trace_store.writer import Writer


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, environment=ADA, clock=FixedClock(), durability="fast")


def rebased(repo: Repo, upstream: str | None = "side", *lines: str, **more: Any) -> Rewrite:
    """Rebase HEAD's branch with a to-do list that names commits by number."""

    def plan(steps: Todo) -> Sequence[Step]:
        oids = [step.oid for step in steps]
        text = "\n".join(
            f"{action} {oids[int(number)]} {rest}"
            for action, number, rest in ((line + "  ").split(" ", 2) for line in lines)
        )
        return steps.read(text)

    return rebase(repo.writer, upstream, plan=plan if lines else None, **more)


def entry(repo: Repo, text: str) -> Any:
    """Return the entry of HEAD's fold whose compiled message says this."""
    context = repo.compile()
    at = [message.text for message in context].index(text)
    return list(repo.contexts.fold(repo.resolve("HEAD")).visible())[at]


def test_rebase_keeps_author_time_and_message_and_says_what_it_rewrote(repo: Repo) -> None:
    repo.append("assistant", "a")
    apart(repo, lambda: repo.append("user", "b"), lambda: repo.append("user", "c"))
    old = repo.resolve("main")
    found = rebased(repo)
    assert said(repo) == ["a", "c", "b"]
    new, was = commit_of(repo, found.after), commit_of(repo, old)
    assert (new.author, new.time, new.message) == (was.author, was.time, was.message)
    assert new.parents == (repo.resolve("side"),)
    assert new.links == (("rewrites", str(old)),)
    assert repo.resolve("ORIG_HEAD") == old
    assert old in [oid for _, oid in repo.store.refs.iterate("refs/trash/")]

    assert rebased(repo).outcome == "up-to-date"
    assert repo.contexts.verify("HEAD").matches


def test_c6_pins_skips_and_labels_follow_what_is_rebased(repo: Repo) -> None:
    repo.append("assistant", "a")

    def ours() -> None:
        for text, priority in (("pinned", "pinned"), ("skipped", "skip"), ("kept", "important")):
            made = (repo.append("user", text).oid, 0)
            repo.annotate(made, priority=priority, labels=[f"is-{text}"], keep=["k"])

    apart(repo, ours, lambda: repo.append("user", "c"))
    for upstream in ("side", "main~6"):
        rebased(repo, upstream)
        fold = repo.contexts.fold(repo.resolve("main"))
        marks = [(e.priority, *sorted(e.labels), len(e.keep)) for e in fold.entries[-3:]]
        assert marks == [
            ("pinned", "is-pinned", 1),
            ("skip", "is-skipped", 1),
            ("important", "is-kept", 1),
        ]


def test_c7_an_edit_of_a_message_of_its_own_range_finds_it_again(repo: Repo) -> None:
    repo.append("assistant", "a")

    def ours() -> None:
        made = (repo.append("user", "first").oid, 0)
        repo.edit(made, "second")
        repo.append("assistant", "ok")
        repo.edit(made, "third")

    apart(repo, ours, lambda: repo.append("user", "c"))
    rebased(repo)
    assert said(repo) == ["a", "c", "third", "ok"]
    assert len(entry(repo, "third").versions) == 3


def test_c8_a_pinned_message_keeps_its_edit(repo: Repo) -> None:
    repo.append("assistant", "a")

    def ours() -> None:
        made = (repo.append("user", "draft").oid, 0)
        repo.annotate(made, priority="pinned")
        repo.edit(made, "final")

    apart(repo, ours, lambda: repo.append("user", "c"))
    before = entry(repo, "final").parts
    rebased(repo)
    assert entry(repo, "final").parts == before
    assert entry(repo, "final").priority == "pinned"


def test_c10_a_change_of_a_message_that_is_not_there_is_refused(repo: Repo) -> None:
    repo.append("assistant", "a")

    def theirs() -> None:
        made = (repo.append("user", "only there").oid, 0)
        repo.edit(made, "changed")

    apart(repo, lambda: None, theirs)
    before = files(repo)
    found = cherry_pick(Writer(repo.store, author="ada"), ["side"])
    assert [conflict.kind for conflict in found.conflicts] == ["missing-target"]
    assert files(repo) == before
    abort(repo.store, "cherry-pick")
    with pytest.raises(MessageNotFoundError):
        repo.edit((repo.resolve("side~1"), 0), "not here")


def test_c17_calls_stay_with_their_results(repo: Repo) -> None:
    repo.append("user", "Look.")

    def look(name: str) -> None:
        repo.append("assistant", [ToolCall(name, "look", "{}")])
        repo.append("tool", [ToolResult(name, "seen")])
        repo.append("assistant", f"done {name}")

    apart(repo, lambda: look("ours"), lambda: look("theirs"))
    result = f"{repo.resolve('side~1')}.0"
    cherry_pick(Writer(repo.store, author="ada"), [result], at="side")
    assert [m.role for m in repo.compile()][-2:] == ["assistant", "tool"]
    call = f"{repo.resolve('main~3')}.0"
    moved = move(Writer(repo.store, author="ada"), [call], "last")
    assert len(moved.moved) == 2
    assert_valid_requests(repo.compile().messages)
    rebased(repo)
    assert_valid_requests(repo.compile().messages)
    parts = [p for m in repo.compile() for p in m.parts]
    names = [p.id for p in parts if isinstance(p, ToolCall)]
    assert sorted(names) == sorted(p.call_id for p in parts if isinstance(p, ToolResult))


def test_c44_skip_drops_the_commit(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)

    def ours() -> None:
        repo.append("user", "b")
        repo.edit(target, "mine")
        repo.append("user", "d")

    apart(repo, ours, lambda: repo.edit(target, "yours"))
    found = rebased(repo)
    assert (found.outcome, found.conflicts[0].kind) == ("stopped", "both-edited")
    assert found.step is not None
    assert found.step.oid == repo.resolve("main~1")
    done = continue_replay(Writer(repo.store, author="ada"), "rebase", skip=True)
    assert done.dropped == (found.step.oid,)
    assert said(repo) == ["yours", "b", "d"]


@pytest.mark.parametrize(
    ("choice", "text", "outcome"),
    [("ours", "", "yours"), ("theirs", "", "mine"), ("text", "both", "both")],
)
def test_a_conflict_is_settled_and_the_rebase_goes_on(
    repo: Repo, choice: str, text: str, outcome: str
) -> None:
    target = (repo.append("user", "a").oid, 0)

    def ours() -> None:
        repo.edit(target, "mine")
        repo.append("user", "d")

    apart(repo, ours, lambda: repo.edit(target, "yours"))
    before = files(repo)
    rebased(repo)
    with pytest.raises(StateError, match="a rebase of main is in progress"):
        rebased(repo)
    assert resolve(Writer(repo.store), "1", Resolution(choice, text)) == ()
    assert files(repo) == before
    continue_replay(Writer(repo.store, author="ada"), "rebase")
    assert said(repo) == [outcome, "d"]


def test_both_wordings_are_kept_by_picks_and_rebases(repo: Repo) -> None:
    repo.append("user", "Which day?")
    apart(
        repo, lambda: repo.edit("HEAD.0", "Which week?"), lambda: repo.edit("HEAD.0", "Which hour?")
    )
    theirs = repo.resolve("side")
    assert repo.cherry_pick(theirs, resolver=lambda _: "both").outcome == "done"
    assert said(repo)[-1:] == ["Which week?\nWhich hour?"]
    repo.undo()
    assert repo.rebase("side", resolver=lambda _: "both").outcome == "done"
    assert said(repo)[-1:] == ["Which hour?\nWhich week?"]


def test_a_rebase_that_is_given_up_changed_nothing(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    before = files(repo)
    assert rebased(repo).outcome == "stopped"
    abort(repo.store, "rebase")
    assert files(repo) == before
    with pytest.raises(StateError, match="no rebase is in progress"):
        continue_replay(Writer(repo.store, author="ada"), "rebase")


def test_the_to_do_list(repo: Repo) -> None:
    repo.append("user", "start")
    for text in "abcd":
        repo.append("user", text)
    found = rebased(repo, "HEAD~4", "pick 1", "squash 0", "reword 3 Another message", "drop 2")
    assert said(repo) == ["start", "b", "a", "d"]
    assert len(found.dropped) == 1
    tip = commit_of(repo, found.after)
    assert tip.message == "Another message"
    squashed = commit_of(repo, tip.parents[0])
    assert len(squashed.operations) == 2
    old = found.made[1][0]
    assert squashed.links[-1] == ("rewrites", str(old))


def test_a_squashed_edit_names_the_message_of_its_own_commit(repo: Repo) -> None:
    repo.append("user", "start")
    made = (repo.append("user", "a").oid, 0)
    repo.edit(made, "b")
    repo.annotate(made, priority="pinned")
    rebased(repo, "HEAD~3", "pick 0", "squash 1", "squash 2")
    assert said(repo) == ["start", "b"]
    assert entry(repo, "b").priority == "pinned"
    assert len(commit_of(repo, repo.resolve("HEAD")).operations) == 3
    assert repo.resolve("HEAD~1") == repo.resolve("ORIG_HEAD~3")


@pytest.mark.parametrize("implied", [True, False])
def test_usage_is_about_the_commit_that_it_was_about(repo: Repo, implied: bool) -> None:
    """A commit cannot name itself, so squashed usage names the original commit."""
    repo.append("user", "q")
    base = str(repo.resolve("HEAD"))
    said_in = repo.append("assistant", "answer").oid
    repo.record_usage({"input_tokens": 3, "output_tokens": 4}, about=None if implied else said_in)
    repo.append("user", "next")
    repo.rebase(base, plan=lambda steps: [steps[0], Step(SQUASH, steps[1].oid), steps[2]])
    made = commit_of(repo, repo.resolve("HEAD~1"))
    (usage,) = [each for each in made.operations if each.name == "usage"]
    assert usage.fields["about"] == said_in
    assert said(repo) == ["q", "answer", "next"]
    assert not [each for each in fsck(repo.store) if each.severity != INFO]


def test_edit_stops_for_another_wording(repo: Repo) -> None:
    repo.append("user", "start")
    repo.append("user", "a")
    repo.append("user", "b")
    found = rebased(repo, "HEAD~2", "edit 0", "edit 1")
    assert [each.kind for each in found.conflicts] == ["rewording"]
    resolve(Writer(repo.store), "", Resolution("text", "A"))
    assert continue_replay(Writer(repo.store, author="ada"), "rebase").outcome == "stopped"
    assert len(open_conflicts(Writer(repo.store))) == 1
    assert continue_replay(Writer(repo.store, author="ada"), "rebase").outcome == "done"
    assert said(repo) == ["start", "A", "b"]


@pytest.mark.parametrize("favour", ["ours", "theirs"])
def test_a_side_that_is_favoured_words_nothing(repo: Repo, favour: str) -> None:
    """What a to-do list asks for contradicts nothing."""
    repo.append("user", "a")
    repo.append("user", "b")
    found = rebased(repo, "HEAD~1", "edit 0", favour=favour)
    assert [each.kind for each in found.conflicts] == ["rewording"]
    pending(repo).resolve("", Resolution("text", "c"))
    pending(repo).continue_()
    assert said(repo) == ["a", "c"]


def test_a_pinned_message_is_dropped_only_when_told(repo: Repo) -> None:
    repo.append("user", "start")
    made = (repo.append("user", "pinned").oid, 0)
    repo.annotate(made, priority="pinned")
    repo.append("user", "c")
    before = files(repo)
    with pytest.raises(ConflictError, match="a pinned message would be dropped"):
        rebased(repo, "HEAD~3", "drop 0", "drop 1", "pick 2")
    assert files(repo) == before
    rebased(repo, "HEAD~3", "drop 0", "drop 1", "pick 2", drop_pinned=True)
    assert said(repo) == ["start", "c"]


def test_another_order_hides_no_pinned_message_unseen(repo: Repo) -> None:
    made = (repo.append("user", "pinned").oid, 0)
    repo.annotate(made, priority="pinned")
    repo.remove(made)
    repo.restore(made)
    before = files(repo)
    with pytest.raises(ConflictError, match="a pinned message would be dropped"):
        rebased(repo, "HEAD~2", "pick 1", "pick 0")
    assert files(repo) == before
    rebased(repo, "HEAD~2", "pick 1", "pick 0", drop_pinned=True)
    assert said(repo) == []


def test_another_order_takes_no_pin_away_unsaid(repo: Repo) -> None:
    made = repo.append("user", "pinned").addresses[0]
    for priority in ("pinned", "normal", "pinned"):
        repo.annotate(made, priority=priority)
    found = rebased(repo, "HEAD~2", "pick 1", "pick 0")
    assert [(each.kind, each.address) for each in found.warnings] == [("pin-lost", made)]
    assert repo.compile().messages[0].priority == "normal"


def test_an_edit_cannot_come_before_its_target(repo: Repo) -> None:
    repo.append("user", "start")
    made = (repo.append("user", "a").oid, 0)
    repo.edit(made, "b")
    found = rebased(repo, "HEAD~2", "pick 1", "pick 0")
    assert [each.kind for each in found.conflicts] == ["missing-target"]


def test_another_order_warns_of_what_it_may_mean(repo: Repo) -> None:
    repo.append("user", "start")
    first = repo.append("system", "Be brief.").oid
    repo.append("assistant", "Fine.")
    repo.append("user", f"As in {first.short()}.0, please.")
    decision = (repo.append("assistant", "We take A.").oid, 0)
    repo.append("user", "Then B is out.")
    repo.annotate(decision, labels=["decision"])
    found = rebased(repo, "HEAD~6", "pick 1", "pick 2", "pick 0", "pick 4", "pick 3", "pick 5")
    kinds = sorted(warning.kind for warning in found.warnings)
    assert kinds == ["decision-later", "instruction-moved", "reference-later"]


def test_moving_a_message(repo: Repo) -> None:
    a, b, c = ((repo.append("user", text).oid, 0) for text in "abc")
    text = f"{c[0]}.0"
    assert (
        move(Writer(repo.store, author="ada"), [text], "before", f"{b[0]}.0", dry_run=True).result
        is None
    )
    assert said(repo) == ["a", "b", "c"]
    move(Writer(repo.store, author="ada"), [text], "before", f"{b[0]}.0")
    assert said(repo) == ["a", "c", "b"]
    move(Writer(repo.store, author="ada"), [text], "first")
    assert said(repo) == ["c", "a", "b"]
    assert move(Writer(repo.store, author="ada"), [text], "first").result is None
    with pytest.raises(InvalidInputError, match="next to itself"):
        move(Writer(repo.store, author="ada"), [text], "after", text)
    assert a != b


def test_picking_ranges_keeps_their_order_and_names_origins(repo: Repo) -> None:
    repo.append("assistant", "a")

    def theirs() -> None:
        for text in "xyz":
            repo.append("user", text)

    apart(repo, lambda: repo.append("user", "b"), theirs)
    found = cherry_pick(Writer(repo.store, author="ada"), ["main..side", "side"])
    assert said(repo) == ["a", "b", "x", "y", "z"]
    assert commit_of(repo, found.after).links == (("picked", str(repo.resolve("side"))),)
    with pytest.raises(InvalidInputError, match="nothing to pick"):
        cherry_pick(Writer(repo.store, author="ada"), ["side..side"])


def merged_beside_third(repo: Repo) -> None:
    """Let main merge side; HEAD ends on third, which is where both began."""
    repo.append("assistant", "a")
    branch(repo, "third")
    apart(repo, lambda: repo.append("user", "b"), lambda: repo.append("user", "c"))
    merge(Writer(repo.store, author="ada"), "side")
    on(repo, "third")


def test_picking_a_merge_copies_what_it_brought(repo: Repo) -> None:
    merged_beside_third(repo)
    cherry_pick(Writer(repo.store, author="ada"), ["main"])
    assert said(repo) == ["a", "c"]


def test_picking_what_several_merges_were_squashed_into_copies_what_all_of_them_brought(
    repo: Repo,
) -> None:
    """Its own messages follow the copies, and later commits name them."""
    repo.append("assistant", "a")
    for name in ("side", "third", "fourth"):
        branch(repo, name)
    for name in ("side", "third"):
        on(repo, name)
        repo.append("user", name)
    on(repo, "main")
    repo.append("assistant", "b")
    repo.merge("side")
    repo.append("user", "own")
    repo.merge("third")
    rebased(repo, "HEAD~3", "pick 0", "squash 1", "squash 2")
    assert len(commit_of(repo, repo.resolve("HEAD")).parents) == 3
    repo.edit(repo.compile().messages[3].address, "own, reworded")
    on(repo, "fourth")
    cherry_pick(Writer(repo.store, author="ada"), ["main~1", "main"])
    assert said(repo) == ["a", "side", "own, reworded", "third"]


def test_a_merge_is_rebased_with_its_other_parent(repo: Repo) -> None:
    merged_beside_third(repo)
    repo.append("user", "d")
    on(repo, "main")
    rebased(repo, "third")
    assert said(repo) == ["a", "d", "b", "c"]
    assert len(commit_of(repo, repo.resolve("main")).parents) == 2
    assert repo.contexts.verify("HEAD").matches


def test_a_rebased_merge_brings_what_was_done_to_what_it_goes_on(repo: Repo) -> None:
    """The merge added these messages; the new base already has older versions of them."""
    repo.append("assistant", "a")
    branch(repo, "side")
    on(repo, "side")
    worded, hidden = (repo.append("user", text).addresses[0] for text in ("c", "d"))
    branch(repo, "earlier")
    repo.annotate(worded, priority="pinned")
    repo.edit(worded, "c, reworded")
    repo.remove(hidden)
    on(repo, "main")
    repo.append("user", "b")
    repo.merge("side")
    rebased(repo, "earlier")
    assert sorted(said(repo)) == ["a", "b", "c, reworded"]
    (pinned,) = (each.address for each in repo.compile() if each.priority == "pinned")
    assert pinned == worded
    assert repo.contexts.verify("HEAD").matches


def test_a_rebased_merge_asks_where_both_reworded_what_it_goes_on(repo: Repo) -> None:
    worded = (repo.append("assistant", "a").oid, 0)
    repo.edit(worded, "a, on main")
    branch(repo, "side")
    on(repo, "side")
    brought = (repo.append("user", "c").oid, 0)
    branch(repo, "earlier")
    repo.edit(brought, "c, in side")
    on(repo, "main")
    repo.append("user", "b")
    repo.merge("side")
    on(repo, "earlier")
    repo.edit(brought, "c, earlier")
    on(repo, "main")
    found = rebased(repo, "earlier")
    assert [each.kind for each in found.conflicts] == ["both-edited"]
    pending(repo).resolve("all", "theirs")
    pending(repo).continue_()
    assert said(repo) == ["a, on main", "c, in side", "b"]


def test_a_conflict_of_an_earlier_step_may_be_settled_anew(repo: Repo) -> None:
    """It is about the state at that step, regardless of later steps."""
    one, other = (repo.append("user", text).addresses[0] for text in ("one", "other"))

    def reworded(text: str) -> None:
        repo.edit(one, f"one of {text}")
        repo.edit(other, f"other of {text}")

    apart(repo, lambda: reworded("mine"), lambda: reworded("theirs"))
    repo.rebase("side")
    pending(repo).resolve("1", "text", "one of both")
    assert [each.number for each in pending(repo).continue_().conflicts] == [2]
    assert [each.number for each in pending(repo).resolve("1", "theirs")] == [2]
    assert not pending(repo).resolve("2", "theirs")
    assert pending(repo).continue_().outcome == "done"
    assert said(repo) == ["one of mine", "other of mine"]


@pytest.mark.parametrize(
    ("choice", "shown"), [("ours", "main's"), ("theirs", "two"), ("text", "both")]
)
def test_what_one_commit_rewords_twice_is_asked_once(repo: Repo, choice: str, shown: str) -> None:
    address = repo.append("user", "base").addresses[0]

    def ours() -> None:
        with repo.batch() as draft:
            draft.edit(address, "one")
            draft.edit(address, "two")

    apart(repo, ours, lambda: repo.edit(address, "main's"))
    assert [each.kind for each in repo.rebase("side").conflicts] == ["both-edited"]
    assert not pending(repo).resolve("1", choice, "both" if choice == "text" else "")
    assert pending(repo).continue_().outcome == "done"
    assert said(repo) == [shown]


@pytest.mark.parametrize(("choice", "shown"), [("ours", "main's"), ("theirs", "one")])
def test_wordings_that_are_not_taken_are_not_gone_back_to(
    repo: Repo, choice: str, shown: str
) -> None:
    """One commit rewords a message twice and goes back to the first of these wordings."""
    address = repo.append("user", "base").addresses[0]
    base = str(repo.resolve("HEAD"))

    def ours() -> None:
        repo.edit(address, "one")
        repo.edit(address, "two")
        repo.revert("HEAD")
        repo.reset(base)
        repo.commit_staged()

    apart(repo, ours, lambda: repo.edit(address, "main's"))
    assert repo.rebase("side", favour=choice).outcome == "done"
    assert said(repo) == [shown]


@pytest.mark.parametrize(
    ("choice", "names"), [("ours", ["m"]), ("theirs", ["t2"]), ("both", ["m", "t2"])]
)
def test_what_one_commit_offers_twice_is_asked_once(
    repo: Repo, choice: str, names: list[str]
) -> None:
    repo.append("user", "base")

    def ours() -> None:
        with repo.batch() as draft:
            draft.set_tools([{"name": "t1"}])
            draft.set_tools([{"name": "t2"}])

    apart(repo, ours, lambda: repo.set_tools([{"name": "m"}]))
    repo.rebase("side")
    pending(repo).resolve("1", choice)
    assert pending(repo).continue_().outcome == "done"
    assert [tool["name"] for tool in repo.compile().tools] == names


@pytest.mark.parametrize(("choice", "shown"), [("ours", 4), ("theirs", 2)])
def test_what_settles_a_conflict_parts_no_call_from_its_result(
    repo: Repo, choice: str, shown: int
) -> None:
    repo.append("user", "start")
    call = (repo.append("assistant", [ToolCall("c1", "look", "{}")]).oid, 0)
    result = (repo.append("tool", [ToolResult("c1", "found")]).oid, 0)
    apart(repo, lambda: repo.remove([call, result]), lambda: repo.annotate(call, priority="pinned"))
    on(repo, "side")
    repo.append("user", "theirs")
    on(repo, "main")
    found = rebased(repo, favour=choice)
    assert found.outcome == "done"
    assert len(repo.compile()) == shown
    assert_valid_requests(repo.compile().messages)


@pytest.mark.parametrize("choice", ["ours", "theirs"])
@pytest.mark.parametrize("pins", [False, True])
def test_what_was_hidden_meanwhile_is_shown_when_that_is_chosen(
    repo: Repo, pins: bool, choice: str
) -> None:
    target = (repo.append("user", "a").oid, 0)
    repo.append("user", "b")

    def change() -> None:
        if pins:
            repo.annotate(target, priority="pinned")
        else:
            repo.edit(target, "a, again")

    apart(repo, change, lambda: repo.remove(target))
    found = rebased(repo)
    assert [each.kind for each in found.conflicts] == [
        "pinned-and-removed" if pins else "edited-and-removed"
    ]
    abort(repo.store, "rebase")
    rebased(repo, favour=choice)
    shown = ["a" if pins else "a, again"] if choice == "theirs" else []
    assert said(repo) == [*shown, "b"]


@pytest.mark.parametrize("says", ["pins", "edits"])
def test_what_a_commit_hides_itself_is_not_shown_for_what_else_it_says_of_it(
    repo: Repo, says: str
) -> None:
    repo.append("user", "start")
    call = (repo.append("assistant", [ToolCall("c1", "look", "{}")]).oid, 0)
    result = (repo.append("tool", [ToolResult("c1", "found")]).oid, 0)

    def hide_and_say() -> None:
        with repo.batch() as draft:
            draft.remove([call, result])
            if says == "pins":
                draft.annotate(result, priority="pinned")
            else:
                draft.edit(result, [ToolResult("c1", "gone")])

    apart(repo, lambda: repo.remove([call, result]), hide_and_say)
    assert repo.cherry_pick("side", favour="theirs").settled == ()
    assert said(repo) == ["start"]


def test_a_picked_move_takes_results_along_with_their_call(repo: Repo) -> None:
    repo.append("user", "start")
    call = (repo.append("assistant", [ToolCall("c1", "look", "{}")]).oid, 0)
    apart(
        repo,
        lambda: repo.append("tool", [ToolResult("c1", "found")]),
        lambda: repo.move(call, after=None),
    )
    cherry_pick(Writer(repo.store, author="ada"), ["side"])
    assert [message.role for message in repo.compile()] == ["assistant", "tool", "user"]


def test_settling_the_last_conflict_says_nothing_of_pins_yet(repo: Repo) -> None:
    repo.append("user", "start")
    made = repo.append("user", "a")
    repo.append("user", "b")
    repo.annotate((made.oid, 0), priority="pinned")
    assert rebased(repo, "HEAD~3", "edit 1", "drop 0", "drop 2").outcome == "stopped"
    assert resolve(Writer(repo.store), "1", Resolution("text", "c")) == ()
    with pytest.raises(ConflictError, match="pinned"):
        continue_replay(Writer(repo.store, author="ada"), "rebase")
    assert said(repo) == ["start", "a", "b"]


@pytest.mark.parametrize("root", [False, True])
def test_merges_are_squashed_with_all_their_parents(repo: Repo, root: bool) -> None:
    for name in ("side", "third"):
        on(repo, name)
        repo.append("user", name)
    on(repo, "main")
    repo.append("user", "main")
    for name in ("side", "third"):
        merge(Writer(repo.store, author="ada"), name, MergeOptions(unrelated=True))
    before = said(repo)
    lines = ["pick 0", "squash 1", *(["squash 2"] if root else [])]
    assert rebased(repo, None if root else "HEAD~2", *lines).outcome == "done"
    assert said(repo) == before
    assert repo.contexts.verify("HEAD").matches


def test_a_rebased_merge_does_to_what_it_brought_what_it_did(repo: Repo) -> None:
    repo.append("user", "Which one?")
    branch(repo, "third")
    apart(
        repo, lambda: repo.append("assistant", "This."), lambda: repo.append("assistant", "That.")
    )
    merge(Writer(repo.store, author="ada"), "side", MergeOptions(favour="ours"))
    assert said(repo) == ["Which one?", "This."]
    on(repo, "third")
    repo.append("user", "Be brief.")
    on(repo, "main")
    assert rebased(repo, "third").outcome == "done"
    assert said(repo) == ["Which one?", "Be brief.", "This."]


def test_the_list_as_text_reads_back_and_refuses_what_it_does_not_know(repo: Repo) -> None:
    oids = [repo.append("user", text, message="said").oid for text in "abc"]
    steps = Todo(repo.store, (Step("pick", oid) for oid in oids))
    assert steps.read(steps.text) == steps
    assert [step.action for step in steps.read(f"p {oids[1]}")] == ["drop", "drop", "pick"]
    reworded = steps.read(f"reword {oids[0]} said", lambda before: f"{before} twice")
    assert reworded[-1] == Step("reword", oids[0], "said twice")
    for text, problem in (
        ("merge 0101", "line 1 of the to-do list is not valid"),
        ("pick ffff", "does not name a commit of the range"),
        (f"pick {oids[0]}\npick {oids[0]}", f"line 2 repeats {oids[0].short()}"),
        (f"squash {oids[0]}", "the first commit cannot be squashed"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            steps.read(text)


deeds = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.just(0)),
        st.tuples(st.sampled_from(["edit", "pin", "remove", "label"]), st.integers(0, 9)),
    ),
    min_size=1,
    max_size=6,
)


def act(repo: Repo, name: str, changes: Sequence[tuple[str, int]], own: bool) -> None:
    """Make changes; with `own` only to messages that this line made itself."""
    mine: list[Any] = []
    for count, (deed, number) in enumerate(changes):
        if deed == "say" or not mine:
            mine.append((repo.append("user", f"{name}{count}").oid, 0))
            continue
        target = mine[number % len(mine)]
        if deed == "edit":
            repo.edit(target, f"{name} edited {count}")
        elif deed == "pin":
            repo.annotate(target, priority="pinned")
        elif deed == "label":
            repo.annotate(target, labels=["x"])
        else:
            repo.remove(target, ghost=False)


@given(ours=deeds, theirs=deeds)
@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
def test_a_rebase_shows_theirs_and_then_ours(ours: Any, theirs: Any) -> None:
    repo = Repo.memory(author="ada", clock=FixedClock())
    repo.append("assistant", "start")
    apart(repo, lambda: act(repo, "o", ours, True), lambda: act(repo, "t", theirs, True))
    mine, yours = said(repo, "main"), said(repo, "side")
    marks = [e.priority for e in repo.contexts.fold(repo.resolve("main")).visible()]
    rebase(Writer(repo.store, author="ada"), "side")
    assert said(repo) == [*yours, *mine[1:]]
    kept = [e.priority for e in repo.contexts.fold(repo.resolve("main")).visible()]
    assert kept[len(yours) :] == marks[1:]
    cold = [m.text for m in repo.contexts.compile("HEAD", cold=True)]
    assert cold == said(repo)


@pytest.mark.parametrize("command", ["cherry_pick", "rebase", "merge", "revert"])
def test_what_was_written_is_not_made_again_when_only_the_note_of_it_is_left(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The process ended between the two; of a pick one commit came to nothing, so that no link tells of it."""
    first = repo.append("user", "a").addresses[0]
    repo.branches.create("side")
    repo.edit(first, "ours")
    mine = repo.resolve("HEAD")
    repo.branches.switch("side")
    repo.edit(first, "theirs")
    repo.append("assistant", "new")
    repo.branches.switch("main")
    if command == "revert":
        repo.edit(first, "ours, later")
        found = repo.revert(str(mine))
    else:
        wanted = ["side~1", "side"] if command == "cherry_pick" else ["side"]
        found = getattr(repo, command)(*wanted)
    assert found.outcome == "stopped"
    pending(repo).resolve("", "theirs" if command == "revert" else "ours")
    with monkeypatch.context() as killed:
        killed.setattr(in_progress, "clear_stop", lambda _: None)
        pending(repo).continue_()
    tip, before = repo.resolve("HEAD"), said(repo)
    pending(repo).continue_()
    assert (repo.resolve("HEAD"), said(repo)) == (tip, before)
    assert repo.in_progress is None


def test_what_somebody_else_went_on_with_is_not_gone_on_with(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repo.append("user", "a").addresses[0]
    repo.branches.create("side")
    repo.edit(first, "ours")
    repo.branches.switch("side")
    repo.edit(first, "theirs")
    repo.append("assistant", "new")
    repo.branches.switch("main")
    repo.cherry_pick("side~1", "side", resolver=lambda _: None)
    pending(repo).resolve("", "ours")
    note = in_progress.save_tip

    def after_the_other(*given: Any) -> None:
        monkeypatch.setattr(in_progress, "save_tip", note)
        pending(repo).continue_()
        note(*given)

    monkeypatch.setattr(in_progress, "save_tip", after_the_other)
    with pytest.raises(StateError, match="another process has continued"):
        pending(repo).continue_()
    assert said(repo) == ["ours", "new"]


def test_a_result_that_is_listed_before_its_call_is_asked_about(repo: Repo) -> None:
    repo.append("user", "start")
    repo.commit([Message("assistant", [ToolCall("c", "look", "{}")])])
    repo.commit([Message("tool", [ToolResult("c", "found")])])
    repo.append("assistant", "done")
    found = repo.rebase("HEAD~3", plan=lambda s: [s[1], s[0], s[2]])
    assert [each.kind for each in found.conflicts] == ["missing-target"]
    pending(repo).resolve("1", "theirs")
    assert pending(repo).continue_().outcome == "done"
    assert [each.role for each in repo.compile()] == ["user", "assistant", "tool", "assistant"]
    assert_valid_requests(repo.compile().messages)


def test_appends_are_picked_and_rebased_without_reading_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost grows with the reapplied commits, not with the history."""
    counts = []
    for number in (20, 400):
        folder = tmp_path / str(number)
        folder.mkdir()
        repo = Repo.init(folder, environment=ADA, clock=FixedClock(), durability="fast")
        for at in range(number):
            repo.append("assistant", f"{at}")
        apart(repo, lambda: repo.append("user", "b"), lambda: repo.append("user", "c"))  # noqa: B023
        assert len(list(repo.log())) == number + 1  # writes the commit table for later walks
        reads = 0
        whole = ObjectDatabase.read

        def read(self: ObjectDatabase, oid: bytes) -> bytes:
            nonlocal reads
            reads += 1
            return whole(self, oid)  # noqa: B023

        monkeypatch.setattr(ObjectDatabase, "read", read)
        cherry_pick(Writer(repo.store, author="ada"), ["side"])
        rebased(repo)
        monkeypatch.undo()
        counts.append(reads)
    assert counts[1] <= counts[0]


def test_a_rebase_from_the_root_on_makes_all_commits_anew(repo: Repo) -> None:
    for text in "abc":
        repo.append("user", text)
    repo.annotate("HEAD~1.0", priority="pinned")
    old = repo.resolve("HEAD")
    assert rebase(Writer(repo.store, author="ada"), None).outcome == "up-to-date"

    def plan(steps: Todo) -> Sequence[Step]:
        return [steps[1], Step(SQUASH, steps[0].oid), *steps[2:]]

    found = rebase(Writer(repo.store, author="ada"), None, plan=plan)
    assert (found.outcome, len(found.made)) == ("done", 4)
    assert said(repo) == ["b", "a", "c"]
    assert entry(repo, "b").priority == "pinned"
    root = repo.resolve("HEAD~2")
    assert commit_of(repo, root).parents == ()
    assert repo.resolve("ORIG_HEAD") == old
    assert repo.contexts.verify("HEAD").matches


def test_all_of_a_branch_goes_onto_another_history(repo: Repo) -> None:
    repo.append("user", "a")
    repo.append("user", "b")
    branch(repo, "side")
    repo.store.refs.set_head("refs/heads/other")
    repo.append("user", "elsewhere")
    on(repo, "side")
    rebase(Writer(repo.store, author="ada"), None, onto="other")
    assert said(repo) == ["elsewhere", "a", "b"]


@pytest.mark.parametrize(
    ("choice", "shown"), [("ours", ["theirs"]), ("theirs", ["mine"]), ("both", ["theirs", "mine"])]
)
@pytest.mark.parametrize("picks", [False, True])
def test_a_call_that_both_lines_answer_has_one_result(
    repo: Repo, choice: str, shown: list[str], picks: bool
) -> None:
    repo.append("user", "look")
    call = repo.append("assistant", [ToolCall("one", "look", "{}")]).addresses[0]

    def answer(text: str) -> Callable[[], Any]:
        return lambda: (repo.append("tool", [ToolResult("one", text)]), repo.append("user", "well"))

    apart(repo, answer("mine"), answer("theirs"))
    mine = repo.resolve("main~1")
    if picks:
        on(repo, "side")
    found = repo.cherry_pick(mine) if picks else repo.rebase("side")
    assert [(c.kind, c.addresses) for c in found.conflicts] == [("two-answers", (call,))]
    pending(repo).resolve("1", choice)
    pending(repo).continue_()
    results = [
        [part.text for part in result.content if isinstance(part, Text)]
        for message in repo.compile("HEAD").messages
        for result in message.parts
        if isinstance(result, ToolResult)
    ]
    assert results == [shown]
    assert_valid_requests(repo.compile().messages)


def test_a_result_of_one_of_two_calls_comes_to_its_call(repo: Repo) -> None:
    repo.append("user", "look")
    repo.append("assistant", [ToolCall("one", "look", "{}"), ToolCall("two", "look", "{}")])

    def theirs() -> None:
        repo.append("tool", [ToolResult("one", "first")])
        repo.append("assistant", "go on")

    apart(repo, lambda: repo.append("tool", [ToolResult("two", "second")]), theirs)
    assert repo.rebase("side").outcome == "done"
    assert [m.role for m in repo.compile().messages] == [
        *("user", "assistant", "tool", "tool", "assistant"),
    ]
    assert_valid_requests(repo.compile().messages)


def test_an_id_that_is_used_again_answers_the_call_of_its_own_commit(repo: Repo) -> None:
    repo.append("user", "look")
    repo.append("assistant", [ToolCall("one", "look", "{}")])

    def ours() -> None:
        with repo.batch() as draft:
            draft.append("assistant", [ToolCall("one", "look", "{}")])
            draft.append("tool", [ToolResult("one", "again")])

    apart(repo, ours, lambda: repo.append("tool", [ToolResult("one", "late")]))
    assert repo.rebase("side").outcome == "done"
    assert len([m for m in repo.compile().messages if m.role == "tool"]) == 2
    assert_valid_requests(repo.compile().messages)


@pytest.mark.parametrize("result", ["mine", "theirs"])
def test_a_result_that_is_shown_again_is_not_a_second_one(repo: Repo, result: str) -> None:
    """What a pick pins was hidden where a merge settled which result a call has."""
    repo.append("user", "look")
    repo.append("assistant", [ToolCall("one", "look", "{}")])

    def theirs() -> None:
        address = repo.append("tool", [ToolResult("one", "theirs")]).addresses[0]
        repo.annotate([address], priority="pinned")

    apart(repo, lambda: repo.append("tool", [ToolResult("one", "mine")]), theirs)
    repo.merge("side~1", favour="ours")
    found = repo.cherry_pick("side")
    assert [each.kind for each in found.conflicts] == ["missing-target"]
    pending(repo).resolve("1", "theirs")
    assert [each.kind for each in pending(repo).continue_().conflicts] == ["two-answers"]
    pending(repo).resolve("2", {"mine": "ours"}.get(result, "theirs"))
    pending(repo).continue_()
    (answer,) = [m for m in repo.compile().messages if isinstance(m.parts[0], ToolResult)]
    assert answer.parts == (ToolResult("one", result),)
    assert answer.priority == "pinned"  # as the whole exchange is
    assert_valid_requests(repo.compile().messages)


@pytest.mark.parametrize("choice", ["ours", "theirs"])
@pytest.mark.parametrize("merges", [False, True])
def test_a_commit_that_does_more_than_answer_brings_no_second_result(
    repo: Repo, choice: str, merges: bool
) -> None:
    question = repo.append("user", "look").addresses[0]
    repo.append("assistant", [ToolCall("one", "look", "{}")])

    def theirs() -> None:
        repo.append("tool", [ToolResult("one", "theirs")])

    def mine() -> None:
        if merges:
            branch(repo, "third")
            on(repo, "third")
        with repo.batch() as draft:
            draft.extend([Message("tool", [ToolResult("one", "mine")])])
            draft.annotate([question], priority="pinned")
        if merges:
            on(repo, "main")
            repo.merge("third", fast_forward="never")

    apart(repo, mine, theirs)
    assert [each.kind for each in repo.rebase("side").conflicts] == ["two-answers"]
    pending(repo).resolve("1", choice)
    pending(repo).continue_()
    shown = repo.compile().messages
    assert len(shown) == 3
    assert shown[0].priority == "pinned"
    assert f"'{'mine' if choice == 'theirs' else 'theirs'}'" in repr(shown[2].parts)
    assert_valid_requests(shown)


def test_an_exchange_that_a_merge_took_in_is_not_answered_twice(repo: Repo) -> None:
    """What the branch took in, answered otherwise, the new line has, too."""
    repo.append("user", "q")
    branch(repo, "side")
    on(repo, "side")
    repo.append("assistant", [ToolCall("one", "look", "{}")])
    branch(repo, "third")
    repo.append("tool", [ToolResult("one", "theirs")])
    on(repo, "third")
    repo.append("tool", [ToolResult("one", "mine")])
    on(repo, "main")
    repo.append("user", "beside")
    repo.merge("third")
    found = repo.rebase("side")
    assert [each.kind for each in found.conflicts] == ["two-answers"]
    pending(repo).resolve("1", "theirs")
    pending(repo).continue_()
    (result,) = [m for m in repo.compile().messages if m.role == "tool"]
    assert "'mine'" in repr(result.parts)
    assert_valid_requests(repo.compile().messages)


@pytest.mark.parametrize(("choice", "first"), [("ours", "theirs"), ("theirs", "mine")])
def test_what_answers_other_calls_besides_keeps_those(repo: Repo, choice: str, first: str) -> None:
    """Both lines answer one of two calls, and one line answers both in one message."""
    repo.append("user", "look")
    repo.append("assistant", [ToolCall("one", "look", "{}"), ToolCall("two", "look", "{}")])
    both = [ToolResult("one", "mine"), ToolResult("two", "of two")]
    apart(
        repo,
        lambda: repo.append("tool", both),
        lambda: repo.append("tool", [ToolResult("one", "theirs")]),
    )
    assert [each.kind for each in repo.rebase("side").conflicts] == ["two-answers"]
    pending(repo).resolve("1", choice)
    pending(repo).continue_()
    results = {
        part.call_id: [each.text for each in part.content if isinstance(each, Text)]
        for message in repo.compile("HEAD").messages
        for part in message.parts
        if isinstance(part, ToolResult)
    }
    assert results == {"one": [first], "two": ["of two"]}
    assert_valid_requests(repo.compile().messages)


@pytest.mark.parametrize("joins", ["rebase", "merge"])
@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_tool_whose_result_is_not_taken_says_nothing(repo: Repo, choice: str, joins: str) -> None:
    """What stood beside the result, in the message of a tool, is nothing without it."""
    repo.append("user", "look")
    repo.append("assistant", [ToolCall("one", "look", "{}")])

    def answer(text: str) -> Callable[[], Any]:
        return lambda: repo.append("tool", [Text(f"from {text}"), ToolResult("one", text)])

    apart(repo, answer("mine"), answer("theirs"))
    found = repo.rebase("side") if joins == "rebase" else repo.merge("side")
    assert [each.kind for each in found.conflicts] == ["two-answers"]
    pending(repo).resolve("1", choice)
    pending(repo).continue_()
    assert len([m for m in repo.compile().messages if m.role == "tool"]) == 1
    assert_valid_requests(repo.compile().messages)


def test_an_earlier_wording_comes_back_where_wordings_are_counted_otherwise(repo: Repo) -> None:
    note = (repo.append("user", "first").oid, 0)
    repo.edit(note, "second")

    def ours() -> None:
        repo.edit(note, "third")
        repo.restore(note, version=1)

    apart(repo, ours, lambda: repo.append("user", "beside"))
    rebased(repo)
    assert said(repo) == ["second", "beside"]
    dropped = rebased(repo, "HEAD~4", "drop 0", "pick 2", "pick 3", "pick 1")
    assert dropped.outcome == "stopped"
    resolve(Writer(repo.store), "all", Resolution("theirs"))
    continue_replay(Writer(repo.store, author="ada"), "rebase")
    assert said(repo) == ["second", "beside"]
    assert repo.contexts.verify("HEAD").matches


def test_wordings_that_one_commit_goes_through_end_as_they_did(repo: Repo) -> None:
    note = (repo.append("user", "first").oid, 0)
    repo.edit(note, "second")
    branch(repo, "side")
    with repo.batch() as draft:
        draft.restore([note], version=0)
        draft.restore([note], version=1)
    on(repo, "side")
    repo.append("user", "beside")
    on(repo, "main")
    rebased(repo)
    assert said(repo) == ["second", "beside"]
    with repo.batch() as draft:
        draft.edit(note, "third")
        draft.restore([note], version=0)
    rebased(repo, "HEAD~1", "reword 0 anew")
    assert said(repo) == ["first", "beside"]


def test_a_summary_of_what_somebody_keeps_stands_beside_it(repo: Repo) -> None:
    notes = [(repo.append("user", text).oid, 0) for text in ("a", "b", "c")]
    apart(
        repo,
        lambda: repo.replace(notes[1], [Message("user", "short")]),
        lambda: repo.edit(notes[1], "b, reworded"),
    )
    repo.append("user", "d")
    found = rebased(repo, favour="ours")
    assert found.outcome == "done"
    assert said(repo) == ["a", "short", "b, reworded", "c", "d"]


def test_an_id_that_is_used_again_binds_no_results_of_other_calls(repo: Repo) -> None:
    for _ in range(2):
        repo.append("assistant", [ToolCall("c1", "look", {})])
        repo.append("tool", [ToolResult("c1", "seen")])
    repo.append("assistant", [ToolCall("c1", "look", {})])
    apart(
        repo,
        lambda: repo.append("tool", [ToolResult("c1", "ours")]),
        lambda: repo.append("tool", [ToolResult("c1", "theirs")]),
    )
    rebased(repo, favour="theirs")
    parts = [part for message in repo.compile() for part in message.parts]
    results = [part.content[0] for part in parts if isinstance(part, ToolResult)]
    assert results == [
        Text("seen"),
        Text("seen"),
        Text("ours"),
    ]  # in a rebase, theirs are the reapplied commits
