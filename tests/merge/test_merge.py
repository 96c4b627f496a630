"""Merging branches: effects on refs and contexts, and stopped merges."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, apart, branch, commit_of, files, on, pending, said
from tests.store.support.histories import move
from tests.support.valid_requests import assert_valid_requests
from trace_store import (
    FixedClock,
    Message,
    Repo,
    Text,
    ToolCall,
    ToolResult,
    history,
)
from trace_store.errors import (
    DetachedHeadError,
    FormatError,
    InvalidInputError,
    RefChangedError,
    RevisionNotFoundError,
    StateError,
)
from trace_store.merge import in_progress
from trace_store.merge.conflicts import Conflict, Resolution
from trace_store.merge.merge import continue_merge, merge
from trace_store.merge.resolve import abort, open_conflicts, resolve
from trace_store.merge.result import Merge, MergeOptions
from trace_store.writer import Writer


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, environment=ADA, clock=FixedClock(), durability="fast")


def brought(repo: Repo, revision: str = "side", **options: Any) -> Merge:
    return merge(repo.writer, revision, MergeOptions(**options))


def test_a_branch_that_is_behind_goes_forward(repo: Repo) -> None:
    repo.append("user", "a")
    apart(repo, lambda: None, lambda: repo.append("user", "b"))
    before = repo.resolve("main")
    found = brought(repo)
    assert (found.outcome, found.before, found.after) == (
        "fast-forward",
        before,
        repo.resolve("side"),
    )
    assert repo.resolve("main") == repo.resolve("side")
    assert repo.store.refs.reflog("refs/heads/main")[0].message == "merge side: fast-forward"
    assert brought(repo).outcome == "up-to-date"


def test_no_ff_makes_a_commit_that_changes_nothing_more(repo: Repo) -> None:
    repo.append("user", "a")
    apart(repo, lambda: None, lambda: repo.append("user", "b"))
    found = brought(repo, fast_forward="never")
    assert found.outcome == "merged"
    assert len(commit_of(repo, found.after).parents) == 2
    assert said(repo) == ["a", "b"]


def test_ff_only_refuses_and_writes_nothing(repo: Repo) -> None:
    repo.append("user", "a")
    apart(repo, lambda: repo.append("user", "b"), lambda: repo.append("user", "c"))
    before = files(repo)
    with pytest.raises(StateError, match="has commits that side does not have"):
        brought(repo, fast_forward="only")
    assert files(repo) == before


def test_c3_a_clean_merge_adds_no_message(repo: Repo) -> None:
    repo.append("assistant", "a")
    apart(repo, lambda: repo.append("user", "b"), lambda: repo.append("user", "c"))
    found = brought(repo)
    assert said(repo) == ["a", "b", "c"]
    assert commit_of(repo, found.after).operations[0].name == "add"
    assert [m.role for m in repo.compile()] == ["assistant", "user", "user"]


def test_c4_the_side_that_was_chosen_is_what_is_compiled(repo: Repo) -> None:
    target = (repo.append("user", "Which one?").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    found = brought(repo)
    assert (found.outcome, [each.kind for each in found.conflicts]) == ("stopped", ["both-edited"])
    assert said(repo) == ["mine"]
    assert resolve(Writer(repo.store), "", Resolution("theirs")) == ()
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "merged"
    assert said(repo) == ["yours"]
    assert [m.text for m in repo.contexts.compile("HEAD", cold=True).messages] == ["yours"]


def test_c9_priorities_belong_to_a_branch_and_merge_like_the_rest(repo: Repo) -> None:
    target = repo.append("user", "a").addresses[0]
    apart(
        repo,
        lambda: repo.append("user", "b"),
        lambda: repo.annotate(target, priority="pinned", labels=["x"]),
    )
    assert repo.contexts.fold(repo.resolve("main")).entry(target).priority == "normal"
    assert repo.contexts.fold(repo.resolve("side")).entry(target).priority == "pinned"
    brought(repo)
    entry = repo.contexts.fold(repo.resolve("main")).entry(target)
    assert entry.priority == "pinned"
    assert entry.labels == {"x"}


def test_c17_calls_and_results_of_both_sides_stay_together(repo: Repo) -> None:
    repo.append("user", "Look.")

    def look(name: str) -> Callable[[], None]:
        def go() -> None:
            repo.append("user", name)
            repo.append("assistant", [ToolCall(name, "look", "{}")])
            repo.append("tool", [ToolResult(name, "seen")])

        return go

    for strategy in ("append", "interleave", "theirs", "ours", "decisions"):
        on(repo, "main")
        branch(repo, "start")
        apart(repo, look(f"m-{strategy}"), look(f"s-{strategy}"))
        assert brought(repo, strategy=strategy).outcome == "merged"
        assert_valid_requests(repo.compile().messages)
        names = [p.id for m in repo.compile() for p in m.parts if isinstance(p, ToolCall)]
        answered = [p.call_id for m in repo.compile() for p in m.parts if isinstance(p, ToolResult)]
        assert names == answered


def test_what_stops_can_be_given_up_and_nothing_has_changed(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    before = files(repo)
    assert brought(repo).outcome == "stopped"
    with pytest.raises(StateError, match="in progress"):
        brought(repo)
    resolve(Writer(repo.store), "1", Resolution("text", "A text that is nowhere yet"))
    with pytest.raises(StateError, match="no rebase is in progress, but a merge is"):
        abort(repo.store, "rebase")
    assert files(repo) == before
    abort(repo.store, "merge")
    assert files(repo) == before
    assert not os.path.exists(repo.store.layout.stopped_file("refs/heads/main"))
    with pytest.raises(StateError, match="no merge is in progress"):
        continue_merge(Writer(repo.store, author="ada"))


def test_going_on_with_open_conflicts_stops_again(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    brought(repo)
    before = files(repo)
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "stopped"
    assert files(repo) == before
    for which, resolution, problem in (
        ("2", Resolution("ours"), "no conflict 2"),
        ("abcdef.0", Resolution("ours"), "no conflict is about"),
        ("1", Resolution("neither"), "both-edited is resolved by ours, theirs, both, text"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            resolve(Writer(repo.store), which, resolution)
    skipped = continue_merge(Writer(repo.store, author="ada"), skip=True)
    assert skipped.outcome == "up-to-date"
    assert files(repo) == before


def test_the_branch_may_go_on_while_a_merge_waits(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    brought(repo)
    repo.append("user", "meanwhile")
    resolve(Writer(repo.store), str(target[0])[:12] + ".0", Resolution("both"))
    continue_merge(Writer(repo.store, author="ada"))
    assert said(repo) == ["mine\nyours", "meanwhile"]


def test_a_resolution_holds_for_what_it_was_given_about(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    brought(repo)
    assert resolve(Writer(repo.store), "1", Resolution("theirs")) == ()
    repo.append("user", "meanwhile")  # an unrelated change keeps the resolution
    assert open_conflicts(Writer(repo.store)) == ()
    repo.edit(target, "mine, corrected meanwhile")
    (conflict,) = open_conflicts(Writer(repo.store))
    assert (conflict.kind, conflict.number) == ("both-edited", 1)
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "stopped"
    assert said(repo) == ["mine, corrected meanwhile", "meanwhile"]
    resolve(Writer(repo.store), "1", Resolution("both"))
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "merged"
    assert said(repo)[0] == "mine, corrected meanwhile\nyours"


def test_what_was_answered_since_is_not_hidden_by_an_older_resolution(repo: Repo) -> None:
    repo.append("user", "q")
    apart(repo, lambda: repo.append("assistant", "A1"), lambda: repo.append("assistant", "A2"))
    brought(repo)
    resolve(Writer(repo.store), "1", Resolution("theirs"))
    repo.append("assistant", "the work of an hour")
    assert [each.kind for each in open_conflicts(Writer(repo.store))] == ["two-answers"]


@pytest.mark.parametrize("strategy", ["append", "interleave"])
def test_a_call_that_a_text_stands_for_waits_for_nothing(repo: Repo, strategy: str) -> None:
    """The text replaces an answer that ends in a call, which then needs no result."""
    repo.append("user", "q")
    call = [ToolCall("c1", "look", "{}")]
    apart(
        repo,
        lambda: (repo.append("assistant", "I look."), repo.append("assistant", call)),
        lambda: (repo.append("assistant", "Yes."), repo.append("user", "Go on.")),
    )
    brought(repo, strategy=strategy)
    assert [
        each.kind for each in resolve(Writer(repo.store), "1", Resolution("text", "Yes, seen."))
    ] == []
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "merged"
    assert said(repo) == ["q", "Yes, seen.", "Go on."]
    assert_valid_requests(repo.compile().messages)


@pytest.mark.parametrize("resolution", [Resolution("theirs"), Resolution("text", "yours")])
def test_what_is_to_be_shown_does_not_stay_skipped(repo: Repo, resolution: Resolution) -> None:
    target = (repo.append("user", "a").oid, 0)

    def ours() -> None:
        repo.annotate(target, priority="skip")
        repo.remove(target, ghost=True)

    apart(repo, ours, lambda: repo.edit(target, "yours"))
    brought(repo)
    resolve(Writer(repo.store), "1", resolution)
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "merged"
    assert said(repo) == ["yours"]


@pytest.mark.parametrize("strategy", ["append", "interleave"])
def test_calls_that_wait_at_once_keep_their_results(repo: Repo, strategy: str) -> None:
    """The result of a shared call comes in behind it; so does that of a call that was made between the two."""
    repo.append("user", "q")
    repo.append("assistant", [ToolCall("c1", "look", "{}")])

    def theirs() -> None:
        repo.append("assistant", [ToolCall("c2", "look", "{}")])
        for name in ("c1", "c2"):
            repo.append("tool", [ToolResult(name, "seen")])

    apart(repo, lambda: repo.append("user", "mine"), theirs)
    assert brought(repo, strategy=strategy).outcome == "merged"
    assert "mine" in said(repo)
    assert_valid_requests(repo.compile().messages)


def test_two_settle_at_once_and_one_goes_on_meanwhile(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = [(repo.append("user", text).oid, 0) for text in "ab"]
    apart(
        repo,
        lambda: [repo.edit(each, "mine") for each in targets],
        lambda: [repo.edit(each, "yours") for each in targets],
    )
    brought(repo)
    write, between = (
        in_progress.write_stop,
        [lambda: resolve(Writer(repo.store), "2", Resolution("theirs"))],
    )

    def late(*given: Any) -> None:
        if between:
            between.pop()()
        write(*given)

    monkeypatch.setattr(in_progress, "write_stop", late)
    assert resolve(Writer(repo.store), "1", Resolution("ours")) == ()
    between.append(lambda: continue_merge(Writer(repo.store, author="eve")))  # type: ignore[arg-type, return-value]
    with pytest.raises(StateError, match="in progress"):
        resolve(Writer(repo.store), "1", Resolution("theirs"))
    assert not os.path.exists(repo.store.layout.stopped_file("refs/heads/main"))
    assert said(repo) == ["mine", "yours"]


def test_all_settles_what_is_open(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    brought(repo)
    for _ in range(2):
        assert resolve(Writer(repo.store), "all", Resolution("theirs")) == ()
    with pytest.raises(InvalidInputError, match="by the conflict's number"):
        resolve(Writer(repo.store), "all", Resolution("ours"))
    resolve(Writer(repo.store), "1", Resolution("ours"))
    continue_merge(Writer(repo.store, author="ada"))
    assert said(repo) == ["mine"]


def test_a_merge_does_not_go_on_without_its_branch(repo: Repo) -> None:
    """It would recreate the branch with only their messages."""
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    brought(repo)
    with pytest.raises(StateError, match="in progress"):
        repo.branches.rename("main", "trunk")
    eve = history.branches.Branches(Writer(repo.store, author="eve"))
    eve.rename("main", "trunk")  # as another program may
    with pytest.raises(RefChangedError, match="refs/heads/main no longer exists"):
        continue_merge(Writer(repo.store, author="ada").on("refs/heads/main"))
    eve.rename("trunk", "main")
    resolve(Writer(repo.store), "all", Resolution("ours"))
    assert continue_merge(Writer(repo.store, author="ada")).outcome == "merged"


def test_a_damaged_note_of_what_waits_is_named_and_can_be_given_up(repo: Repo) -> None:
    repo.append("user", "a")
    path = repo.store.layout.stopped_file("refs/heads/main")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text("{", encoding="utf-8")
    for use in (lambda: brought(repo), lambda: open_conflicts(Writer(repo.store))):
        with pytest.raises(FormatError, match="not readable"):
            use()
    abort(repo.store)
    assert brought(repo, "main").outcome == "up-to-date"


@pytest.mark.parametrize(
    "change", [{"inputs": {}}, {"kind": "rebase"}, {"kind": "nonsense"}, {"before": 3}]
)
def test_a_note_that_another_version_wrote_is_named(repo: Repo, change: dict[str, Any]) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    brought(repo)
    path = Path(repo.store.layout.stopped_file("refs/heads/main"))
    fields = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**fields, **change}), encoding="utf-8")
    for use in (
        lambda: brought(repo),
        lambda: open_conflicts(Writer(repo.store)),
        pending(repo).continue_,
    ):
        with pytest.raises(FormatError, match="not readable"):
            use()
    abort(repo.store)
    assert brought(repo, "main").outcome == "up-to-date"


def test_a_resolver_settles_what_it_can(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    apart(repo, lambda: repo.edit(target, "mine"), lambda: repo.edit(target, "yours"))
    asked: list[Conflict] = []

    def resolver(conflict: Conflict) -> Resolution:
        asked.append(conflict)
        return Resolution("text", "ours and theirs")

    found = merge(Writer(repo.store, author="ada"), "side", resolver=resolver)
    assert found.outcome == "merged"
    assert len(asked) == 1
    assert said(repo) == ["ours and theirs"]


@pytest.mark.parametrize("verb", ["merge", "rebase", "cherry_pick"])
def test_a_resolver_is_asked_about_what_its_answers_open(repo: Repo, verb: str) -> None:
    """A call and its result are one question."""
    repo.append("user", "q")
    call = repo.commit([Message("assistant", [ToolCall("c", "look", "{}")])])
    result = repo.commit([Message("tool", [ToolResult("c", "seen")])])
    repo.append("assistant", "t")
    both = [(call.oid, 0), (result.oid, 0)]
    apart(repo, lambda: repo.remove(both), lambda: repo.edit(both[1], "seen again"))
    asked: list[str] = []

    def resolver(conflict: Conflict) -> Resolution:
        asked.append(conflict.kind)
        return Resolution("theirs")

    if verb == "rebase":
        on(repo, "side")
    found = getattr(repo, verb)("main" if verb == "rebase" else "side", resolver=resolver)
    assert (found.outcome, asked) == (
        "merged" if verb == "merge" else "done",
        ["edited-and-removed"],
    )
    assert_valid_requests(repo.compile().messages)
    assert len(repo.compile().messages) == 4


def test_a_resolver_is_asked_once_about_what_it_leaves_open(repo: Repo) -> None:
    first, second = (repo.append("user", text).addresses[0] for text in "ab")

    def edit(text: str) -> None:
        repo.edit(first, text)
        repo.edit(second, text)

    apart(repo, lambda: edit("ours"), lambda: edit("theirs"))
    asked: list[Any] = []

    def resolver(conflict: Conflict) -> Resolution | None:
        asked.append(conflict.addresses)
        return Resolution("ours") if conflict.addresses[0] == first else None

    found = merge(Writer(repo.store, author="ada"), "side", resolver=resolver)
    assert (found.outcome, len(found.conflicts), len(asked)) == ("stopped", 1, 2)


def test_a_squash_puts_a_call_where_theirs_has_it(repo: Repo) -> None:
    """There it follows a message that theirs removed, which is not copied."""
    call = repo.append("assistant", [ToolCall("c", "look", "{}")]).addresses[0]
    branch(repo, "side")
    on(repo, "side")
    repo.append("user", "first")
    gone = repo.append("user", "second").addresses[0]
    repo.move(call, after=gone)
    repo.remove(gone)
    repo.append("tool", [ToolResult("c", "seen")])
    on(repo, "main")
    repo.merge("side", strategy="theirs", squash=True)
    roles = [message.role for message in repo.compile().messages]
    assert roles == ["user", "assistant", "tool"]


def test_squash_copies_and_leaves_the_other_line_out_of_the_history(repo: Repo) -> None:
    target = (repo.append("assistant", "a").oid, 0)

    def theirs() -> None:
        made = repo.append("user", "first wording")
        repo.edit((made.oid, 0), "second wording")
        repo.annotate((made.oid, 0), priority="pinned", labels=["decision"])
        repo.remove((repo.append("user", "hidden").oid, 0))
        repo.edit(target, "edited by theirs")

    apart(repo, lambda: repo.append("user", "b"), theirs)
    found = brought(repo, squash=True)
    assert found.outcome == "squashed"
    commit = commit_of(repo, found.after)
    assert commit.parents == (found.before,)
    assert commit.links == (("squashes", str(repo.resolve("side"))),)
    assert said(repo) == ["edited by theirs", "b", "second wording"]
    entry = repo.contexts.fold(repo.resolve("main")).entries[-2]
    assert entry.priority == "pinned"
    assert entry.labels == {"decision"}


def test_unrelated_histories_only_when_told(repo: Repo) -> None:
    repo.append("user", "a")
    on(repo, "other")
    repo.append("user", "z")
    on(repo, "main")
    with pytest.raises(InvalidInputError, match="have no common commit"):
        brought(repo, "other")
    brought(repo, "other", unrelated=True)
    assert said(repo) == ["a", "z"]


def test_nothing_to_merge_is_no_error(repo: Repo) -> None:
    repo.append("user", "a")
    assert brought(repo, "").outcome == "up-to-date"
    assert brought(repo, "HEAD").outcome == "up-to-date"
    with pytest.raises(RevisionNotFoundError):
        brought(repo, "nowhere")


def test_an_unborn_branch_begins_with_what_is_merged(repo: Repo) -> None:
    repo.append("user", "a")
    on(repo, "new")
    assert brought(repo, "main").outcome == "fast-forward"
    assert said(repo) == ["a"]


def test_a_detached_head_is_no_branch(repo: Repo) -> None:
    repo.append("user", "a")
    branch(repo, "side")
    repo.store.refs.set_head(repo.resolve("main"))
    with pytest.raises(DetachedHeadError):
        brought(repo)


def test_interleave_goes_by_time(tmp_path: Path) -> None:
    clock = FixedClock()
    repo = Repo.init(tmp_path, environment=ADA, clock=clock, durability="fast")
    repo.append("assistant", "start")
    branch(repo, "side")
    for at, name in enumerate(["main", "side", "main", "side"]):
        on(repo, name)
        repo.commit([Message("user", f"{at}")])
    on(repo, "main")
    brought(repo, strategy="interleave")
    assert said(repo) == ["start", "0", "1", "2", "3"]


@pytest.mark.parametrize("back", ["main", "side"])
def test_interleave_keeps_each_side_in_order_when_a_clock_went_back(
    tmp_path: Path, back: str
) -> None:
    repo = Repo.init(tmp_path, environment=ADA, durability="fast")
    repo.append("assistant", "start")
    branch(repo, "side")
    other = "side" if back == "main" else "main"
    for name, time, text in (
        (back, 5_000, "a"),
        (back, 3_000, "b"),
        (back, 7_000, "c"),
        (other, 4_000, "x"),
        (other, 6_000, "y"),
    ):
        with Repo.open(tmp_path, environment=ADA, clock=FixedClock(time)) as one:
            on(one, name)
            one.append("user", text)
    on(repo, "main")
    brought(repo, strategy="interleave")
    assert said(repo) == ["start", "x", "a", "b", "y", "c"]


@pytest.mark.parametrize("choice", ["ours", "theirs", "both", "text"])
@pytest.mark.parametrize("calls", [False, True])
def test_what_each_side_chose_otherwise_is_asked_again(
    repo: Repo, choice: str, calls: bool
) -> None:
    """Two people join the same two answers, and each keeps his own: neither of them goes without a word."""
    repo.append("user", "Which database?")
    if calls:
        repo.append("assistant", [ToolCall("a", "look", "{}")])

    def answer(text: str) -> Callable[[], Any]:
        role, said = ("tool", [ToolResult("a", text)]) if calls else ("assistant", text)
        return lambda: repo.append(role, said)

    apart(repo, answer("SQLite"), answer("Postgres"))
    mine, yours = repo.resolve("main"), repo.resolve("side")
    brought(repo, str(yours), favour="ours")
    on(repo, "side")
    brought(repo, str(mine), favour="ours")
    on(repo, "main")
    assert [each.kind for each in brought(repo).conflicts] == ["two-answers"]
    pending(repo).resolve("1", choice, "MariaDB" if choice == "text" else "")
    assert pending(repo).continue_().outcome == "merged"
    shown = [json.dumps(each) for each in repo.compile().to_openai()["messages"][1 + calls :]]
    wanted = {"ours": ["SQLite"], "theirs": ["Postgres"], "text": ["MariaDB"]}
    for name in wanted.get(choice, ["SQLite", "Postgres"]):
        assert any(name in each for each in shown)
    assert len(shown) == (2 if choice == "both" and not calls else 1)
    assert_valid_requests(repo.compile().messages)


def test_what_each_side_chose_keeps_what_was_said_of_it(repo: Repo) -> None:
    repo.append("user", "q")
    apart(repo, lambda: repo.append("assistant", "A"), lambda: repo.append("assistant", "B"))
    mine, yours = repo.resolve("main"), repo.resolve("side")
    brought(repo, str(yours), favour="ours")
    on(repo, "side")
    brought(repo, str(mine), favour="ours")
    on(repo, "main")
    address = (mine, 0)
    repo.edit(address, "A, better")
    repo.annotate([address], labels=["decision"], priority="pinned")
    brought(repo, favour="theirs")
    assert said(repo) == ["q", "B"]
    repo.restore([address])
    shown = {m.text: m for m in repo.compile().messages}["A, better"]
    assert (shown.priority, set(shown.labels)) == ("pinned", {"decision"})


@pytest.mark.parametrize("what", ["hidden", "pinned", "reworded", "labelled"])
def test_who_takes_his_own_change_back_contradicts_nobody(repo: Repo, what: str) -> None:
    """Both sides merged the same two lines; the author of a change on one reverts it."""
    repo.append("user", "q")
    address = repo.append("user", "noise").addresses[0]
    there: dict[str, Callable[[], Any]] = {
        "hidden": lambda: repo.remove(address),
        "pinned": lambda: repo.annotate([address], priority="pinned"),
        "reworded": lambda: repo.edit(address, "noisy"),
        "labelled": lambda: repo.annotate([address], labels=["todo"]),
    }
    back: dict[str, Callable[[], Any]] = {
        "hidden": lambda: repo.restore([address]),
        "pinned": lambda: repo.annotate([address], priority="normal"),
        "reworded": lambda: repo.edit(address, "noise"),
        "labelled": lambda: repo.annotate([address], unlabels=["todo"]),
    }
    apart(repo, there[what], lambda: repo.append("assistant", "answer"))
    mine, yours = repo.resolve("main"), repo.resolve("side")
    on(repo, "side")
    brought(repo, str(mine))
    on(repo, "main")
    brought(repo, str(yours))
    back[what]()
    on(repo, "side")
    assert brought(repo, "main").outcome == "merged"
    shown = repo.compile().messages
    assert [m.text for m in shown] == ["q", "noise", "answer"]
    assert (shown[1].priority, set(shown[1].labels)) == ("normal", set())


def looked(repo: Repo) -> tuple[Any, Any]:
    """Say something and call a tool in one message, have its result, and return both addresses."""
    call = repo.append("assistant", [Text("I look"), ToolCall("a", "look", "{}")]).addresses[0]
    return call, repo.append("tool", [ToolResult("a", "seen")]).addresses[0]


def test_a_text_that_stands_for_a_call_takes_its_result_along(repo: Repo) -> None:
    """Also after other messages; and the text is the assistant's, not the tool's."""
    repo.append("user", "q")

    def ours() -> None:
        repo.append("assistant", [ToolCall("a", "look", "{}")])
        repo.append("user", "meanwhile")
        repo.append("tool", [ToolResult("a", "seen")])

    apart(repo, ours, lambda: repo.append("assistant", "theirs"))
    assert [each.kind for each in brought(repo).conflicts] == ["two-answers"]
    pending(repo).resolve("1", "text", "Both.")
    assert pending(repo).continue_().outcome == "merged"
    assert said(repo) == ["q", "Both.", "meanwhile"]


def test_the_text_is_said_by_who_answered_and_not_by_his_tool(repo: Repo) -> None:
    repo.append("user", "q")
    apart(repo, lambda: looked(repo), lambda: repo.append("assistant", "theirs"))
    brought(repo)
    pending(repo).resolve("1", "text", "Both.")
    assert pending(repo).continue_().outcome == "merged"
    assert [(m.role, m.text) for m in repo.compile().messages] == [
        ("user", "q"),
        ("assistant", "Both."),
    ]


def test_a_ghost_of_a_call_waits_for_nothing(repo: Repo) -> None:
    repo.append("user", "q")

    def ours() -> None:
        call = repo.append("assistant", [ToolCall("a", "look", "{}")]).addresses[0]
        repo.remove(call, ghost=True)

    apart(repo, ours, lambda: repo.append("user", "theirs"))
    assert brought(repo).outcome == "merged"
    assert_valid_requests(repo.compile().messages)


def test_merging_twice_and_back_again(repo: Repo) -> None:
    repo.append("assistant", "a")
    apart(repo, lambda: repo.append("user", "b"), lambda: repo.append("user", "c"))
    brought(repo)
    on(repo, "side")
    assert brought(repo, "main").outcome == "fast-forward"
    repo.append("user", "d")
    on(repo, "main")
    repo.append("user", "e")
    brought(repo)
    assert said(repo) == ["a", "b", "c", "e", "d"]
    assert repo.contexts.verify("HEAD").matches


@pytest.mark.parametrize("texts", ["bc", "bcd", "bcde"])
def test_tips_that_git_left_are_joined_by_the_same_commit_for_everybody(
    tmp_path: Path, texts: str
) -> None:
    made = set()
    for mine in texts:
        folder = tmp_path / mine
        folder.mkdir()
        repo = Repo.init(folder, environment=ADA, clock=FixedClock(), durability="fast")
        root = repo.append("assistant", "a").oid
        tips = {}
        for text in texts:
            repo.reset(str(root), hard=True)
            tips[text] = repo.append("user", text).oid
        repo.reset(str(tips[mine]), hard=True)
        repo.seal()
        for text in set(texts) - {mine}:
            repo.store.refs.files.add("refs/heads/main", tips[text])
        assert len(repo.store.refs.tips("refs/heads/main")) == len(texts)
        found = merge(Writer(repo.store, author=f"Ada on {mine}"))
        assert found.outcome == "merged"
        assert (found.included, found.changed) == (len(texts) - 1, 0), "whichever tip comes first"
        assert repo.store.refs.tips("refs/heads/main") == (found.after,)
        assert sorted(said(repo)) == ["a", *texts]
        made.add(found.after)
    assert len(made) == 1


def diverged(folder: Path) -> tuple[Repo, tuple[bytes, int]]:
    """Return a repository whose branch git left with two tips that reword a message; the other one is the older."""
    repo = Repo.init(folder, environment=ADA, clock=FixedClock(), durability="fast")
    root = repo.append("user", "which day?")
    theirs = repo.edit((root.oid, 0), "which month?").oid
    move(repo.store, "refs/heads/main", root.oid)
    repo.edit((root.oid, 0), "which week?")
    repo.seal()
    repo.store.refs.files.add("refs/heads/main", theirs)
    return repo, (root.oid, 0)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"favour": "ours"}, "which week?"),
        ({"favour": "theirs"}, "which month?"),
        ({"strategy": "ours"}, "which week?"),
        ({"strategy": "theirs"}, "which month?"),
    ],
)
def test_ours_is_what_head_is_on_also_where_tips_are_joined(
    tmp_path: Path, options: dict[str, str], shown: str
) -> None:
    repo, _ = diverged(tmp_path)
    mine, _ = repo.store.refs.tips("refs/heads/main")
    found = repo.merge(**options)  # type: ignore[arg-type]
    assert said(repo) == [shown]
    assert commit_of(repo, found.after).parents[0] == mine
    assert commit_of(repo, found.after).author == "ada"


def three_tips(folder: Path) -> Repo:
    """Return a repository whose branch git left with three tips that reword a message."""
    repo = Repo.init(folder, environment=ADA, clock=FixedClock(), durability="fast")
    root = repo.append("user", "which day?")
    tips = []
    for text in ("which month?", "which year?", "which week?"):
        repo.reset(str(root.oid), hard=True)
        tips.append(repo.edit((root.oid, 0), text).oid)
    repo.seal()
    for tip in tips[:-1]:
        repo.store.refs.files.add("refs/heads/main", tip)
    assert len(repo.store.refs.tips("refs/heads/main")) == 3
    return repo


def test_each_of_several_tips_has_conflicts_of_its_own(tmp_path: Path) -> None:
    """They are about the same message, and each is settled for itself."""
    repo = three_tips(tmp_path)
    tips = repo.store.refs.tips("refs/heads/main")
    texts = [said(repo, str(tip)) for tip in tips]
    found: object = repo.merge()
    for choice in ("theirs", "ours"):
        assert [each.kind for each in open_conflicts(Writer(repo.store))] == ["both-edited"]
        pending(repo).resolve("", choice)
        found = pending(repo).continue_()
    assert isinstance(found, Merge)
    assert found.outcome == "merged"
    assert said(repo) == texts[1]


def test_a_resolver_answers_for_each_of_several_tips(tmp_path: Path) -> None:
    repo = three_tips(tmp_path)
    asked: list[Conflict] = []

    def resolver(conflict: Conflict) -> Resolution:
        asked.append(conflict)
        return Resolution("text", f"answer {len(asked)}")

    assert repo.merge(resolver=resolver).outcome == "merged"
    assert said(repo) == ["answer 2"]
    assert len({each.key for each in asked}) == 2


@pytest.mark.parametrize("sealed", [False, True])
def test_undoing_a_join_brings_the_tips_back(tmp_path: Path, sealed: bool) -> None:
    repo, _ = diverged(tmp_path)
    tips = repo.store.refs.tips("refs/heads/main")
    found = repo.merge(favour="theirs")
    if sealed:
        repo.seal()
    repo.undo()
    assert repo.store.refs.tips("refs/heads/main") == tips
    assert not sealed or repo.store.refs.moved_by_git() == []
    repo.redo()
    assert repo.store.refs.tips("refs/heads/main") == (found.after,)


def test_taking_up_again_parts_the_tips_that_taking_back_had_joined(tmp_path: Path) -> None:
    """Before a join the tip is there again that parted earlier; on the join it is not; and so on."""
    repo = Repo.init(tmp_path, environment=ADA, clock=FixedClock(), durability="fast")
    root, parting = (repo.append("system", text).oid for text in "ab")
    tips = []
    for start, text in ((root, "c"), (parting, "d"), (parting, "e")):
        repo.reset(str(start), hard=True)
        tips.append(repo.append("system", text).oid)
    repo.seal()
    for tip in tips[:-1]:
        repo.store.refs.files.add("refs/heads/main", tip)
    merge(Writer(repo.store, author="ada"))
    joined = repo.store.refs.tips("refs/heads/main")
    history.reset.reset_hard(Writer(repo.store, author="ada"), str(parting))
    parted = repo.store.refs.tips("refs/heads/main")
    assert parted == (parting, tips[0])
    history.undo.undo(Writer(repo.store, author="ada"))
    assert repo.store.refs.tips("refs/heads/main") == joined
    history.undo.redo(Writer(repo.store, author="ada"))
    assert repo.store.refs.tips("refs/heads/main") == parted


def test_what_is_said_of_a_commit_is_no_join(repo: Repo) -> None:
    first = repo.append("user", "a").oid
    repo.commit([Message("user", "b")], message="diverged tips of the branch")
    repo.undo()
    assert repo.resolve("HEAD") == first


def test_options_that_mean_nothing_are_refused(repo: Repo) -> None:
    repo.append("user", "a")
    branch(repo, "side")
    with pytest.raises(InvalidInputError, match="not 'both'"):
        repo.merge("side", favour="both")
    with pytest.raises(InvalidInputError, match="'maybe' is not one of allowed"):
        repo.merge("side", fast_forward="maybe")
    with pytest.raises(InvalidInputError, match="'best' is not one of append"):
        repo.merge("side", strategy="best")
    with pytest.raises(InvalidInputError, match="mine"):
        repo.cherry_pick("side", favour="mine")
    with pytest.raises(InvalidInputError, match="mine"):
        repo.rebase("side", favour="mine")


def test_a_resolver_that_answers_nonsense_is_told(repo: Repo) -> None:
    target = (repo.append("user", "a").oid, 0)
    branch(repo, "side")
    on(repo, "side")
    repo.edit(target, "b")
    on(repo, "main")
    repo.edit(target, "c")
    with pytest.raises(
        InvalidInputError, match="both-edited is resolved by ours, theirs, both, text"
    ):
        repo.merge("side", resolver=lambda _: "mine")
    assert repo.in_progress is None


def test_who_settles_a_conflict_reads_what_both_sides_say(repo: Repo) -> None:
    """A resolver gets immutable data, and cannot change the merge through it."""
    first = repo.append("user", "a").oid
    apart(
        repo,
        lambda: repo.edit((first, 0), "mine"),
        lambda: (repo.edit((first, 0), "yours"), repo.annotate((first, 0), priority="important")),
    )

    def resolver(conflict: Conflict) -> str:
        (mine,), (yours,) = conflict.ours, conflict.theirs
        assert conflict.base is not None
        assert [each.text for each in (conflict.base, mine, yours)] == ["a", "mine", "yours"]
        assert mine.content == (Text("mine"),)
        assert (yours.role, yours.priority, yours.hidden) == ("user", "important", "")
        assert repr(yours) == f"ConflictMessage('user', address='{first.short()}.0')"
        assert str(conflict.addresses[0]) == f"{first.short()}.0"
        with pytest.raises(AttributeError, match="read-only"):
            yours.priority = "normal"
        return "theirs"

    assert repo.merge("side", resolver=resolver).outcome == "merged"
    assert said(repo)[0] == "yours"
