"""A merge that looks at parts of contexts comes to what it comes to on whole ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.context.test_deriving import changes
from tests.joining.support.histories import LINES, Lines, histories, turns
from tests.joining.support.lines import branch, on, said
from tests.support.examples import examples
from trace_store import FixedClock, Message, Repo, ToolCall, ToolResult
from trace_store.commit_table import rows, table
from trace_store.history import writing
from trace_store.joining.plan import Plan
from trace_store.joining.three_way import sparse
from trace_store.joining.three_way.combining import three_way
from trace_store.joining.three_way.sides import Reading
from trace_store.odb.database import ObjectDatabase
from trace_store.oid import ObjectId, digest

EXAMPLES = int(os.environ.get("TRACE_TEST_EXAMPLES", "20"))


def told(plan: Plan) -> Any:
    """Return all that a plan says."""

    def names(entries: Any) -> list[Any]:
        return [(e.address, e.parts, e.hidden, e.ghost, e.priority) for e in entries]

    def named(conflicts: Any) -> list[Any]:
        return [
            (c.kind, c.key, c.addresses, names(c.ours), names(c.theirs), c.choices)
            for c in conflicts
        ]

    return (plan.operations, named(plan.conflicts), named(plan.settled), plan.included)


def planned(repo: Repo, ours: str, theirs: str, **options: Any) -> tuple[Plan | None, Plan]:
    """Return the plan made of parts, None when these do not tell, and the one made of whole contexts."""
    reading = Reading(repo.store)
    mine, yours = repo.resolve(ours), repo.resolve(theirs)
    bases = reading.bases(mine, yours)

    def plan(*refs: str) -> Plan:
        folds, one, other = reading.sides(mine, yours, bases, refs)
        options.setdefault("put", lambda content: ObjectId(digest(content)))
        return three_way(folds, one, other, time_of=reading.time, **options)

    near = plan(f"refs/heads/{ours}", f"refs/heads/{theirs}")
    return (None if reading.is_whole(mine, yours) else near), plan()


@given(
    histories,
    st.sampled_from(LINES),
    st.sampled_from(["append", "interleave"]),
    st.sampled_from(["", "ours", "theirs"]),
    st.integers(1, 3),
)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES)
def test_parts_lead_to_the_plan_that_whole_contexts_lead_to(
    history: list[tuple[Any, ...]], ours: str, strategy: str, favour: str, steps: int
) -> None:
    """Few commits before the base are looked at, as in a long history."""
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "STEPS", steps)
        lines = Lines(repo)
        for step in history:
            lines.do(step)
        for theirs in LINES:
            if theirs == ours:
                continue
            near, whole = planned(repo, ours, theirs, strategy=strategy, favour=favour)
            event("whole" if near is None else "parts" if whole.operations else "nothing")
            if near is not None:
                assert told(near) == told(whole)


spoken = st.lists(st.one_of(turns, turns, changes), max_size=8)
later = st.lists(st.one_of(turns, turns, changes), max_size=4)


@given(
    spoken,
    later,
    later,
    later,
    st.sampled_from(["append", "interleave"]),
    st.sampled_from(["", "ours", "theirs"]),
    st.integers(1, 3),
)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(2) * EXAMPLES)
def test_two_lines_that_part_are_joined_by_their_ends(
    before: list[Any],
    ours: list[Any],
    theirs: list[Any],
    third: list[Any],
    strategy: str,
    favour: str,
    steps: int,
) -> None:
    """Ours may have taken in a third line since they parted."""
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "STEPS", steps)
        lines = Lines(repo)
        for change in before:
            lines.do(("change", "main", change))
        for name in ("side", "third"):
            branch(repo, name, "main")
        made = (("third", third), ("main", ours[:2]), ("side", theirs), ("main", ours[2:]))
        for at, (name, changed) in enumerate(made):
            if at == len(made) - 1 and third:
                lines.do(("merge", "main", "third", "append"))
            for change in changed:
                lines.do(("change", name, change))
        near, whole = planned(repo, "main", "side", strategy=strategy, favour=favour)
        event("whole" if near is None else "parts" if whole.operations else "nothing")
        if near is not None:
            assert told(near) == told(whole)


DIRECTIONS = ("main into side", "side into main")
rounds = st.lists(st.tuples(later, later), min_size=2, max_size=4)
both_ways = st.lists(st.tuples(later, later, st.sampled_from(DIRECTIONS)), min_size=2, max_size=6)


@given(rounds, st.sampled_from(["append", "interleave"]), st.integers(1, 3), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(2) * EXAMPLES)
def test_one_line_comes_into_another_again_and_again(
    made: list[Any], strategy: str, steps: int, back: bool
) -> None:
    """The base of all but the first merge lies beside our line; in the end theirs may take ours in instead."""
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "STEPS", steps)
        lines = Lines(repo)
        lines.do(("change", "main", ("say", ["user", "call"])))
        branch(repo, "side", "main")
        for number, (theirs, ours) in enumerate(made):
            if number:
                lines.do(("merge", "side", "main", "append"))
            for name, changed in (("main", theirs), ("side", ours)):
                for change in changed:
                    lines.do(("change", name, change))
        ends = ("main", "side") if back else ("side", "main")
        near, whole = planned(repo, *ends, strategy=strategy)
        event("whole" if near is None else "parts" if whole.operations else "nothing")
        if near is not None:
            assert told(near) == told(whole)


@given(spoken, both_ways, st.sampled_from(["append", "interleave"]), st.integers(1, 3))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(2) * EXAMPLES)
def test_two_lines_are_brought_together_again_and_again(
    before: list[Any], made: list[Any], strategy: str, steps: int
) -> None:
    """Each takes the other in at times, so that the base lies beside ours, beside theirs, or on both lines."""
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "STEPS", steps)
        lines = Lines(repo)
        for change in before:
            lines.do(("change", "main", change))
        branch(repo, "side", "main")
        for ours, theirs, direction in made:
            for name, changed in (("main", ours), ("side", theirs)):
                for change in changed:
                    lines.do(("change", name, change))
            source, _, target = direction.split(" ")
            near, whole = planned(repo, target, source, strategy=strategy)
            event("whole" if near is None else "parts" if whole.operations else "nothing")
            if near is not None:
                assert told(near) == told(whole)
            lines.do(("merge", target, source, "append"))


@pytest.mark.parametrize(
    ("strategy", "end"), [("append", ["m2", "s2"]), ("interleave", ["s2", "m2"])]
)
def test_what_was_moved_to_the_front_is_not_taken_for_the_end(
    strategy: str, end: list[str]
) -> None:
    """Our line took theirs in, whose first message was said last: behind it stands nothing of the end."""
    with Repo.memory(clock=FixedClock(step=1000)) as repo:
        repo.append("user", "long ago")
        branch(repo, "side", "main")
        on(repo, "side")
        front = repo.append("user", "to the front").addresses[0]
        repo.move(front, after=None)
        on(repo, "main")
        repo.append("user", "m1")
        repo.merge("side")
        on(repo, "side")
        repo.append("user", "s2")
        on(repo, "main")
        repo.append("user", "m2")
        near, whole = planned(repo, "main", "side", strategy=strategy)
        assert near is None or told(near) == told(whole)
        repo.merge("side", strategy=strategy)
        assert said(repo) == ["to the front", "long ago", "m1", *end]


def test_what_another_merge_put_at_the_end_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lines answer a call, ours by what it took in from a third."""
    monkeypatch.setattr(sparse, "STEPS", 1)
    with Repo.memory(clock=FixedClock(step=1000)) as repo:
        repo.append("user", "look")
        repo.append("assistant", [ToolCall("c", "look", "{}")])
        for name in ("side", "third"):
            branch(repo, name)
            on(repo, name)
            repo.append("tool", [ToolResult("c", f"seen by {name}")])
            on(repo, "main")
        repo.merge("third", fast_forward="never")
        near, whole = planned(repo, "main", "side")
        assert near is None or told(near) == told(whole)
        assert [each.kind for each in repo.merge("side").conflicts] == ["two-answers"]


