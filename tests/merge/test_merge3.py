"""The three-way merge, against a slow and obvious definition and by its conflicts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.merge.support.sides import (
    Builder,
    any_changes,
    planned,
    put,
    seen,
    state,
    still,
    stored,
)
from tests.support.examples import examples
from trace_store.context.fold import Fold
from trace_store.merge.conflicts import Resolution
from trace_store.merge.inputs import MergePlan
from trace_store.merge.meaning_warnings import passed
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.objects.parts import Text, ToolCall, ToolResult


def sides(base: Any, ours: Any, theirs: Any) -> tuple[Fold, Builder, Builder]:
    """Return the base and both sides."""
    root = Builder("base")
    for change in base:
        root.make(change)
    mine, yours = Builder("ours", root.fold), Builder("theirs", root.fold)
    for change in ours:
        mine.make(change)
    for change in theirs:
        yours.make(change)
    return root.fold, mine, yours


def merged(ours: Builder, theirs: Builder, plan: MergePlan) -> Fold:
    """Return the context of the merge."""
    fold = ours.fold.copy()
    fold.apply(put(b"merge"), Commit((), "ada", 0, plan.operations))
    return fold


def obvious(
    base: Fold, ours: Fold, theirs: Fold
) -> tuple[dict[Address, tuple[Any, ...]], set[Address]]:
    """Return the merged state of each message, and the messages about which the sides contradict each other."""
    was, mine, yours = state(base), state(ours), state(theirs)
    result = dict(yours) | mine
    contradicted: set[Address] = set()
    for address in mine.keys() & yours.keys():
        (p0, h0, g0, r0, l0, k0) = was[address]
        (p1, h1, g1, r1, l1, k1) = mine[address]
        (p2, h2, g2, r2, l2, k2) = yours[address]
        hid_1, hid_2 = (h1 and (h1, g1) != (h0, g0)), (h2 and (h2, g2) != (h0, g0))
        if (hid_2 and not h1 and (p1 != p0 or (r1 == "pinned" != r0))) or (
            hid_1 and not h2 and (p2 != p0 or (r2 == "pinned" != r0))
        ):
            contradicted.add(address)
            continue
        both_edited = p1 != p0 and p2 != p0 and p1 != p2 and not (h1 and h2)
        both_shown = (h0, g0) not in ((h1, g1), (h2, g2)) and bool(h1) != bool(h2)
        both_marked = r0 not in (r1, r2) and r1 != r2
        if both_edited or both_shown or both_marked:
            contradicted.add(address)
            continue
        result[address] = (
            p2 if p1 == p0 else p1,
            *((h2, g2) if (h1, g1) == (h0, g0) else (h1, g1)),
            r2 if r1 == r0 else r1,
            (l1 | l2) - (l0 - (l1 & l2)),
            k2 if k1 == k0 else k1,
        )
    return result, contradicted


@given(still, still, still)
@example([("append", ["call"]), ("remove", 1, False)], [("restore", 1)], [("remove", 0, False)])
@example([("append", ["call"])], [("mark", 0, "pinned")], [("remove", 0, False)])
@settings(max_examples=examples(150))
def test_it_is_what_the_obvious_definition_says(base: Any, ours: Any, theirs: Any) -> None:
    was, mine, yours = sides(base, ours, theirs)
    resolutions: dict[str, Resolution] = {}
    plan = planned(was, mine, yours)
    for conflict in plan.conflicts:
        if conflict.kind == "two-answers":
            resolutions[conflict.key] = Resolution("both")
    plan = planned(was, mine, yours, resolutions=resolutions)
    expected, contradicted = obvious(was, mine.fold, yours.fold)
    unit = mine.fold.unit  # a call and its results have one conflict
    met = {min(unit(each.addresses[0])) for each in plan.conflicts}
    assert met == {min(unit(address)) for address in contradicted}
    found = state(merged(mine, yours, plan))
    assert found.keys() == expected.keys()
    for address, said in expected.items():
        assert address in contradicted or found[address] == said
    order = [entry.address for entry in merged(mine, yours, plan).entries]
    known = state(mine.fold)
    assert order == [
        *(entry.address for entry in mine.fold.entries),
        *(entry.address for entry in yours.fold.entries if entry.address not in known),
    ]


@given(any_changes, any_changes)
@example([("append", ["user"] * 3)], [("replace", 0, 0), ("move", 3, None)])
@settings(max_examples=examples(150))
def test_what_only_theirs_changed_becomes_theirs(base: Any, theirs: Any) -> None:
    was, mine, yours = sides(base, [], theirs)
    plan = planned(was, mine, yours)
    assert not plan.conflicts
    result = merged(mine, yours, plan)
    assert seen(result) == seen(yours.fold)
    assert state(result) == state(yours.fold)


@given(any_changes, any_changes)
@settings(max_examples=examples(50))
def test_what_only_ours_changed_stays_ours(base: Any, ours: Any) -> None:
    was, mine, yours = sides(base, ours, [])
    assert planned(was, mine, yours).operations == ()


@given(any_changes, any_changes, any_changes, st.sampled_from(["append", "interleave"]))
@settings(max_examples=examples(150))
def test_what_was_merged_is_not_merged_again(
    base: Any, ours: Any, theirs: Any, strategy: str
) -> None:
    was, mine, yours = sides(base, ours, theirs)
    plan = planned(was, mine, yours, strategy=strategy, favour="theirs")
    assert not [c for c in plan.conflicts if "theirs" in c.choices]
    result = merged(mine, yours, plan)
    again = planned(yours.fold, Builder("side", result), yours)
    assert again.operations == ()
    assert again.conflicts == ()


@given(any_changes, any_changes, any_changes)
@settings(max_examples=examples(80))
def test_theirs_is_theirs_whatever_ours_did(base: Any, ours: Any, theirs: Any) -> None:
    was, mine, yours = sides(base, ours, theirs)
    plan = planned(was, mine, yours, strategy="theirs")
    assert seen(merged(mine, yours, plan)) == seen(yours.fold)
    assert planned(was, mine, yours, strategy="ours").operations == ()


@given(any_changes, any_changes, any_changes, st.sampled_from(["append", "interleave"]))
@settings(max_examples=examples(80))
@example(
    [("append", ["user", "call"]), ("remove", 2, False)],
    [("restore", 2)],
    [("remove", 1, False)],
    "append",
)
def test_a_merge_adds_no_message_and_keeps_calls_with_results(
    base: Any, ours: Any, theirs: Any, strategy: str
) -> None:
    """C3 and C17: no new messages; results stay with calls if both sides had them so."""
    was, mine, yours = sides(base, ours, theirs)
    plan = planned(was, mine, yours, strategy=strategy, favour="ours")
    result = merged(mine, yours, plan)
    assert state(result).keys() <= state(mine.fold).keys() | state(yours.fold).keys()
    had = apart(mine.fold) | apart(yours.fold)
    assert apart(result) <= had


def apart(fold: Fold) -> set[str]:
    """Return the ids of calls whose results do not follow them."""
    entries = list(fold.visible())
    found: set[str] = set()
    for at, entry in enumerate(entries):
        for part in entry.parts:
            if part["type"] == "tool_result" and not entry.is_ghost:
                before = entries[at - 1] if at else None
                calls = [] if before is None or before.is_ghost else before.parts
                if not any(each.get("id") == part["id"] for each in calls):
                    found.add(part["id"])
    return found


class Case:
    """What both sides go on from: a question, if no root is given."""

    def __init__(self, root: Builder | None = None) -> None:
        if root is None:
            root = Builder("base")
            self.question = root.say("user", "Which database?")
        self.base = root.fold
        self.ours, self.theirs = Builder("ours", root.fold), Builder("theirs", root.fold)

    def plan(self, strategy: str = "append", **settled: str) -> MergePlan:
        """Return the plan; conflicts are settled by their kinds."""
        first = planned(self.base, self.ours, self.theirs, strategy=strategy, put=put)
        resolutions = {}
        for conflict in first.conflicts:
            choice = settled.get(conflict.kind.replace("-", "_"))
            if choice is not None:
                known = choice in ("ours", "theirs", "both")
                resolutions[conflict.key] = Resolution(
                    choice if known else "text", "" if known else choice
                )
        sides = self.ours, self.theirs
        return planned(self.base, *sides, strategy=strategy, resolutions=resolutions, put=put)

    def said(self, plan: MergePlan) -> list[Any]:
        """Return the stored parts of the merged context."""
        return [entry.parts for entry in merged(self.ours, self.theirs, plan).visible()]


def text(said: str) -> Any:
    return stored("user", Text(said))["parts"]


def test_both_edited() -> None:
    case = Case()
    case.ours.commit(ops.edit(case.question, text("Which one?")))
    case.theirs.commit(ops.edit(case.question, text("Which database, and why?")))
    (conflict,) = case.plan().conflicts
    assert (conflict.kind, conflict.addresses) == ("both-edited", (case.question,))
    assert case.said(case.plan(both_edited="ours")) == [text("Which one?")]
    assert case.said(case.plan(both_edited="theirs")) == [text("Which database, and why?")]
    assert case.said(case.plan(both_edited="both")) == [
        [*text("Which one?"), *text("Which database, and why?")]
    ]
    assert case.said(case.plan(both_edited="Neither.")) == [text("Neither.")]


def test_both_wordings_of_a_result_are_one_result() -> None:
    root = Builder("base")
    root.call("c1")
    result = root.result("c1")
    case = Case(root)
    for side, said in ((case.ours, "here"), (case.theirs, "there")):
        side.commit(ops.edit(result, stored("tool", ToolResult("c1", said))["parts"]))
    _, (part,) = case.said(case.plan(both_edited="both"))
    assert (part["type"], part["id"]) == ("tool_result", "c1")
    assert part["parts"] == [*text("here"), *text("there")]


def test_the_same_edit_is_no_conflict() -> None:
    case = Case()
    for side in (case.ours, case.theirs):
        side.commit(ops.edit(case.question, text("Which one?")))
    plan = case.plan()
    assert plan.operations == plan.conflicts == ()


@pytest.mark.parametrize("summary", [False, True])
@pytest.mark.parametrize("hides", ["ours", "theirs"])
def test_edited_and_hidden(summary: bool, hides: str) -> None:
    case = Case()
    hider, other = (case.ours, case.theirs) if hides == "ours" else (case.theirs, case.ours)
    other.commit(ops.edit(case.question, text("edited")))
    made = [stored("user", Text("summary"))] if summary else []
    hider.commit(ops.replace([case.question], made) if summary else ops.remove([case.question]))
    kind = "compressed-and-edited" if summary else "edited-and-removed"
    (conflict,) = case.plan().conflicts
    assert conflict.kind == kind
    name = kind.replace("-", "_")
    shown = [text("summary")] if summary else []
    hidden = case.said(case.plan(**{name: hides}))
    assert hidden == shown
    kept = case.said(case.plan(**{name: "theirs" if hides == "ours" else "ours"}))
    assert kept == [*shown, text("edited")]
    assert case.said(case.plan(**{name: "new"})) == [*shown, text("new")]


@pytest.mark.parametrize("hides", ["ours", "theirs"])
def test_what_one_side_shows_again_and_the_other_hides_otherwise(hides: str) -> None:
    """A text that settles it is shown, as the wording of the side that shows it would be."""
    case = Case()
    replaced = Builder("replaced", case.base)
    replaced.commit(ops.replace([case.question], []))
    case.base = replaced.fold
    case.ours, case.theirs = Builder("ours", case.base), Builder("theirs", case.base)
    hider, other = (case.ours, case.theirs) if hides == "ours" else (case.theirs, case.ours)
    other.commit(ops.restore([case.question]))
    hider.commit(ops.restore([case.question]))
    hider.commit(ops.remove([case.question], ghost=True))
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "edited-and-removed"
    shows = "theirs" if hides == "ours" else "ours"
    assert case.said(case.plan(edited_and_removed=shows)) == [text("Which database?")]
    assert case.said(case.plan(edited_and_removed="new")) == [text("new")]


@pytest.mark.parametrize("hides", ["ours", "theirs"])
def test_what_is_settled_to_be_shown_is_not_skipped(hides: str) -> None:
    case = Case()
    hider, other = (case.ours, case.theirs) if hides == "ours" else (case.theirs, case.ours)
    other.commit(ops.edit(case.question, text("edited")))
    hider.commit(ops.remove([case.question]))
    hider.commit(ops.annotate([case.question], priority="skip"))
    shows = "theirs" if hides == "ours" else "ours"
    assert case.said(case.plan(edited_and_removed=shows)) == [text("edited")]
    assert case.said(case.plan(edited_and_removed="new")) == [text("new")]
    assert case.said(case.plan(edited_and_removed=hides)) == []


def test_what_theirs_reworded_and_skips_stays_skipped() -> None:
    """Ours replaced it by a summary. Only a text resolution would show it again."""
    case = Case()
    case.theirs.commit(ops.edit(case.question, text("edited")))
    case.theirs.commit(ops.annotate([case.question], priority="skip"))
    case.ours.commit(ops.replace([case.question], [stored("user", Text("short"))]))
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "compressed-and-edited"
    result = merged(case.ours, case.theirs, case.plan(compressed_and_edited="theirs"))
    entry = result.entry(case.question)
    assert (entry.parts, entry.priority, entry.hidden) == (text("edited"), "skip", "")
    assert text("edited") not in case.said(case.plan(compressed_and_edited="theirs"))
    assert text("new") in case.said(case.plan(compressed_and_edited="new"))


def test_a_text_shows_what_both_sides_skip() -> None:
    case = Case()
    for side in (case.ours, case.theirs):
        side.commit(ops.annotate([case.question], priority="skip"))
    case.ours.commit(ops.edit(case.question, text("edited")))
    case.theirs.commit(ops.remove([case.question]))
    assert case.said(case.plan(edited_and_removed="new")) == [text("new")]


def test_a_text_shows_the_whole_exchange_that_neither_side_shows() -> None:
    """Ours skips a call that it reworded, theirs put a summary in its place: with the call comes its result."""
    root = Builder("base")
    call, result = root.call("c"), root.result("c")
    case = Case(root)
    reworded = [*stored("assistant", Text("I look."), ToolCall("c", "look", "{}"))["parts"]]
    case.ours.commit(ops.edit(call, reworded))
    case.ours.commit(ops.annotate([call, result], priority="skip"))
    case.theirs.commit(ops.replace([call, result], []))
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "compressed-and-edited"
    shown = case.said(case.plan(compressed_and_edited="I look there."))
    assert [[part["type"] for part in parts] for parts in shown] == [
        ["text", "tool_call"],
        ["tool_result"],
    ]


def test_pinned_and_removed() -> None:
    case = Case()
    case.ours.commit(ops.annotate([case.question], priority="pinned"))
    case.theirs.commit(ops.replace([case.question], [stored("user", Text("short"))]))
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "pinned-and-removed"
    assert text("Which database?") in case.said(case.plan(pinned_and_removed="ours"))
    assert case.said(case.plan(pinned_and_removed="theirs")) == [text("short")]


def test_contradicting_priorities() -> None:
    case = Case()
    case.ours.commit(ops.annotate([case.question], priority="pinned"))
    case.theirs.commit(ops.annotate([case.question], priority="skip"))
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "contradicting-priorities"
    assert len(case.said(case.plan(contradicting_priorities="ours"))) == 1
    assert case.said(case.plan(contradicting_priorities="theirs")) == []


def test_both_moved() -> None:
    root = Builder("base")
    a, b, c, d = (root.say("user", each) for each in "abcd")
    case = Case(root)
    for side, after in ((case.ours, c), (case.theirs, d)):
        side.commit(ops.move([a], after=after))
    (conflict,) = case.plan().conflicts
    assert (conflict.kind, conflict.addresses) == ("both-moved", (a,))
    assert case.said(case.plan(both_moved="ours")) == [text(each) for each in "bcad"]
    assert case.said(case.plan(both_moved="theirs")) == [text(each) for each in "bcda"]
    assert b != c


def test_both_compressed() -> None:
    root = Builder("base")
    a, b, c = (root.say("user", each) for each in "abc")
    case = Case(root)
    for side, targets, said in ((case.ours, [a, b], "mine"), (case.theirs, [b, c], "yours")):
        side.commit(ops.replace(targets, [stored("user", Text(said))]))
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "both-compressed"
    assert case.said(case.plan(both_compressed="ours")) == [text("mine"), text("c")]
    assert case.said(case.plan(both_compressed="theirs")) == [text("a"), text("yours")]
    assert case.said(case.plan(both_compressed="both")) == [text("mine"), text("yours")]


@pytest.mark.parametrize("strategy", ["append", "interleave"])
def test_two_answers(strategy: str) -> None:
    case = Case()
    for side, said in ((case.ours, "SQLite."), (case.theirs, "Postgres.")):
        side.say("assistant", said)
        side.say("user", f"Why {said}")
    (conflict,) = case.plan(strategy).conflicts
    assert (conflict.kind, conflict.addresses) == ("two-answers", (case.question,))
    assert len(conflict.ours) == len(conflict.theirs) == 1

    def outcome(choice: str) -> list[Any]:
        return sorted(case.said(case.plan(strategy, two_answers=choice)), key=str)

    whys = [text("Which database?"), text("Why SQLite."), text("Why Postgres.")]
    assert outcome("ours") == sorted([*whys, text("SQLite.")], key=str)
    assert outcome("theirs") == sorted([*whys, text("Postgres.")], key=str)
    assert outcome("both") == sorted([*whys, text("SQLite."), text("Postgres.")], key=str)
    assert outcome("Either.") == sorted([*whys, text("Either.")], key=str)


def test_a_call_that_was_given_up_long_ago_hides_no_conflict() -> None:
    root = Builder("base")
    root.call("c1")
    root.say("user", "Never mind. Which database?")
    case = Case(root)
    case.ours.say("assistant", "SQLite.")
    case.theirs.say("assistant", "Postgres.")
    assert [conflict.kind for conflict in case.plan().conflicts] == ["two-answers"]


def test_the_same_answer_stands_once() -> None:
    case = Case()
    for side in (case.ours, case.theirs):
        side.say("assistant", "SQLite.")
    plan = case.plan()
    assert not plan.conflicts
    assert case.said(plan) == [text("Which database?"), text("SQLite.")]


def test_a_result_comes_to_the_call_that_waits_for_it() -> None:
    root = Builder("base")
    root.call("c1")
    case = Case(root)
    case.ours.say("user", "Never mind.")
    case.theirs.result("c1")
    case.theirs.say("assistant", "It is there.")
    plan = case.plan()
    assert not plan.conflicts
    kinds = [parts[0]["type"] for parts in case.said(plan)]
    assert kinds == ["tool_call", "tool_result", "text", "text"]


def test_a_result_stays_at_the_call_that_theirs_gave_up() -> None:
    root = Builder("base")
    root.call("c1")
    case = Case(root)
    result = case.ours.result("c1")
    other = case.theirs.say("assistant", "I will not look.")
    times = {result[0]: 2, other[0]: 1}
    sides = case.ours, case.theirs
    plan = planned(case.base, *sides, strategy="interleave", put=put, time_of=lambda a: times[a[0]])
    assert [parts[0]["type"] for parts in case.said(plan)] == ["tool_call", "tool_result", "text"]


def test_two_results_of_one_call_are_two_answers() -> None:
    root = Builder("base")
    root.call("c1")
    case = Case(root)
    case.ours.result("c1", "here")
    case.theirs.result("c1", "there")
    (conflict,) = case.plan().conflicts
    assert conflict.kind == "two-answers"
    assert len(case.said(case.plan(two_answers="theirs"))) == 2
    called, result = case.said(case.plan(two_answers="both"))
    assert [part["type"] for part in called] == ["tool_call"]
    assert len(result) == 1
    assert [part["blob"] for part in result[0]["parts"]] == [put(b"here"), put(b"there")]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("ours", [b"here"]),
        ("theirs", [b"there"]),
        ("both", [b"here", b"there"]),
        ("text", [b"found"]),
        ("same", [b"here"]),
    ],
)
def test_a_call_has_one_result_wherever_each_side_answers_it(
    choice: str, said: list[bytes]
) -> None:
    root = Builder("base")
    call, last = root.call("c1"), root.say("user", "wait")
    ours, theirs = Builder("ours", root.fold), Builder("theirs", root.fold)
    result = ours.result("c1", "here")
    ours.commit(ops.move([result], after=call))  # among common messages, not at the end
    theirs.result("c1", "here" if choice == "same" else "there")
    plan = planned(root.fold, ours, theirs)
    assert [each.kind for each in plan.conflicts] == ["two-answers"] * (choice != "same")
    settled = {each.key: Resolution(choice, "found") for each in plan.conflicts}
    plan = planned(root.fold, ours, theirs, resolutions=settled, put=put)
    assert not plan.conflicts
    shown = list(merged(ours, theirs, plan).visible())
    assert [entry.address for entry in shown if entry.address in (call, last)] == [call, last]
    (answer,) = [part for e in shown for part in e.parts if part["type"] == "tool_result"]
    assert [part["blob"] for part in answer["parts"]] == list(map(put, said))


def test_both_of_two_answers_part_with_no_other_result() -> None:
    root = Builder("base")
    root.call("c1")
    ours, theirs = Builder("ours", root.fold), Builder("theirs", root.fold)
    for side, text in ((ours, "here"), (theirs, "there")):
        side.result("c1", text)
        side.call("c2")  # an id that each side uses for a call of its own
        side.result("c2", text)
    (conflict,) = planned(root.fold, ours, theirs).conflicts
    settled = {conflict.key: Resolution("both")}
    plan = planned(root.fold, ours, theirs, resolutions=settled, put=put)
    shown = [entry.parts for entry in merged(ours, theirs, plan).visible()]
    told = [(part["type"], part["id"]) for parts in shown for part in parts]
    own = [("tool_call", "c2"), ("tool_result", "c2")]
    assert told == [("tool_call", "c1"), ("tool_result", "c1"), *own, *own]
    assert len(shown[1][0]["parts"]) == 2


def test_contradicting_tools() -> None:
    case = Case()
    one, other = put(b"one"), put(b"other")
    case.ours.commit(ops.tools([one]))
    case.theirs.commit(ops.tools([other]))
    (conflict,) = case.plan().conflicts
    assert (conflict.kind, conflict.addresses) == ("contradicting-tools", ())
    for choice, tools in (("ours", (one,)), ("theirs", (other,)), ("both", (one, other))):
        plan = case.plan(contradicting_tools=choice)
        assert merged(case.ours, case.theirs, plan).tools == tools


def test_decisions_alone_and_with_what_they_stand_with() -> None:
    case = Case()
    case.theirs.say("assistant", "chatter")
    kept = case.theirs.say("assistant", "We take SQLite.")
    call = case.theirs.call("c1")
    result = case.theirs.result("c1")
    case.theirs.commit(ops.annotate([kept, result], labels=["decision"]))
    plan = case.plan("decisions")
    assert plan.included == (kept, call, result)
    assert not plan.conflicts


def test_interleaved_by_time_with_groups_whole() -> None:
    case = Case()
    times = {}
    times[case.ours.call("c1")] = 1
    times[case.ours.result("c1")] = 4
    times[case.ours.say("user", "late")] = 6
    times[case.theirs.say("user", "early")] = 2
    times[case.theirs.say("user", "later")] = 5
    plan = planned(
        case.base,
        case.ours,
        case.theirs,
        strategy="interleave",
        time_of=lambda address: times[address],
    )
    order = [entry.address for entry in merged(case.ours, case.theirs, plan).entries[1:]]
    assert [times[address] for address in order] == [2, 1, 4, 5, 6]


def test_unrelated_histories_stand_one_after_the_other() -> None:
    one, other = Builder("one"), Builder("other")
    one.say("user", "a")
    other.say("user", "b")
    plan = planned(None, one, other)
    assert not plan.conflicts
    fold = merged(one, other, plan)
    assert [entry.parts for entry in fold.visible()] == [text("a"), text("b")]


def test_a_text_that_settles_two_answers_leaves_a_shared_call_its_result() -> None:
    root = Builder("base")
    root.say("user", "go")
    call = root.call("one")
    ours, theirs = Builder("ours", root.fold), Builder("theirs", root.fold)
    result, answer = ours.result("one", "seen"), ours.say("assistant", "it is there")
    theirs.result("one", "not seen")
    (conflict,) = planned(root.fold, ours, theirs).conflicts
    assert conflict.kind == "two-answers"
    settled = {conflict.key: Resolution("text", "it may be there")}
    plan = planned(root.fold, ours, theirs, resolutions=settled, put=put)
    after = merged(ours, theirs, plan)
    shown = [entry.address for entry in after.visible()]
    assert shown == [root.fold.entries[0].address, call, result, answer]


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_result_does_not_come_without_the_call_that_ours_left_out(choice: str) -> None:
    root = Builder("base")
    root.say("user", "go")
    theirs = Builder("theirs", root.fold)
    call = theirs.call("one")
    base = theirs.fold.copy()  # which ours merged, and took nothing of
    ours = Builder("ours", root.fold)
    said = ours.say("user", "without tools, please")
    result = theirs.result("one")
    plan = planned(base, ours, theirs)
    (conflict,) = plan.conflicts
    assert (conflict.kind, conflict.addresses) == ("missing-target", (call,))
    assert [each.address for each in conflict.theirs] == [call, result]
    settled = {conflict.key: Resolution(choice)}
    plan = planned(base, ours, theirs, resolutions=settled)
    assert not plan.conflicts
    came = {e.address for e in merged(ours, theirs, plan).visible()}
    came -= {root.fold.entries[0].address, said}
    assert came == ({call, result} if choice == "theirs" else set())


@given(st.permutations(range(9)))
def test_what_passed_what_is_what_every_pair_says(ranks: list[int]) -> None:
    pairs = [(a, b) for a in range(9) for b in range(9)]
    inverted = {(a, b) for a, b in pairs if (a < b) != (ranks[a] < ranks[b])}
    assert {(a, b) for a, others in passed(ranks).items() for b in others} == inverted
    assert sum(map(len, passed(ranks).values())) == len(inverted)
