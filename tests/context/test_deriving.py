"""An index derived from another has what a fold has; the quick check lets nothing through that a fold refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.context.test_index_building import shown
from tests.support.examples import examples
from tests.support.message_strategies import messages as any_messages
from trace_store import Message, Repo, Text
from trace_store.context import ends
from trace_store.context.compile_index import cold_view
from trace_store.context.deriving import applies
from trace_store.context.folding import Fold
from trace_store.context.folding_history import fold
from trace_store.context.index_building import records_of_fold
from trace_store.context.index_records import HEADER_BYTES, MESSAGE_BYTES
from trace_store.context.recent import Recent, new_commits
from trace_store.errors import FormatError, InvalidInputError, MessageNotFoundError, NotFoundError
from trace_store.history import writing
from trace_store.history.draft import Draft
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit

number = st.integers(0, 30)
numbers = st.lists(number, min_size=1, max_size=3)
plain = st.text(max_size=4).map(lambda text: Message("user", text))
changes = st.one_of(
    st.tuples(st.just("append"), st.lists(st.one_of(plain, any_messages), min_size=1, max_size=3)),
    st.tuples(st.just("append"), st.lists(plain, min_size=1, max_size=2)),
    st.tuples(st.just("edit"), number),
    st.tuples(st.just("mark"), numbers, st.sampled_from(["pinned", "important", "normal", "skip"])),
    st.tuples(st.just("label"), numbers, st.sampled_from(["a", "b"])),
    st.tuples(st.just("unlabel"), numbers, st.sampled_from(["a", "b"])),
    st.tuples(st.just("keep"), numbers, st.lists(st.just("x"), max_size=1)),
    st.tuples(st.just("remove"), numbers, st.booleans()),
    st.tuples(st.just("restore"), numbers),
    st.tuples(st.just("reword"), number, st.integers(0, 2)),
    st.tuples(
        st.just("remove"), st.lists(st.integers(0, 3), min_size=1, max_size=2), st.booleans()
    ),
    st.tuples(st.just("restore"), st.lists(st.integers(0, 3), min_size=1, max_size=2)),
    st.tuples(st.just("replace"), numbers, st.lists(plain, max_size=2)),
    st.tuples(st.just("move"), numbers, st.one_of(st.none(), number)),
    st.tuples(st.just("usage"), number),
    st.tuples(st.just("tools"), number),
)
commits = st.lists(st.lists(changes, min_size=1, max_size=3), min_size=1, max_size=10)


def draft_of(draft: Draft, change: tuple[Any, ...], known: list[Any]) -> None:
    """Add a change to a draft; numbers name messages, also such as are hidden."""

    def at(index: int) -> Any:
        return known[index % len(known)]

    name = change[0]
    if name == "append":
        known += draft.extend(change[1])
    elif name == "usage":
        draft.record_usage({"input_tokens": 1, "output_tokens": change[1]})
    elif name == "tools":
        draft.set_tools([{"name": f"tool {change[1]}"}])
    elif not known:
        return
    elif name == "reword":
        draft.restore([at(change[1])], version=change[2])
    elif name == "edit":
        draft.edit(at(change[1]), [Text(f"edited {change[1]}")])
    elif name == "move":
        after = None if change[2] is None else at(change[2])
        draft.move([at(each) for each in change[1]], after=after)
    else:
        targets = list(dict.fromkeys(at(each) for each in change[1]))
        if name == "mark":
            draft.annotate(targets, priority=change[2])
        elif name == "label":
            draft.annotate(targets, labels=[change[2]])
        elif name == "unlabel":
            draft.annotate(targets, unlabels=[change[2]])
        elif name == "keep":
            draft.annotate(targets, keep=change[2])
        elif name == "remove":
            draft.remove(targets, ghost=change[2])
        elif name == "restore":
            draft.restore(targets)
        elif name == "replace":
            known += draft.replace(targets, change[2])


def written(repo: Repo, changed: list[tuple[Any, ...]], known: list[Any]) -> bool:
    """Write a commit with these changes and tell whether it could be applied; what it adds becomes known."""
    draft = writing.new_draft(repo.store)
    before = len(known)
    try:
        for change in changed:
            draft_of(draft, change, known)
        result = writing.write(repo.store, draft, author="ada")
    except (InvalidInputError, NotFoundError, FormatError):
        del known[before:]
        return False
    known[before:] = result.addresses
    return True


late = st.integers(2, 9)
hidings = st.one_of(
    st.tuples(st.just("remove"), st.lists(late, min_size=1, max_size=3), st.booleans()),
    st.tuples(st.just("mark"), st.lists(late, min_size=1, max_size=2), st.just("skip")),
    st.tuples(
        st.just("replace"), st.lists(late, min_size=1, max_size=2), st.lists(plain, max_size=1)
    ),
    st.tuples(st.just("restore"), st.lists(late, min_size=1, max_size=4)),
    st.tuples(st.just("restore"), st.lists(late, min_size=1, max_size=4)),
    st.tuples(st.just("mark"), st.lists(late, min_size=1, max_size=4), st.just("normal")),
    st.tuples(st.just("label"), st.lists(late, min_size=1, max_size=2), st.just("a")),
    st.tuples(st.just("edit"), late),
    st.tuples(st.just("reword"), late, st.integers(0, 2)),
    st.tuples(st.just("move"), st.lists(late, min_size=1, max_size=1), late),
    st.tuples(st.just("append"), st.lists(plain, min_size=1, max_size=1)),
)


@given(
    st.lists(st.lists(hidings, min_size=1, max_size=3), min_size=1, max_size=8),
    st.integers(1, 2),
    st.integers(1, 20),
)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))
def test_what_is_shown_again_stands_where_a_fold_has_it(
    history: list[list[tuple[Any, ...]]], stride: int, steps: int
) -> None:
    with Repo.memory() as repo, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ends, "STEPS", steps)
        known = [repo.append("user", str(n)).addresses[0] for n in range(10)]
        repo.compile()
        for count, changed in enumerate(history):
            if not written(repo, changed, known) or count % stride:
                continue
            assert_as_folded(repo)


@given(commits, st.integers(1, 3))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))
def test_a_derived_index_is_one_made_from_a_fold(
    history: list[list[tuple[Any, ...]]], stride: int
) -> None:
    """The index catches up after every few commits."""
    with Repo.memory() as repo:
        known: list[Any] = []
        for count, changed in enumerate(history):
            if not written(repo, changed, known) or count % stride:
                continue
            assert_as_folded(repo)


def assert_as_folded(repo: Repo) -> None:
    context = repo.compile()
    tip, read = repo.resolve("HEAD"), repo.store.objects.read
    state = fold(tip, lambda oid: read_commit(oid, read))
    view = repo.contexts.index_view("refs/heads/main")
    assert view is not None
    assert shown(list(view.messages())) == shown(records_of_fold(tip, state))
    assert (view.tip, view.tools_commit()) == (tip, state.tools_commit)
    assert view.message_count == len(list(state.visible())) == len(context)
    assert [m.position for m in context.messages] == list(range(len(context)))
    assert view.prefix_hash == cold_view(tip, read).prefix_hash


@given(commits, st.lists(changes, min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))
def test_what_the_records_let_through_a_fold_lets_through(
    history: list[list[tuple[Any, ...]]], changed: list[tuple[Any, ...]]
) -> None:
    with Repo.memory() as repo:
        known: list[Any] = []
        done = [written(repo, each, known) for each in history]
        if not any(done):
            return
        draft = writing.new_draft(repo.store)
        try:
            for change in changed:
                draft_of(draft, change, known)
        except (InvalidInputError, NotFoundError, FormatError):
            return
        tip, read = repo.resolve("HEAD"), repo.store.objects.read
        view = cold_view(tip, read)
        made = Commit([tip], "ada", 1, draft.operations)
        data = view.opened.read(HEADER_BYTES, view.records * MESSAGE_BYTES)

        def read_one(oid: bytes) -> Commit:
            return read_commit(oid, read)

        recent = Recent(read_one, lambda one, other: new_commits(repo.store, one, other))
        if applies(data, made, recent):
            state = fold(tip, lambda oid: read_commit(oid, read)) if tip else Fold()
            state.apply(ops.HERE, made)


def test_marks_edits_and_removals_fold_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.init(tmp_path) as repo:
        made = [repo.append("user", f"message {n}").addresses[0] for n in range(50)]
        repo.compile()
        with monkeypatch.context() as patch:
            for name in ("context.index_growth.fold", "context.fold"):
                patch.setattr(f"trace_store.{name}", lambda *_: pytest.fail("folded"))
            repo.annotate(made[3], priority="pinned")
            repo.edit(made[40], "other")
            repo.remove(made[10])
            repo.remove(made[11], ghost=True)
            assert len(repo.compile()) == 49
            repo.restore([made[11], made[10]])
            repo.annotate(made[12], priority="skip")
            repo.annotate(made[12], priority="normal", labels=["back"])
            repo.restore(made[40], version=0)
            assert len(repo.compile()) == 50
            repo.remove(made[10])
            repo.append("user", "one more")
            repo.move(made[20], after=made[30])
            repo.replace([made[1], made[2]], [Message("user", "both")])
            assert len(repo.compile()) == 49
        assert repo.contexts.verify().matches


def test_an_address_that_no_record_can_have_is_not_found(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        tip = repo.append("user", "a").oid
        repo.compile()
        for number in (1, 2**32, 2**70):
            with pytest.raises(MessageNotFoundError):
                repo.remove((tip, number))
            with pytest.raises(MessageNotFoundError):
                repo.edit((tip, number), "b")


def test_a_change_far_behind_an_index_is_found_by_making_it_anew() -> None:
    with Repo.memory() as repo:
        first = repo.append("user", "a").addresses[0]
        repo.compile()
        repo.edit(first, "b")
        for n in range(300):
            repo.append("user", str(n))
        assert repo.compile().messages[0].text == "b"
        assert repo.contexts.verify().matches