def reads_of_a_merge(folder: Path, own: int) -> int:
    """Return how many objects a merge reads whose lines have so many commits of their own, most of them long ago."""
    with Repo.init(folder, durability="fast") as repo:
        repo.append("user", "first")
        branch(repo, "side", "main")
        for name in ("main", "side"):
            on(repo, name)
            for number in range(own):
                repo.append("user", f"{name} {number}")
        on(repo, "main")
        repo.compile()
    with Repo.open(folder) as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "CHUNK_ROWS", 16)
        patch.setattr(rows, "RECENT_ROWS", 32)
        patch.setattr(table, "RECENT_ROWS", 32)
        read, found = ObjectDatabase.read, 0

        def counting(self: ObjectDatabase, oid: bytes, *rest: Any) -> Any:
            nonlocal found
            found += 1
            return read(self, oid, *rest)

        patch.setattr(ObjectDatabase, "read", counting)
        repo.merge("side")
        return found


def test_a_merge_reads_each_commit_of_its_lines_a_few_times(tmp_path: Path) -> None:
    """However many they are: what it asks of all of them, it asks at once."""
    small, large = (reads_of_a_merge(tmp_path / str(own), own) for own in (100, 300))
    assert large < 3.3 * small
    assert large < 8 * 2 * 300


def same_both_ways(repo: Repo, ours: str, theirs: str, **options: Any) -> None:
    """Check that parts lead to the plan of whole contexts, or tell nothing."""
    near, whole = planned(repo, ours, theirs, **options)
    assert near is None or told(near) == told(whole)


