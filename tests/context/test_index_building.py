"""An index equals the fold, whether appended to, derived or built from scratch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.support.histories import move
from tests.support.changes import begin, long_histories, write_changes
from tests.support.examples import examples
from trace_store import Message, Repo, ToolCall, ToolResult, context
from trace_store.context import index_update
from trace_store.context.compile_index import (
    EDITED,
    GHOST,
    IS_MARKED,
    IndexView,
    cold_view,
    prefix_of,
)
from trace_store.context.content import prefix_after, seen_of_entry
from trace_store.context.fold import fold
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.errors import MessageNotFoundError
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit


def check(repo: Repo, view: IndexView) -> None:
    """Compare an index's content for a commit with its fold."""
    assert view.tip is not None
    state = fold(view.tip, lambda oid: read_commit(oid, repo.store.objects.read))
    prefix, said = bytes(32), []
    for number, entry in enumerate(state.visible(), 1):
        prefix = prefix_after(prefix, seen_of_entry(entry))
        priority = entry.priority.replace("skip", "normal")  # of a ghost
        marks = priority, [entry.is_ghost, entry.current > 0, entry.is_marked]
        said.append((entry.address, entry.home, entry.place, marks, number, prefix))
    found = []
    for record in view.messages():
        home = record.home_commit, record.home_number
        place = record.place_commit, record.place_number
        marks = record.priority, [bool(record.flags & flag) for flag in (GHOST, EDITED, IS_MARKED)]
        found.append((record.address, home, place, marks, record.ordinal, record.prefix))
    assert found == said
    assert view.message_count == len(said)
    assert view.prefix_hash == prefix
    assert view.tools_commit() == state.tools_commit
    measured = view.measured()
    assert state.measured == (measured and (measured.commit, measured.tools_commit))
    if measured and measured.prefix != bytes(32):
        then = cold_view(measured.commit, repo.store.objects.read)
        assert (measured.message_count, measured.prefix) == (then.message_count, then.prefix_hash)
    for number, record in enumerate(view.messages()):
        assert view.record(view.number_of(number)) == record


def check_earlier(repo: Repo, view: IndexView) -> None:
    """Records about earlier commits match these commits."""
    oid = view.tip
    while oid is not None:
        found = prefix_of(view, oid)
        if found is not None:
            check(repo, found)
        parents = read_commit(oid, repo.store.objects.read).parents
        oid = parents[0] if parents else None


@given(long_histories, st.integers(1, 3), st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(200))
def test_an_index_that_follows_its_branch_has_what_a_fold_has(
    history: list[list[tuple[Any, ...]]], stride: int, random: Any
) -> None:
    """It catches up after every few commits; now and then the branch goes back to an earlier one."""
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_update, "NEAR", 2)
        known = begin(repo)
        for count, changed in enumerate(history):
            if not write_changes(repo, changed, known):
                continue
            tip = repo.resolve("HEAD")
            parents = read_commit(tip, repo.store.objects.read).parents
            if parents and random.random() < 0.2:
                move(repo.store, "refs/heads/main", parents[0])
            if count % stride:
                continue
            messages = repo.compile()
            view = repo.contexts.index_view("refs/heads/main")
            assert view is not None
            assert view.tip == repo.resolve("HEAD")
            check(repo, view)
            check_earlier(repo, view)
            check(repo, cold_view(view.tip, repo.store.objects.read))
            assert [m.position for m in messages] == list(range(len(messages)))
            assert repo.contexts.verify().matches


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, durability="fast")


def unfolded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context.snapshots, "fold_of", lambda *_: pytest.fail("folded"))


