"""`diff` of two contexts: exactly the differences, and symmetric."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.support.histories import move
from tests.support.changes import commits, write_changes
from tests.support.examples import examples
from trace_store import Message, Repo, Text
from trace_store.context.compiled import CompiledMessage, tokens_before
from trace_store.history import commit
from trace_store.history.diff import KINDS, ContextDiff, diff
from trace_store.history.draft import Draft
from trace_store.history.text_diff import word_diff
from trace_store.writer import Writer

SLOW = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(40))


def branch(repo: Repo, name: str, *, at: str = "HEAD") -> None:
    """Make a branch and go to it."""
    move(repo.store, f"refs/heads/{name}", repo.resolve(at))
    repo.store.refs.set_head(f"refs/heads/{name}", author="ada")


def forked(repo: Repo, *parts: list[list[tuple[Any, ...]]]) -> list[str] | None:
    """Write a history, and two that go on from it; return the names of these two."""
    known: list[Any] = []
    before, *others = parts
    done = [write_changes(repo, changed, known) for changed in before]
    if not any(done):
        return None
    names = ["one", "other"]
    start = repo.resolve("HEAD")
    for name, part in zip(names, others, strict=True):
        branch(repo, name, at=str(start))
        here = list(known)
        for changed in part:
            write_changes(repo, changed, here)
    return names


def said(message: CompiledMessage | None) -> tuple[Any, ...] | None:
    """What may differ between two contexts in a message, besides its place."""
    if message is None:
        return None
    address = str(message.address)
    return (*shown(message), message.ghost, message.priority, message.labels, address)


def shown(message: CompiledMessage) -> tuple[Any, ...]:
    return message.role, message.name, repr(message.parts)


def mirrored(found: ContextDiff) -> dict[str, Any]:
    turn = {"added": "removed", "removed": "added"}
    return {
        str(c.address) if c.before is None or c.after is None else str(c.before.address): (
            {turn.get(kind, kind) for kind in c.kinds},
            said(c.after),
            said(c.before),
            c.after_by,
            c.before_by,
            c.tokens_after,
            c.tokens_before,
            c.labels_after,
            c.labels_before,
        )
        for c in found.changes
    }


def as_is(found: ContextDiff) -> dict[str, Any]:
    return {
        str(c.address): (
            set(c.kinds),
            said(c.before),
            said(c.after),
            c.before_by,
            c.after_by,
            c.tokens_before,
            c.tokens_after,
            c.labels_before,
            c.labels_after,
        )
        for c in found.changes
    }


@given(st.tuples(commits, commits, commits))
@SLOW
def test_a_diff_explains_exactly_what_differs(parts: tuple[Any, Any, Any]) -> None:
    with Repo.memory() as repo:
        names = forked(repo, *parts)
        if names is None:
            return
        found = diff(repo.contexts, *names)
        before, after = (repo.compile(name) for name in names)
        gone = {c.before.position for c in found.changes if c.before is not None}
        come = {c.after.position for c in found.changes if c.after is not None}
        left = [said(m) for m in before if m.position not in gone]
        assert left == [said(m) for m in after if m.position not in come]
        for change in found.changes:
            assert change.kinds
            assert set(change.kinds) <= set(KINDS)
            if "moved" not in change.kinds:
                assert said(change.before) != said(change.after)
            assert (change.before is None) == ("added" in change.kinds)
            assert (change.after is None) == ("removed" in change.kinds)
        pairs = zip(map(shown, before), map(shown, after), strict=False)
        same = 0
        for one, other in pairs:
            if one != other:
                break
            same += 1
        assert found.common_count == same
        bare = found.tokens_after - found.tokens_before
        if len(before) and len(after):
            listed = sum(c.tokens_after - c.tokens_before for c in found.changes)
            # Counts that a model's factor scales are rounded one by one.
            rounding = len(found.changes) if "*" in found.token_source else 0
            assert abs(bare - listed) <= rounding
        assert found.is_empty == (
            list(map(said, before)) == list(map(said, after)) and before.tools == after.tools
        )


@given(st.tuples(commits, commits, commits))
@SLOW
def test_a_diff_is_the_same_from_either_side(parts: tuple[Any, Any, Any]) -> None:
    with Repo.memory() as repo:
        names = forked(repo, *parts)
        if names is None:
            return
        there, back = diff(repo.contexts, *names), diff(repo.contexts, *reversed(names))
        copies = [c for c in back.changes if "copied" in c.kinds]
        if not copies:
            assert as_is(there) == mirrored(back)
        assert len(there.changes) == len(back.changes)
        assert (there.tokens_lost, there.tokens_new) == (back.tokens_new, back.tokens_lost)
        assert (there.tools_before, there.tools_after) == (back.tools_after, back.tools_before)
        assert diff(repo.contexts, names[0], names[0]).is_empty


@given(st.text("ab \n_.", max_size=60), st.text("ab \n_.", max_size=60))
def test_words_put_together_are_the_two_texts(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(p.text for p in pieces if p.sign in "=-") == before
    assert "".join(p.text for p in pieces if p.sign in "=+") == after
    assert (before == after) == all(p.sign == "=" for p in pieces)


def test_words_of_long_texts_that_repeat_themselves_are_told_soon() -> None:
    before, after = "a b\n" * 30_000, "a c\n" * 30_000
    assert [p.sign for p in word_diff(before, after)] == ["-", "+"]
    one, other = "x\n" * 9_000 + "y\n", "y\n" + "x\n" * 8_000
    assert "".join(p.text for p in word_diff(one, other) if p.sign != "-") == other


def test_what_was_copied_is_no_loss_to_the_prefix() -> None:
    with Repo.memory() as repo:
        repo.append("user", "first")
        start = str(repo.resolve("HEAD"))
        branch(repo, "one")
        repo.commit([Message("user", "same"), Message("user", "mine")])
        branch(repo, "other", at=start)
        repo.append("user", "same")
        repo.append("user", "theirs")
        found = diff(repo.contexts, "one", "other")
        assert [c.kinds for c in found.changes] == [("copied",), ("removed",), ("added",)]
        assert found.common_count == 2
        assert found.tokens_kept == tokens_before(repo.compile("one"), 2)


def test_one_of_several_that_say_the_same_goes() -> None:
    """Those after it are others than stood there before, though a model sees no difference."""
    with Repo.memory() as repo:
        repo.commit([Message("user", "again")] * 3)
        first, second, third = [message.address for message in repo.compile()]
        branch(repo, "other")
        repo.remove([first])
        found = diff(repo.contexts, "main")
        pairs = [
            (change.before and change.before.address, change.after and change.after.address)
            for change in found.changes
        ]
        assert pairs == [(first, second), (second, third), (third, None)]


def test_the_operation_that_did_it_is_named() -> None:
    with Repo.memory() as repo:
        made = repo.append("user", "first").addresses[0]
        repo.append("user", "second")
        start = repo.resolve("HEAD")
        draft = Draft(Writer(repo.store, author="ada"))
        draft.edit(made, [Text("another wording")])
        draft.annotate([made], priority="pinned", labels=["plan"])
        oid = commit.write(draft).oid
        (change,) = diff(repo.contexts, start, "HEAD").changes
        assert change.kinds == ("edited", "priority", "labels")
        assert change.before_by is None
        assert change.after_by is not None
        assert change.after_by.commit == oid
        assert (change.labels_before, change.labels_after) == (frozenset(), frozenset({"plan"}))


def test_other_tools_part_contexts_before_their_first_message() -> None:
    with Repo.memory() as repo:
        repo.append("user", "first")
        start = repo.resolve("HEAD")
        repo.set_tools([{"name": "look"}])
        found = diff(repo.contexts, start, "HEAD")
        assert not found.is_empty
        assert (found.changes, found.common_count) == ((), 1)
        assert (found.tools_before, found.tools_after) == ((), ("look",))
        assert found.tokens_lost == found.tokens_before


@pytest.mark.parametrize("turned", [False, True])
def test_contexts_whose_answers_name_different_models_are_counted_alike(turned: bool) -> None:
    with Repo.memory() as repo:
        repo.append("user", "What is in the file?")
        repo.append("assistant", "It holds a list of words.", model="claude-opus-4-6")
        names = ("HEAD", "HEAD~1") if turned else ("HEAD~1", "HEAD")
        found = diff(repo.contexts, *names)
        (change,) = found.changes
        bare = found.tokens_after - found.tokens_before
        assert abs(bare - (change.tokens_after - change.tokens_before)) <= 1