def compressed(repo: Repo, line: str, target: Any, text: str) -> None:
    """Let a line put a summary in the place of a message."""
    on(repo, line)
    draft = writing.new_draft(repo.store)
    draft.replace([target], [Message("user", text)])
    writing.write(repo.store, draft, author="ada")


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory(clock=FixedClock(step=1000)) as made:
        yield made


def test_what_came_in_between_old_messages_stays_between_them(repo: Repo) -> None:
    """Ours begins, as far as it is looked at, behind the message that theirs put another one behind."""
    repo.append("user", "question")
    repo.append("assistant", "answer")
    branch(repo, "side")
    branch(repo, "third")
    for name in ("third", "main", "side"):
        on(repo, name)
        repo.append("user", name)
    repo.merge("main")
    on(repo, "main")
    repo.merge("third", strategy="interleave")
    same_both_ways(repo, "side", "main")
    on(repo, "side")
    repo.merge("main")
    assert said(repo) == ["question", "answer", "side", "third", "main"]


def test_a_summary_that_a_third_line_made_rivals_ours(repo: Repo) -> None:
    """Theirs, which had removed the message itself, took it in."""
    repo.append("user", "first")
    target = repo.append("user", "long").addresses[0]
    repo.append("user", "last")
    branch(repo, "side")
    branch(repo, "third")
    compressed(repo, "third", target, "third's summary")
    on(repo, "side")
    repo.remove(target)
    repo.merge("third")
    compressed(repo, "main", target, "our summary")
    same_both_ways(repo, "main", "side")
    assert [each.kind for each in repo.merge("side").conflicts] == ["both-compressed"]


@pytest.mark.parametrize("forked", [False, True])
def test_a_result_that_matters_has_its_call_in_sight(repo: Repo, forked: bool) -> None:
    """Ours removed an exchange from before the messages that are looked at; theirs reworded the result."""
    repo.append("user", "question")
    call = repo.append("assistant", [ToolCall("c", "look", "{}")]).addresses[0]
    result = repo.append("tool", [ToolResult("c", "seen")]).addresses[0]
    for number in range(7):
        repo.append("user", f"next {number}")
    branch(repo, "side")
    if forked:
        repo.append("user", "ours")
        on(repo, "side")
        repo.append("user", "theirs")
        repo.merge("main")
        on(repo, "main")
    repo.remove([call, result])
    on(repo, "side")
    repo.edit(result, [ToolResult("c", "other")])
    same_both_ways(repo, "main", "side", favour="theirs")


@pytest.mark.parametrize("line", ["main", "side"])
def test_a_hidden_result_answers_a_call_from_long_ago(repo: Repo, line: str) -> None:
    repo.append("user", "question")
    repo.append("assistant", [ToolCall("c", "look", "{}")])
    for number in range(40):
        repo.append("user", f"next {number}")
    branch(repo, "side")
    on(repo, line)
    repo.append("user", "before")
    result = repo.append("tool", [ToolResult("c", "seen")]).addresses[0]
    repo.remove(result)
    repo.append("user", "behind")
    on(repo, "side" if line == "main" else "main")
    repo.append("user", "else")
    for strategy in ("append", "interleave"):
        same_both_ways(repo, "main", "side", strategy=strategy)


def test_what_was_put_behind_an_old_message_is_in_doubt(repo: Repo) -> None:
    """Ours put a summary behind it, where nothing of that is in sight."""
    old = repo.append("user", "old").addresses[0]
    target = repo.append("user", "long").addresses[0]
    for number in range(9):
        repo.append("user", f"next {number}")
    branch(repo, "side")
    branch(repo, "third")
    on(repo, "third")
    repo.move(repo.append("user", "third").addresses[0], after=old)
    on(repo, "side")
    repo.edit(old, "reworded")
    repo.merge("third")
    compressed(repo, "main", target, "short")
    same_both_ways(repo, "main", "side")
