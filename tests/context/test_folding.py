"""The fold of a line: effects of operations, and places of versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.changes import begin, long_histories, write_changes
from tests.support.examples import examples
from trace_store import Message, Repo, ToolCall, ToolResult
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.calls import Calls, HistoryCalls, link_operations
from trace_store.context.content import message_at, version_at
from trace_store.context.fold import Fold, fold
from trace_store.errors import InvalidOperationError
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, resolve_calls
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import store_message


class Line:
    """Commits that follow each other, in memory."""

    def __init__(
        self, commits: dict[bytes, Commit] | None = None, tip: ObjectId | None = None
    ) -> None:
        self.commits = commits or {}
        self.tip = tip
        self._put = ObjectCollector().put

    def commit(self, *operations: Operation, parents: Sequence[ObjectId] = ()) -> ObjectId:
        read = self.commits.__getitem__
        calls = Calls(HistoryCalls(self.tip, read, lambda oid: fold(oid, read)))
        before = [] if self.tip is None else [self.tip]
        made = Commit([*before, *parents], "ada", 1, link_operations(operations, calls))
        self.tip = hash_object(made.encode())
        self.commits[self.tip] = made
        return self.tip

    def stored(self, *messages: Message) -> list[Any]:
        return [store_message(each, self._put) for each in messages]

    def say(self, *messages: Message) -> list[Address]:
        """Append messages in a commit, and return their addresses."""
        oid = self.commit(ops.add(self.stored(*messages)))
        return [Address.of(oid, number) for number in range(len(messages))]

    def side(self) -> Line:
        """Return a line that begins here."""
        return Line(self.commits, self.tip)

    @property
    def fold(self) -> Fold:
        assert self.tip is not None
        return fold(self.tip, self.commits.__getitem__)

    def order(self) -> list[Address]:
        return [entry.address for entry in self.fold.entries]

    def hidden(self) -> dict[Address, str]:
        return {entry.address: entry.hidden for entry in self.fold.entries if entry.hidden}


def user(text: str) -> Message:
    return Message("user", text)


def call(name: str) -> Message:
    return Message("assistant", [ToolCall(name, "look", "{}")])


def result(*names: str) -> Message:
    return Message("tool", [ToolResult(name, "seen") for name in names])


@pytest.fixture
def line() -> Line:
    return Line()


def test_a_unit_is_a_call_and_its_results_whichever_is_named(line: Line) -> None:
    hi, asked, more = line.say(user("hi"), call("a"), user("more"))
    (first,) = line.say(result("a"))
    (second,) = line.say(result("a"))
    unit = {asked, first, second}
    for each in (asked, first, second):
        assert set(line.fold.unit(each)) == unit
        assert line.fold.unit_id(each) == asked
    assert line.fold.unit(hi) == (hi,)
    assert line.fold.entry(second).answers == (asked,)
    line.commit(ops.remove([second], ghost=True))
    assert line.hidden() == dict.fromkeys(unit, "removed")
    assert all(line.fold.entry(each).is_ghost for each in unit)
    line.commit(ops.restore([asked]))
    assert not line.hidden()
    line.commit(ops.annotate([first], priority="pinned", labels=["x"]))
    found = line.fold
    assert {each.address for each in found.entries if each.priority == "pinned"} == unit
    assert {each.address for each in found.entries if each.labels} == {first}
    line.commit(ops.move([second], after=more))
    assert line.order() == [hi, more, asked, first, second]


def test_what_joins_a_unit_takes_its_state(line: Line) -> None:
    hi, asked = line.say(user("hi"), call("a"))
    line.commit(ops.remove([asked], ghost=True), ops.annotate([asked], priority="important"))
    (answer,) = line.say(result("a"))
    entry = line.fold.entry(answer)
    assert (entry.hidden, entry.ghost, entry.priority) == ("removed", True, "important")
    assert not line.fold.entry(hi).hidden


def test_a_result_before_its_call_answers_a_call_of_the_same_commit_only(line: Line) -> None:
    early, asked = line.say(result("a"), call("a"))
    assert set(line.fold.unit(early)) == {early, asked}
    (orphan,) = line.say(result("b"))
    line.say(call("b"))
    assert line.fold.unit(orphan) == (orphan,)
    assert line.fold.unit_id(orphan) == orphan


def test_a_replacement_stands_where_the_first_stood_and_hides_whole_units(line: Line) -> None:
    hi, asked, more, answer = line.say(user("hi"), call("a"), user("more"), result("a"))
    oid = line.commit(ops.replace([answer], line.stored(user("looked"))))
    looked = Address.of(oid, 0)
    assert line.order() == [hi, looked, asked, more, answer]
    assert line.hidden() == {asked: "replaced", answer: "replaced"}


def test_messages_are_added_behind_a_neighbour_and_numbered_over_all_operations(line: Line) -> None:
    hi, more = line.say(user("hi"), user("more"))
    oid = line.commit(
        ops.add(line.stored(user("b"), user("c")), after=hi),
        ops.replace([more], line.stored(user("d"))),
        ops.add(line.stored(user("e"))),
    )
    b, c, d, e = (Address.of(oid, number) for number in range(4))
    assert line.order() == [hi, b, c, d, more, e]
    assert [found for found, _ in ops.added_messages(line.commits[oid], oid)] == [b, c, d, e]


def test_a_carried_message_keeps_its_id_its_state_and_its_wordings(line: Line) -> None:
    line.say(user("hi"))
    side = line.side()
    asked, said = side.say(call("a"), user("said"))
    (answer,) = side.say(result("a"))
    side.commit(
        ops.edit(said, side.stored(user("said better"))[0]["parts"]),
        ops.edit(said, side.stored(user("said best"))[0]["parts"]),
        ops.annotate([said], labels=["x"], keep=[hash_object(b"keep")]),
        ops.remove([asked]),
    )
    side.commit(ops.restore([said], version=1))
    carried = [entry.to_carried() for entry in side.fold.entries[1:]]
    oid = line.commit(ops.add(line.stored(user("new"))), ops.add(carried))
    assert line.order()[2:] == [asked, said, answer]
    for number, address in enumerate((asked, said, answer), 1):
        ours, theirs = line.fold.entry(address), side.fold.entry(address)
        assert ours.same_state(theirs)
        assert ours.to_carried() == theirs.to_carried()
        assert ours.home == (oid, number)
        assert [v.parts for v in ours.versions] == [v.parts for v in theirs.versions]
    assert set(line.fold.unit(answer)) == {asked, answer}
    assert [v.place for v in line.fold.entry(said).versions] == [(oid, 2), (oid, 3), (oid, 4)]
    before = line.fold
    line.commit(ops.add(carried))  # existing messages are skipped
    assert line.order() == [each.address for each in before.entries]
    assert line.fold.entry(said).home == (oid, 2)


def test_tools_and_reports_are_remembered(line: Line) -> None:
    line.say(user("hi"))
    tools = line.commit(ops.tools([hash_object(b"schema")]))
    reported = line.commit(ops.usage({"input_total": 9, "output_total": 1}))
    after = line.commit(ops.tools([]))
    found = line.fold
    assert (found.tools, found.tools_commit) == ((), after)
    assert found.measured == (reported, tools)


def test_only_first_parents_are_read_and_each_once(line: Line) -> None:
    line.say(user("hi"))
    side = line.side()
    for number in range(5):
        side.say(user(f"side {number}"))
        line.say(user(f"main {number}"))
        assert side.tip is not None
        line.commit(parents=[side.tip])
    reads: Counter[bytes] = Counter()

    def read(oid: bytes) -> Commit:
        reads[oid] += 1
        return line.commits[oid]

    assert line.tip is not None
    assert len(fold(line.tip, read)) == 6
    assert {*reads.values()} == {1}
    assert len(reads) == 11


@pytest.mark.parametrize(
    "operation",
    [
        lambda one, other: ops.remove([one, other]),
        lambda one, other: ops.edit(other, []),
        lambda one, other: ops.move([one], after=other),
        lambda one, other: ops.move([one], after=one),
        lambda one, other: ops.add([], after=other),
        lambda one, other: ops.annotate([other], labels=["x"]),
        lambda one, other: ops.restore([one], version=1),
    ],
    ids=["remove", "edit", "neighbour", "itself", "add", "annotate", "version"],
)
def test_what_a_context_does_not_hold_cannot_be_named(line: Line, operation: Any) -> None:
    (one,) = line.say(user("hi"))
    line.commit(operation(one, Address.of(hash_object(b"other"), 0)))
    with pytest.raises(InvalidOperationError):
        line.fold  # noqa: B018


@given(long_histories)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100))
def test_units_are_alike_and_messages_are_found_where_they_stand(
    history: list[list[tuple[Any, ...]]],
) -> None:
    with Repo.memory() as repo:
        known = begin(repo)
        for changed in history:
            write_changes(repo, changed, known)

        def read(oid: bytes) -> Commit:
            return read_commit(oid, repo.store.objects.read)

        state = fold(repo.resolve("HEAD"), read)
        for entry in state.entries:
            for other in map(state.entry, state.unit(entry.address)):
                assert (other.hidden, other.ghost) == (entry.hidden, entry.ghost)
                assert other.priority == entry.priority
                assert state.unit_id(other.address) == state.unit_id(entry.address)
            found = message_at(entry.home, read)
            parts = resolve_calls(found["parts"], entry.home[0])
            assert {**ops.without_state(found), "parts": parts} == entry.message
            assert [version_at(v.place, read) for v in entry.versions] == [
                v.parts for v in entry.versions
            ]
            assert entry.place == entry.versions[entry.current].place