def test_appends_and_results_of_calls_that_are_shown_fold_nothing(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.append("user", "hi")
    repo.compile()
    unfolded(monkeypatch)
    repo.append("assistant", [ToolCall("a", "look", "{}")])
    repo.append("tool", [ToolResult("a", "seen")])
    repo.commit([Message("assistant", [ToolCall("b", "look", "{}")]), Message("user", "wait")])
    repo.set_tools([{"name": "look"}])
    repo.append("tool", [ToolResult("b", "seen")])
    assert len(repo.compile()) == 6
    monkeypatch.undo()
    assert repo.contexts.verify().matches


def test_a_result_takes_the_state_of_its_call(repo: Repo) -> None:
    repo.append("user", "hi")
    for name, priority in (("a", "pinned"), ("b", "skip"), ("c", "normal")):
        repo.append("assistant", [ToolCall(name, "look", "{}")])
        repo.annotate("HEAD.0", priority=priority)
    repo.remove(repo.compile().messages[-1].address, ghost=True)
    repo.compile()
    repo.append("tool", [ToolResult("a", "seen")])
    assert repo.compile().messages[-1].priority == "pinned"
    assert repo.contexts.verify().matches
    for name, count in (("b", 4), ("c", 5)):
        repo.append("tool", [ToolResult(name, "seen")])
        assert len(repo.compile()) == count
        assert repo.contexts.verify().matches
    assert repo.compile().messages[-1].ghost


def test_a_result_of_several_calls_takes_the_state_that_the_fold_has(repo: Repo) -> None:
    repo.append("assistant", [ToolCall("a", "look", "{}")])
    repo.append("assistant", [ToolCall("b", "look", "{}")])
    repo.annotate("HEAD.0", priority="pinned")
    repo.compile()
    repo.append("tool", [ToolResult("a", "seen"), ToolResult("b", "seen")])
    assert [m.priority for m in repo.compile()] == [
        m.priority for m in repo.contexts.compile(cold=True)
    ]
    assert repo.contexts.verify().matches


def test_what_stays_is_neither_hashed_nor_written_otherwise(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [repo.append("user", f"message {n}").addresses[0] for n in range(50)]
    repo.compile()
    path = Path(repo.store.layout.index_file("refs/heads/main", "messages"))
    before = path.read_bytes()
    hashed: list[Address] = []

    def noted(entry: Any) -> bytes:
        hashed.append(entry.address)
        return seen_of_entry(entry)

    monkeypatch.setattr(index_update, "seen_of_entry", noted)
    repo.edit(made[40], "other")
    repo.annotate(made[42], priority="pinned")
    repo.remove(made[44])
    assert len(repo.compile()) == 49
    assert hashed == [made[40]]
    assert path.read_bytes()[64 : 64 + 40 * 180] == before[64 : 64 + 40 * 180]
    repo.move(made[49], after=made[41])
    repo.restore(made[44])
    repo.remove(made[45], ghost=True)
    assert len(repo.compile()) == 50
    assert hashed == [made[40], made[44], made[45]]
    monkeypatch.undo()
    assert repo.contexts.verify().matches


def test_changes_at_the_end_let_the_index_grow_by_no_more_than_a_marker(repo: Repo) -> None:
    made = [repo.append("user", f"message {n}").addresses[0] for n in range(50)]
    repo.compile()
    for number in range(20):
        repo.edit(made[-1], f"wording {number}")
        repo.compile()
    view = repo.contexts.index_view("refs/heads/main")
    assert view is not None
    assert view.records == 51
    assert repo.contexts.verify().matches


def test_what_was_measured_is_known_after_edits(repo: Repo) -> None:
    first = repo.append("user", "hi").addresses[0]
    repo.set_tools([{"name": "look"}])
    reported = repo.commit([Message("assistant", "yes")])
    repo.record_usage({"input_tokens": 9, "output_tokens": 1})
    measured_at, count = repo.resolve("HEAD"), repo.compile().token_count
    assert (reported.oid, count) == (repo.resolve("HEAD~1"), 10)
    view = repo.contexts.index_view("refs/heads/main")
    for number in range(3):
        repo.edit(first, f"wording {number}")
        repo.set_tools([{"name": f"tool {number}"}])
        repo.compile()
        assert view is not None
        prefix, view = view.measured(), repo.contexts.index_view("refs/heads/main")
        assert view is not None
        measured = view.measured()
        assert prefix is not None
        assert measured is not None
        assert (measured.commit, measured.is_prefix) == (measured_at, False)
        assert (measured.message_count, measured.prefix) == (2, prefix.prefix)
        check(repo, view)
        assert repo.contexts.verify().matches


def test_what_another_way_on_measured_and_set_is_forgotten(repo: Repo) -> None:
    """Also if its records are a prefix of the current ones."""
    repo.append("user", "hi")
    back = RefEdit("refs/heads/main", repo.resolve("HEAD"), ANY)
    repo.set_tools([{"name": "look"}])
    repo.record_usage({"input_tokens": 9, "output_tokens": 1})
    assert repo.compile().tools
    repo.store.transact(lambda _: Transaction([], [back]))
    made = repo.commit([Message("user", "b"), Message("user", "c")])
    repo.remove(made.addresses[1])
    assert repo.compile().tools == ()
    view = repo.contexts.index_view("refs/heads/main")
    assert view is not None
    check(repo, view)


def test_an_address_that_no_record_can_have_is_not_found(repo: Repo) -> None:
    tip = repo.append("user", "a").oid
    repo.compile()
    for number in (1, 2**32, 2**70):
        with pytest.raises(MessageNotFoundError):
            repo.remove(Address.of(tip, number))
        with pytest.raises(MessageNotFoundError):
            repo.edit(Address.of(tip, number), "b")


def test_a_change_far_behind_an_index_is_found_by_making_it_anew(repo: Repo) -> None:
    first = repo.append("user", "a").addresses[0]
    repo.compile()
    repo.edit(first, "b")
    for n in range(300):
        repo.append("user", str(n))
    assert repo.compile().messages[0].text == "b"
    assert repo.contexts.verify().matches


def test_carried_messages_have_records_of_their_own_address(repo: Repo) -> None:
    repo.append("user", "base")
    repo.branches.create("side")
    call = repo.append("assistant", [ToolCall("a", "look", "{}")]).addresses[0]
    repo.append("tool", [ToolResult("a", "seen")])
    ours = repo.append("user", "b").addresses[0]
    repo.edit(ours, "B")
    repo.annotate(ours, labels=["x"])
    repo.annotate(call, priority="pinned")
    state = repo.contexts.fold(repo.resolve("HEAD"))
    carried = [entry.to_carried() for entry in state.entries[1:]]
    repo.branches.switch("side")
    with repo.batch() as draft:
        draft.operations.append(ops.add(carried))
    context = repo.compile()
    assert [m.text for m in context.messages[::3]] == ["base", "B"]
    assert [m.address for m in context] == [entry.address for entry in state.entries]
    assert [m.priority for m in context] == ["normal", "pinned", "pinned", "normal"]
    assert context.messages[-1].labels == {"x"}
    assert repo.contexts.verify().matches
    view = repo.contexts.index_view("refs/heads/side")
    assert view is not None
    check(repo, view)
