"""Reset, revert, staged commits and undo, over all kinds of operations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store import (
    FixedClock,
    Message,
    ObjectId,
    Repo,
    Store,
    context,
    history,
    merge,
)
from trace_store.context.fold import Fold
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.errors import StateError, TraceError
from trace_store.history import commit
from trace_store.history.branches import Branches
from trace_store.history.draft import Draft
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.seal import seal
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.writer import Writer

Change = Callable[[Draft, list[Address]], object]

AUTHOR = "Ada"


def opened() -> Store:
    return Store.memory(clock=FixedClock(step=1000))


def branches(store: Store) -> Branches:
    return Branches(Writer(store, author=AUTHOR))


def told(store: Store, *texts: str) -> list[Address]:
    """Commit messages one by one; return their addresses."""
    return [
        commit.commit(Writer(store, author=AUTHOR), [Message("user", text)]).addresses[0]
        for text in texts
    ]


def born(store: Store, address: Address) -> ObjectId:
    """Return the commit that a message was born in."""
    (oid,) = store.objects.resolve_prefix(address.birth.hex())
    return oid


def change(store: Store, add: Callable[[Draft], object]) -> ObjectId:
    draft = Draft(Writer(store, author=AUTHOR))
    add(draft)
    return commit.write(draft).oid


def fold(store: Store, revision: str = "HEAD") -> Fold:
    oid = store.refs.head().oid if revision == "HEAD" else None
    assert oid is not None
    return context.fold.fold(oid, lambda each: read_commit(each, store.objects.read))


def state(found: Fold) -> list[tuple[object, ...]]:
    """The context and its metadata, without addresses of intermediate commits."""
    return [
        (entry.address, entry.parts, entry.priority, entry.labels, entry.keep, entry.is_ghost)
        for entry in found.visible()
    ] + [found.tools]


OPERATIONS: dict[str, Change] = {
    "append": lambda draft, at: draft.append("user", "new"),
    "edit": lambda draft, at: draft.edit(at[1], "other words"),
    "pin": lambda draft, at: draft.annotate(at[1:3], priority="pinned"),
    "important": lambda draft, at: draft.annotate(at[1:2], priority="important", keep=["m1"]),
    "label": lambda draft, at: draft.annotate(at[1:3], labels=["decision"]),
    "unlabel": lambda draft, at: draft.annotate(at[3:4], unlabels=["kept"]),
    "remove": lambda draft, at: draft.remove(at[1:3]),
    "remove leaving a ghost": lambda draft, at: draft.remove(at[1:3], ghost=True),
    "restore": lambda draft, at: draft.restore(at[4:5]),
    "restore a wording": lambda draft, at: draft.restore(at[3:4], version=0),
    "replace": lambda draft, at: draft.replace(at[1:3], [Message("assistant", "in short")]),
    "move": lambda draft, at: draft.move(at[1:3], after=at[3]),
    "move first": lambda draft, at: draft.move(at[3:4], after=None),
    "tools": lambda draft, at: draft.set_tools([{"name": "other"}]),
}


def prepared(store: Store) -> list[Address]:
    """Messages in each state that an operation may meet."""
    at = told(store, *(f"m{number}" for number in range(6)))
    change(store, lambda draft: draft.edit(at[3], "m3, again"))
    change(store, lambda draft: draft.annotate([at[3]], labels=["kept"], priority="important"))
    change(store, lambda draft: draft.remove([at[4]], ghost=True))
    change(store, lambda draft: draft.set_tools([{"name": "one"}]))
    return at


@pytest.mark.parametrize("kind", OPERATIONS)
def test_each_kind_of_operation_has_an_inverse(kind: str) -> None:
    store = opened()
    at = prepared(store)
    before = state(fold(store))
    done = change(store, lambda draft: OPERATIONS[kind](draft, at))
    changed = state(fold(store))
    assert changed != before
    (later,) = told(store, "later")
    merge.revert.revert(Writer(store, author=AUTHOR), [done.hex()])
    assert [each for each in state(fold(store)) if each[0] != later] == before
    merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD"])
    assert [each for each in state(fold(store)) if each[0] != later] == changed


def test_what_a_merge_brought_is_taken_back() -> None:
    store = opened()
    (_base,) = told(store, "base")
    branches(store).switch("side", create=True)
    told(store, "theirs")
    theirs = store.refs.read("refs/heads/side")
    assert theirs is not None
    branches(store).switch("main")
    told(store, "ours")
    before = state(fold(store))
    joined = merge.merge.merge(Writer(store, author=AUTHOR), "side").after
    assert joined is not None
    assert len(state(fold(store))) == len(before) + 1
    merge.revert.revert(Writer(store, author=AUTHOR), [joined.hex()])
    assert state(fold(store)) == before


def test_a_ghost_that_a_merge_brought_is_taken_back() -> None:
    store = opened()
    told(store, "base")
    branches(store).create("side")
    told(store, "ours")
    branches(store).switch("side")
    (theirs,) = told(store, "theirs")
    change(store, lambda draft: draft.remove([theirs], ghost=True))
    branches(store).switch("main")
    before = state(fold(store))
    merge.merge.merge(Writer(store, author=AUTHOR), "side")
    assert len(state(fold(store))) == len(before) + 1
    merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD"])
    assert state(fold(store)) == before


def test_a_range_is_taken_back_as_a_whole() -> None:
    store = opened()
    at = prepared(store)
    before = state(fold(store))
    change(store, lambda draft: draft.edit(at[1], "once"))
    change(store, lambda draft: draft.edit(at[1], "twice"))
    change(store, lambda draft: draft.remove([at[1]]))
    found = merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD~3..HEAD"])
    assert len(found.made) == 3
    assert state(fold(store)) == before


CONFLICTS: dict[str, tuple[Change, Change]] = {
    "both-edited": (OPERATIONS["edit"], lambda draft, at: draft.edit(at[1], "third words")),
    "edited-and-removed": (
        lambda draft, at: draft.remove(at[1:2], ghost=True),
        lambda draft, at: draft.remove(at[1:2]),
    ),
    "contradicting-priorities": (
        OPERATIONS["pin"],
        lambda draft, at: draft.annotate(at[1:2], priority="skip"),
    ),
    "both-moved": (
        lambda draft, at: draft.move(at[1:2], after=at[3]),
        lambda draft, at: draft.move(at[1:2], after=at[5]),
    ),
    "compressed-and-edited": (
        OPERATIONS["edit"],
        lambda draft, at: draft.replace(at[1:3], [Message("assistant", "in short")]),
    ),
    "both-set-tools": (
        OPERATIONS["tools"],
        lambda draft, at: draft.set_tools([{"name": "third"}]),
    ),
}


@pytest.mark.parametrize("kind", CONFLICTS)
def test_each_conflict_has_a_name(kind: str) -> None:
    store = opened()
    at = prepared(store)
    first, second = CONFLICTS[kind]
    done = change(store, lambda draft: first(draft, at))
    change(store, lambda draft: second(draft, at))
    head, now = store.refs.head(), state(fold(store))
    found = merge.revert.revert(Writer(store, author=AUTHOR), [done.hex()])
    assert (found.outcome, {each.kind for each in found.conflicts}) == ("stopped", {kind})
    assert store.refs.head() == head
    merge.resolve.abort(store)
    merge.revert.revert(Writer(store, author=AUTHOR), [done.hex()], favour="ours")
    kept = [each for each in state(fold(store)) if kind != "contradicting-priorities"]
    assert kind == "contradicting-priorities" or kept == now


def test_theirs_takes_back_all_the_same() -> None:
    store = opened()
    at = prepared(store)
    done = change(store, lambda draft: draft.edit(at[1], "once"))
    change(store, lambda draft: draft.edit(at[1], "twice"))
    merge.revert.revert(Writer(store, author=AUTHOR), [done.hex()], favour="theirs")
    entry = fold(store).entry(at[1])
    assert entry.parts == entry.versions[0].parts


def test_an_edited_answer_is_not_taken_out_unseen() -> None:
    store = opened()
    at = told(store, "question", "answer")
    change(store, lambda draft: draft.edit(at[1], "a better answer"))
    found = merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD~1"])
    assert [each.kind for each in found.conflicts] == ["edited-and-removed"]


def test_c17_a_call_is_not_separated_from_its_result() -> None:
    store = opened()
    told(store, "look")
    calls = [Message("assistant", [ToolCall("call_1", "ls", "{}")])]
    commit.commit(Writer(store, author=AUTHOR), calls)
    commit.commit(Writer(store, author=AUTHOR), [Message("tool", [ToolResult("call_1", "a.txt")])])
    merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD"])
    assert len(list(fold(store).visible())) == 1


def turn(repo: Repo, *, more: bool = False) -> list[str]:
    """Append an exchange and an answer, a commit each, and return the commits; with `more` it is of two calls."""
    calls = [ToolCall("c", "look", "{}"), *([ToolCall("d", "look", "{}")] if more else [])]
    made = [repo.commit([Message("assistant", calls)])]
    made += [repo.commit([Message("tool", [ToolResult(call.id, "seen")])]) for call in calls]
    made.append(repo.append("assistant", "an answer"))
    return [str(each.oid) for each in made]


@pytest.mark.parametrize("more", [False, True])
def test_a_turn_is_taken_back_as_a_whole_without_a_question(more: bool) -> None:
    with Repo.memory() as repo:
        repo.append("user", "q")
        before = [each.address for each in repo.compile()]
        oids = turn(repo, more=more)
        found = repo.revert(f"HEAD~{len(oids)}..HEAD")
        assert (found.outcome, found.conflicts, len(found.made)) == ("done", (), 2)
        assert [each.address for each in repo.compile()] == before


def test_a_wording_that_loses_its_call_parts_nothing() -> None:
    """A message gave up its call and the result went; that was taken back, and is taken up again."""
    with Repo.memory() as repo:
        call, result, _ = turn(repo)
        with repo.batch() as draft:
            draft.edit(f"{call}.0", [Text("I know it.")], force=True)
            draft.remove(f"{result}.0")
        before = [each.text for each in repo.compile()]
        for _ in range(2):
            found = repo.revert("HEAD")
            assert (found.outcome, found.conflicts) == ("done", ())
        assert [each.text for each in repo.compile()] == before


def test_a_recorded_usage_is_a_fact() -> None:
    store = opened()
    told(store, "question")
    counts = {"input_tokens": 1, "output_tokens": 1}
    usage = change(store, lambda draft: draft.record_usage(counts))
    done = merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD"])
    assert (done.outcome, done.made, done.there) == ("up-to-date", (), (usage,))


@pytest.mark.parametrize("first", OPERATIONS)
def test_what_was_staged_is_committed_again_as_one(first: str) -> None:
    store = opened()
    at = prepared(store)
    start = store.refs.head().oid
    assert start is not None
    change(store, lambda draft: OPERATIONS[first](draft, at))
    (own,) = told(store, "own")
    change(store, lambda draft: draft.edit(own, [Text("own, again")]))
    change(store, lambda draft: draft.move([own], after=at[0]))
    shown = [each[1:] for each in state(fold(store)) if isinstance(each[0], tuple)]
    tip = store.refs.head().oid
    history.reset.reset_soft(Writer(store, author=AUTHOR), start.hex())
    done = history.reset.commit_staged(Writer(store, author=AUTHOR))
    assert [each[1:] for each in state(fold(store)) if isinstance(each[0], tuple)] == shown
    assert read_commit(done.oid, store.objects.read).parents == (start,)
    assert store.refs.read(done.staged.ref) is None
    assert tip in dict(store.refs.iterate("refs/trash/")).values()
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.read(done.staged.ref) == tip
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.head().oid == tip


def test_nothing_is_staged_where_the_branch_went_on() -> None:
    store = opened()
    told(store, "a", "b", "c")
    with pytest.raises(StateError, match="nothing is staged"):
        history.reset.commit_staged(Writer(store, author=AUTHOR))
    history.reset.reset_soft(Writer(store, author=AUTHOR), "HEAD~1")
    told(store, "else")
    with pytest.raises(StateError, match="do not continue"):
        history.reset.commit_staged(Writer(store, author=AUTHOR))


def test_what_is_staged_is_kept_when_something_else_is() -> None:
    store = opened()
    told(store, "a", "b", "c")
    first = store.refs.head().oid
    history.reset.reset_soft(Writer(store, author=AUTHOR), "HEAD~1")
    told(store, "else")
    second = store.refs.head().oid
    history.reset.reset_soft(Writer(store, author=AUTHOR), "HEAD~1")
    assert store.refs.read("refs/staged/heads/main") == second
    assert first in dict(store.refs.iterate("refs/trash/")).values()


def _pick(store: Store, number: int) -> str:
    names = [name for name, _ in store.refs.iterate("refs/heads/")]
    return names[number % len(names)].removeprefix("refs/heads/") if names else "main"


def _step(store: Store, kind: str, number: int) -> None:
    """Run a command that a person may type, if it is possible in this state."""
    name, back = f"b{number % 3}", f"HEAD~{number % 3}"
    at = [entry.address for entry in fold(store).entries]
    steps: dict[str, Callable[[], object]] = {
        "commit": lambda: told(store, f"said {number}"),
        "remove": lambda: change(store, lambda d: d.remove([at[number % len(at)]])),
        "create": lambda: branches(store).create(name, back, force=True),
        "begin": lambda: branches(store).switch(name, create=True, start=back, force=True),
        "switch": lambda: branches(store).switch(_pick(store, number)),
        "detach": lambda: branches(store).checkout(back, detach=True),
        "delete": lambda: branches(store).delete(_pick(store, number)),
        "rename": lambda: branches(store).rename(_pick(store, number), name),
        "hard": lambda: history.reset.reset_hard(Writer(store, author=AUTHOR), back),
        "soft": lambda: history.reset.reset_soft(Writer(store, author=AUTHOR), back),
        "staged": lambda: history.reset.commit_staged(Writer(store, author=AUTHOR)),
        "revert": lambda: merge.revert.revert(
            Writer(store, author=AUTHOR), ["HEAD"], favour="theirs"
        ),
        "tag": lambda: history.tags.Tags(Writer(store, author=AUTHOR)).create(
            "v", back, force=True
        ),
    }
    steps[kind]()


KINDS = [
    *("commit", "remove", "create", "begin", "switch", "detach", "delete", "rename"),
    *("hard", "soft", "staged", "revert", "tag"),
]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 5)), max_size=14), st.booleans())
def test_undo_restores_the_identical_context(steps: list[tuple[str, int]], on_disk: bool) -> None:
    """Each step back gives the context, HEAD and all names as they were, whatever was done; each step on as well."""
    if not on_disk:
        check_steps(opened(), steps)
        return
    clock = FixedClock(step=1000)
    with (
        TemporaryDirectory() as folder,
        Store.init(folder, durability="fast", clock=clock) as store,
    ):
        check_steps(store, steps)


def check_steps(store: Store, steps: list[tuple[str, int]]) -> None:
    told(store, "m0", "m1", "m2")

    def seen() -> tuple[object, ...]:
        compiled = context.compiler.ContextCompiler(store).compile("HEAD")
        refs = {n: oid for n, oid in store.refs.iterate() if not n.startswith("refs/trash/")}
        return compiled.prefix_hash, store.refs.head(), refs

    states = [seen()]
    for kind, number in steps:
        try:
            _step(store, kind, number)
            if store.local and number % 2:
                seal(store)
        except TraceError:
            assert seen() == states[-1]
            continue
        if seen() != states[-1]:
            states.append(seen())
    for expected in reversed(states[:-1]):
        history.undo.undo(Writer(store, author=AUTHOR))
        assert seen() == expected
    for expected in states[1:]:
        history.undo.redo(Writer(store, author=AUTHOR))
        assert seen() == expected
    with pytest.raises(StateError):
        history.undo.redo(Writer(store, author=AUTHOR))


def test_undo_refuses_what_something_else_moved_since() -> None:
    store = opened()
    told(store, "a", "b")
    branches(store).create("idea", "HEAD")
    moved = Transaction([], [RefEdit("refs/heads/idea", None, ANY)], "moved by git")
    store.transact(lambda _: moved, author="git")
    with pytest.raises(StateError, match="has moved since"):
        history.undo.undo(Writer(store, author=AUTHOR))


def test_a_copy_of_a_call_with_the_same_id_is_taken_back_alone() -> None:
    store = opened()
    told(store, "before")
    exchange = [
        Message("assistant", [ToolCall("c1", "look", "{}")]),
        Message("tool", [ToolResult("c1", "found")]),
    ]
    commit.commit(Writer(store, author=AUTHOR), exchange)
    expected = state(fold(store))
    commit.commit(Writer(store, author=AUTHOR), exchange)
    merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD"])
    assert state(fold(store)) == expected


def diverged(folder: Path) -> tuple[Store, list[ObjectId]]:
    """Return a store whose HEAD is on a branch with two tips, and its commits: base, own, other."""
    store = Store.init(str(folder), clock=FixedClock(step=1000), durability="fast")
    told(store, "first", "base")
    branches(store).create("side")
    branches(store).create("third")
    (other,) = told(store, "other")
    branches(store).switch("side")
    (own,) = told(store, "own")
    seal(store)
    store.refs.files.add("refs/heads/side", born(store, other))
    base = store.refs.read("refs/heads/third")
    assert base is not None
    return store, [base, born(store, own), born(store, other)]


@pytest.mark.parametrize("joined", [False, True])
def test_a_branch_goes_back_behind_what_is_or_was_diverged(tmp_path: Path, *, joined: bool) -> None:
    store, (base, own, other) = diverged(tmp_path)
    tip = merge.merge.merge(Writer(store, author=AUTHOR)).after if joined else own
    found = history.reset.reset_hard(Writer(store, author=AUTHOR), "third")
    assert store.refs.tips("refs/heads/side") == (found.after,) == (base,)
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.read("refs/heads/side") == tip
    history.undo.redo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (base,)
    seal(store)
    assert store.refs.tips("refs/heads/side") == (base,)
    kept = {oid for _, oid in store.refs.iterate("refs/trash/")}
    assert kept >= ({tip} if joined else {own, other})
    assert fsck(store) == []


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("how", ["merge", "rebase", "reset"])
def test_undo_gives_back_the_tip_that_a_branch_took_up(
    tmp_path: Path, how: str, *, sealed: bool
) -> None:
    store, (_, own, other) = diverged(tmp_path)
    if how == "merge":
        merge.merge.merge(Writer(store, author=AUTHOR))
    elif how == "rebase":
        merge.rebase.rebase(Writer(store, author=AUTHOR), str(other))
    else:
        history.reset.reset_hard(Writer(store, author=AUTHOR), str(other))
    (tip,) = store.refs.tips("refs/heads/side")
    told(store, "more")
    history.undo.undo(Writer(store, author=AUTHOR))
    if sealed:
        seal(store)
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (own, other)
    history.undo.redo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (tip,)
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (own, other)
    assert [each.code for each in fsck(store)] == ["ref-diverged"]


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_undo_takes_back_what_was_done_last_whatever_the_clock_says(
    tmp_path: Path, durability: str
) -> None:
    store = Store.init(str(tmp_path), clock=FixedClock(step=0), durability=durability)
    for number in range(5):
        told(store, f"m{number}")
        history.tags.Tags(Writer(store, author=AUTHOR)).create(f"v{number}")
    store.close()
    # Somebody sets the clock back.
    store = Store.open(str(tmp_path / ".trace"), clock=FixedClock(start=1, step=0))
    told(store, "later")
    branches(store).switch("idea", create=True)
    told(store, "on it")
    said = [history.undo.undo(Writer(store, author=AUTHOR)).message for _ in range(7)]
    assert said == [
        *("commit", "switch: moving from main to idea", "commit"),
        *("tag: v4", "commit", "tag: v3", "commit"),
    ]
    assert [store.refs.read(f"refs/tags/v{n}") is None for n in (2, 3, 4)] == [False, True, True]


WORDS = [
    "moving from sqlite to main",
    "switch: moving from idea to main",
    "branch: renamed refs/heads/main to refs/heads/idea",
    "branch: renamed a",
    "undo: commit: a",
    "joins 1234567: commit",
    "merge diverged tips 1234567",
]


@pytest.mark.parametrize("words", WORDS)
def test_what_somebody_says_of_a_commit_is_not_taken_for_a_command(words: str) -> None:
    store = opened()
    told(store, "first")
    branches(store).create("idea")
    branches(store).switch("idea")
    branches(store).switch("main")
    before = store.refs.head()
    for text in ("second", "third"):
        commit.commit(Writer(store, author=AUTHOR), [Message("user", [Text(text)])], message=words)
    assert history.undo.undo(Writer(store, author=AUTHOR)).message == f"commit: {words}"
    head = store.refs.head()
    assert head.ref == "refs/heads/main"
    assert len(list(fold(store).visible())) == 2
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.head() == before
    history.undo.redo(Writer(store, author=AUTHOR))
    assert store.refs.head() == head
    assert branches(store).switch("-").after.ref == "refs/heads/idea"


@pytest.mark.parametrize("joined", [False, True])
def test_a_branch_that_is_or_was_diverged_goes_as_a_whole(tmp_path: Path, *, joined: bool) -> None:
    store, (_, own, other) = diverged(tmp_path)
    tip = merge.merge.merge(Writer(store, author=AUTHOR)).after if joined else own
    tips = (tip,) if joined else (own, other)
    branches(store).rename("side", "new")
    assert store.refs.tips("refs/heads/side") == ()
    assert store.refs.tips("refs/heads/new") == (tip,)
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == tips
    branches(store).switch("third")
    branches(store).delete("side")
    assert store.refs.tips("refs/heads/side") == ()
    kept = {oid for _, oid in store.refs.iterate("refs/trash/")}
    assert kept >= ({tip} if joined else {own, other})
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == tips


def test_what_a_branch_has_joined_does_not_come_back_when_it_goes_elsewhere(tmp_path: Path) -> None:
    store, _ = diverged(tmp_path)
    branches(store).switch("third")
    (elsewhere,) = told(store, "elsewhere")
    branches(store).switch("side")
    tip = merge.merge.merge(Writer(store, author=AUTHOR)).after
    history.reset.reset_hard(Writer(store, author=AUTHOR), "third")
    assert store.refs.tips("refs/heads/side") == (born(store, elsewhere),)
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (tip,)
    merge.rebase.rebase(Writer(store, author=AUTHOR), "third")
    assert len(store.refs.tips("refs/heads/side")) == 1
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (tip,)


def test_what_is_settled_is_settled_though_nothing_else_can_be_taken_back(tmp_path: Path) -> None:
    store = Store.init(str(tmp_path), clock=FixedClock(step=1000), durability="fast")
    (at,) = told(store, "base")
    change(store, lambda draft: draft.record_usage({"input_tokens": 1}))
    change(store, lambda draft: draft.edit(at, "once"))
    change(store, lambda draft: draft.edit(at, "twice"))
    found = merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD~1", "HEAD~2"])
    assert [each.kind for each in found.conflicts] == ["both-edited"]
    assert merge.resolve.resolve(Writer(store), "1", merge.conflicts.Resolution("ours")) == ()
    done = merge.revert.continue_revert(Writer(store, author=AUTHOR))
    assert (done.outcome, done.made) == ("up-to-date", ())


def test_a_revert_passes_over_what_did_nothing_that_shows() -> None:
    """What a merge brought is taken back with it, and a report of usage changed nothing."""
    store = opened()
    told(store, "base")
    branches(store).create("side")
    branches(store).switch("side")
    told(store, "s")
    branches(store).switch("main")
    told(store, "m")
    merge.merge.merge(Writer(store, author=AUTHOR), "side")
    usage = change(store, lambda draft: draft.record_usage({"input_tokens": 1}))
    made = merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD~3..HEAD"]).made
    assert len(made) == 2
    assert [entry.visible for entry in fold(store).entries] == [True, False, False]
    again = merge.revert.revert(Writer(store, author=AUTHOR), [usage.hex()])
    assert (again.outcome, again.there) == ("up-to-date", (usage,))
    assert (
        merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD..HEAD"]).made == ()
    )  # an empty range


def test_a_revert_skips_what_it_stopped_at_and_not_what_did_nothing(tmp_path: Path) -> None:
    store = Store.init(str(tmp_path), clock=FixedClock(step=1000), durability="fast")
    (at,) = told(store, "base")
    change(store, lambda draft: draft.edit(at, "once"))
    change(store, lambda draft: draft.record_usage({"input_tokens": 1}))
    told(store, "more")
    change(store, lambda draft: draft.edit(at, "twice"))
    found = merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD~2", "HEAD~3", "HEAD~1"])
    assert [each.kind for each in found.conflicts] == ["both-edited"]
    done = merge.revert.continue_revert(Writer(store, author=AUTHOR), skip=True)
    assert len(done.made) == 1
    assert [entry.address for entry in fold(store).visible()] == [at]


def test_a_result_goes_with_a_call_that_is_replaced_again() -> None:
    store = opened()
    told(store, "before")
    call = (
        commit.commit(
            Writer(store, author=AUTHOR), [Message("assistant", [ToolCall("c1", "ls", "{}")])]
        ).oid,
        0,
    )
    change(store, lambda draft: draft.replace([call], []))

    def shown_again(draft: Draft) -> None:
        draft.extend([Message("tool", [ToolResult("c1", "a.txt")])])
        draft.restore([call])

    expected = state(fold(store))
    change(store, shown_again)
    merge.revert.revert(Writer(store, author=AUTHOR), ["HEAD"], favour="ours")
    assert state(fold(store)) == expected


def test_undo_brings_back_the_tips_that_a_command_gave_up(tmp_path: Path) -> None:
    store, (base, own, other) = diverged(tmp_path)
    assert set(store.refs.tips("refs/heads/side")) == {own, other}
    history.reset.reset_hard(Writer(store, author=AUTHOR), str(base))
    assert store.refs.tips("refs/heads/side") == (base,)
    history.undo.undo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (own, other)
    history.undo.redo(Writer(store, author=AUTHOR))
    assert store.refs.tips("refs/heads/side") == (base,)


def test_a_range_is_placed_by_what_was_there_before_it(tmp_path: Path) -> None:
    """A summary that came after a move, and is taken back first, is nothing that the move was made by."""
    repo = Repo.init(tmp_path, clock=FixedClock(), durability="fast")
    one, two, three = (repo.append("user", text).addresses[0] for text in ("a", "b", "c"))
    repo.move([three], after=one)
    repo.replace([three, two], [Message("user", "sum")])
    assert repo.revert("HEAD~2..HEAD").outcome == "done"
    assert [m.text for m in repo.compile().messages] == ["a", "b", "c"]


def test_steps_back_add_up_however_many_there_are(tmp_path: Path) -> None:
    """What was staged before continues the branch, be that far away."""
    repo = Repo.init(tmp_path, clock=FixedClock(), durability="fast")
    for number in range(1120):
        repo.append("user", str(number))
    repo.reset("HEAD~1100")
    repo.reset("HEAD~1")
    assert repo.commit_staged() is not None
    assert len(repo.compile()) == 1120
