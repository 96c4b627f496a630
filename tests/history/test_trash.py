"""The trash: lists, positions after restoring, expiry, gc and prune."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.support.histories import put
from trace_store import errors
from trace_store.base.ident import FixedClock, parse_duration
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit, Transaction
from trace_store.history import retention
from trace_store.history.retention import RetentionRules, read_rules
from trace_store.history.trash import RestoredMessage
from trace_store.history.trash_entries import TrashFilter, find_ref, list_messages, list_refs
from trace_store.history.trash_refs import delete_refs, keep_in_trash
from trace_store.maintenance.du import own_amounts
from trace_store.maintenance.fsck import fsck
from trace_store.objects.address import Address
from trace_store.objects.commit import Tag
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.repo.repository import Repo
from trace_store.writer import Writer

ADA = "Ada <ada@example.org>"
HOUR, DAY = 3_600_000, 86_400_000
CLOCK_STEP = 1000
"""How far the clock of tests moves when it is read."""


class StepClock(FixedClock):
    """A clock that tests can advance."""

    def advance(self, milliseconds: int) -> None:
        self._next += milliseconds


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


@pytest.fixture
def repo(tmp_path: Path, clock: StepClock) -> Repo:
    return Repo.init(tmp_path, author=ADA, clock=clock)


def say(repo: Repo, *texts: str) -> list[Address]:
    return [repo.append("user", text).addresses[0] for text in texts]


def listed(repo: Repo, branch: str = "HEAD", **where: object) -> list[str]:
    found = list_messages(repo.contexts, branch, TrashFilter(**where))  # type: ignore[arg-type]
    return [each.text for each in found]


def texts(repo: Repo) -> list[str]:
    return [message.text for message in repo.compile()]


def in_trash(repo: Repo) -> list[str]:
    return [each.ref for each in list_refs(repo.store)]


def restored(repo: Repo, address: Address) -> tuple[RestoredMessage, ...]:
    """Restore a message, and return what is shown again."""
    messages = repo.trash.restore(address).messages
    assert messages is not None
    return messages.messages


def delete_branch(repo: Repo, name: str, *said: str) -> ObjectId:
    """Create a branch with its own commits, delete it, and return its tip."""
    repo.branches.switch(name, create=True)
    say(repo, *(said or (f"only on {name}",)))
    tip = repo.resolve("HEAD")
    repo.branches.switch("main")
    repo.branches.delete(name)
    return tip


def test_removed_messages_are_listed_until_they_are_shown_again(repo: Repo) -> None:
    one, two, three = say(repo, "one", "two", "three")
    assert listed(repo) == []
    repo.remove([two, one], ghost=True)
    repo.remove(three)
    assert listed(repo) == ["one", "two", "three"], "in the order of the context"
    repo.restore(two)
    assert listed(repo) == ["one", "three"]


def test_sources_of_a_summary_are_not_in_the_trash(repo: Repo) -> None:
    made = say(repo, "one", "two")
    repo.replace(made, [Message("user", "both")])
    assert listed(repo) == []


def test_filters(repo: Repo, clock: StepClock) -> None:
    made = repo.commit(
        [
            Message("assistant", (ToolCall("c1", "Read", '{"path": "a.py"}'),)),
            Message("tool", (ToolResult("c1", "the content of a file " * 9),)),
        ]
    )
    [prose] = say(repo, "Some prose")
    repo.remove(made.addresses[0])
    clock.advance(2 * HOUR)
    repo.remove(prose)
    read, result = "[Read] a.py", listed(repo)[1]
    assert result.startswith("-> the content")
    assert listed(repo, tool="Read") == [read, result], "a result is of the tool that was called"
    assert listed(repo, kinds=("tool_io",)) == [read, result]
    assert listed(repo, kinds=("dialogue",)) == ["Some prose"]
    assert listed(repo, min_tokens=30) == [result]
    assert listed(repo, before=clock.now() - HOUR) == [read, result]
    assert listed(repo, since=clock.now() - HOUR) == ["Some prose"]
    assert listed(repo, text="PROSE") == ["Some prose"]
    assert list_refs(repo.store, where=TrashFilter(tool="Read")) == []


def test_restored_messages_stand_where_they_stood(repo: Repo) -> None:
    made = say(repo, "one", "two", "three", "four")
    before = repo.compile().prefix_hash
    repo.remove(made[1:3])
    [only] = restored(repo, made[2])
    assert (only.after, only.is_exact) == (made[0], False), "two is hidden, so one is nearest"
    [other] = restored(repo, made[1])
    assert (other.after, other.is_exact) == (made[0], True)
    assert repo.compile().prefix_hash == before
    with pytest.raises(errors.StateError, match="is not in the trash"):
        repo.trash.restore(made[1])


def test_a_call_comes_back_with_its_results(repo: Repo) -> None:
    made = repo.commit(
        [
            Message("assistant", (ToolCall("c1", "Read", "{}"),)),
            Message("tool", (ToolResult("c1", "text"),)),
        ]
    )
    repo.remove(made.addresses[1], ghost=True)
    done = restored(repo, made.addresses[0])
    assert [each.address for each in done] == made.addresses
    assert len(repo.compile()) == 2


def test_another_branch_has_a_trash_of_its_own(repo: Repo) -> None:
    [one, _] = say(repo, "one", "two")
    repo.branches.create("other")
    repo.remove(one)
    assert listed(repo, "other") == []
    assert listed(repo, "main") == ["one"]
    repo.branches.switch("other")
    repo.trash.restore(one, ref="main")
    assert listed(repo, "main") == []


def test_emptied_messages_leave_the_list_and_can_be_restored(repo: Repo) -> None:
    long = "one of the messages"
    [one, two] = say(repo, long, "two")
    repo.remove([one, two])
    longest = max(each.token_count for each in repo.trash.list().messages)
    report = repo.trash.empty(min_tokens=longest)
    assert (report.messages, report.freed.objects) == (1, 0)
    assert listed(repo) == ["two"]
    repo.restore(one)
    assert texts(repo) == [long]
    repo.remove(one)
    assert listed(repo) == [long, "two"], "a message that is removed again is listed again"


def test_deleted_and_moved_refs(repo: Repo) -> None:
    say(repo, "one", "two")
    tip = delete_branch(repo, "idea")
    repo.tags.create("v1")
    repo.tags.delete("v1")
    repo.reset("HEAD~1", hard=True)
    found = {each.name: each for each in list_refs(repo.store)}
    assert {name: (each.kind, each.exists) for name, each in found.items()} == {
        "idea": ("branch", False),
        "v1": ("tag", False),
        "main": ("branch", True),
    }
    [idea] = list_refs(repo.store, where=TrashFilter(text="ONLY on"))
    assert (idea.oid, idea.text) == (tip, "user: only on idea")
    assert [each.name for each in list_refs(repo.store, "idea")] == ["idea"]
    assert find_ref(repo.store, "idea") == idea
    assert find_ref(repo.store, "nothing") is None


def test_restored_refs_are_undone_and_taken_names_refused(repo: Repo) -> None:
    say(repo, "one", "two")
    tip = delete_branch(repo, "idea")
    [entry] = list_refs(repo.store)
    [done] = repo.trash.restore("idea").refs
    assert (done.ref, repo.resolve("idea")) == ("refs/heads/idea", tip)
    assert list_refs(repo.store) == []
    repo.undo()
    assert in_trash(repo) == [entry.ref]
    repo.branches.create("idea")
    with pytest.raises(errors.AlreadyExistsError):
        repo.trash.restore("idea")
    [skipped] = repo.trash.restore(everything=True).refs
    assert (skipped.ref, in_trash(repo)) == ("", [entry.ref])
    [renamed] = repo.trash.restore("idea", name="better").refs
    assert (renamed.ref, repo.resolve("better")) == ("refs/heads/better", tip)


def test_deleted_checkpoints_come_back(repo: Repo) -> None:
    [one] = say(repo, "one")
    ref, tip = "refs/checkpoints/before", repo.resolve("HEAD")
    repo.store.transact(lambda _: Transaction((), [RefEdit(ref, tip, None)]))
    delete_refs(Writer(repo.store, author=ADA), [ref], what="checkpoint")
    entry = find_ref(repo.store, "before")
    assert entry is not None
    assert (entry.kind, entry.original) == ("checkpoint", ref)
    repo.trash.restore("before")
    assert repo.store.refs.read(ref) == tip
    assert one in repo.contexts.fold(tip)


def test_several_tips_of_one_branch_are_ambiguous(repo: Repo) -> None:
    say(repo, "one")
    delete_branch(repo, "idea", "first")
    delete_branch(repo, "idea", "second")
    with pytest.raises(errors.AmbiguousRevisionError) as caught:
        find_ref(repo.store, "idea")
    candidates: tuple[str, ...] = caught.value.data["candidates"]  # type: ignore[assignment]
    assert sorted(candidates) == sorted(in_trash(repo))
    assert find_ref(repo.store, candidates[0]) is not None


def test_emptying_says_what_leaves_the_disk(repo: Repo) -> None:
    say(repo, "one", "two")
    delete_branch(repo, "idea", "a text of its own")
    repo.tags.create("same")
    repo.tags.delete("same")
    refs = list_refs(repo.store)
    dry = repo.trash.empty(dry_run=True)
    assert (dry.refs, dry.shared, dry.freed.objects) == (2, 1, 2), "a commit and its blob"
    assert list_refs(repo.store) == refs
    assert repo.trash.empty() == dry
    assert list_refs(repo.store) == []
    repo.undo()
    assert sorted(in_trash(repo)) == sorted(each.ref for each in refs)


def test_messages_and_refs_are_emptied_and_restored_in_one_step(repo: Repo) -> None:
    say(repo, "one", "two")
    [gone] = say(repo, "three")
    delete_branch(repo, "idea")
    repo.remove(gone)
    report = repo.trash.empty()
    assert (report.messages, report.refs) == (1, 1)
    assert (listed(repo), in_trash(repo)) == ([], [])
    repo.undo()
    assert listed(repo) == ["three"]
    assert "idea" in {each.name for each in list_refs(repo.store)}
    repo.branches.create("idea")
    with pytest.raises(errors.AlreadyExistsError):
        repo.trash.restore(gone, "idea")
    assert texts(repo) == ["one", "two"], "nothing was restored"
    repo.branches.rename("idea", "other")
    repo.trash.restore(gone, "idea")
    assert texts(repo) == ["one", "two", "three"]
    repo.undo()
    assert texts(repo) == ["one", "two"]
    assert "idea" not in {each.name for each in repo.branches.list()}


def expiring(repo: Repo, **rules: object) -> dict[str, str]:
    plan = retention.plan_expiry(repo.store, RetentionRules(**rules))  # type: ignore[arg-type]
    return {each.name: why for each, why in plan.expired}


def test_rules(repo: Repo, clock: StepClock) -> None:
    say(repo, "one")
    for number in range(3):
        delete_branch(repo, f"idea-{number}", f"text {number} " * 9)
        clock.advance(DAY)
    assert expiring(repo) == {}
    assert expiring(repo, age_ms=2 * DAY) == {"idea-0": "age", "idea-1": "age"}
    assert expiring(repo, count=1) == {"idea-0": "count", "idea-1": "count"}
    assert expiring(repo, age_ms=3 * DAY, count=1) == {"idea-0": "age", "idea-1": "count"}
    assert expiring(repo, size_bytes=0) == dict.fromkeys(("idea-0", "idea-1", "idea-2"), "size")
    assert expiring(repo, size_bytes=1 << 20) == {}


def test_what_is_kept_whatever_the_rules(repo: Repo) -> None:
    [pinned] = say(repo, "one")
    repo.annotate(pinned, priority="pinned")
    repo.tags.create("v1")
    repo.tags.delete("v1")
    delete_branch(repo, "plain")
    repo.branches.switch("pins", create=True)
    repo.annotate(say(repo, "important"), priority="pinned")
    repo.branches.switch("main")
    repo.branches.switch("sums", create=True)
    repo.replace(say(repo, "a", "b"), [Message("user", "a and b")])
    repo.branches.switch("main")
    repo.branches.switch("expanded", create=True)
    repo.replace(say(repo, "c"), [])  # as an expansion does: nothing is written in its place
    repo.branches.switch("main")
    repo.branches.delete("pins", "sums", "expanded")
    plan = retention.plan_expiry(repo.store, RetentionRules(count=0))
    assert {each.name for each, _ in plan.expired} == {"plain", "expanded"}, "main has its pin, too"
    assert {each.name: why for each, why in plan.kept} == {
        "v1": "tags",
        "pins": "pinned",
        "sums": "summaries",
    }
    assert len(expiring(repo, count=0, keep=frozenset())) == 5
    # A ref that names no commit hides none of the others.
    (blob,) = repo.contexts.fold(repo.resolve("main")).entry(pinned).parts
    put_ref = RefEdit("refs/annotations/x", ObjectId(blob["blob"]), None)
    repo.store.transact(lambda _: Transaction((), [put_ref]))
    again = retention.plan_expiry(repo.store, RetentionRules(count=0))
    assert again.expired == plan.expired


@pytest.mark.parametrize("kept", ["tags", "checkpoints"])
def test_only_what_is_named_is_kept(repo: Repo, kept: str) -> None:
    say(repo, "one")
    tip = repo.resolve("HEAD")
    names = {f"refs/{kind}/x" for kind in ("checkpoints", "heads", "runs", "tags", "trajectories")}
    repo.store.transact(lambda _: Transaction((), [keep_in_trash(each, tip) for each in names]))
    plan = retention.plan_expiry(repo.store, RetentionRules(count=0, keep=frozenset((kept,))))
    assert {each.original: why for each, why in plan.kept} == {f"refs/{kept}/x": kept}
    assert {each.original for each, _ in plan.expired} == names - {f"refs/{kept}/x"}


def test_sessions_that_came_since(repo: Repo, clock: StepClock) -> None:
    say(repo, "one")
    delete_branch(repo, "idea")
    for number in range(3):
        clock.advance(DAY)
        repo.branches.create(f"sessions/codex/{number}")
    assert expiring(repo, sessions=3) == {"idea": "age"}
    assert expiring(repo, sessions=4) == {}


def test_each_number_of_sessions_reaches_back_to_the_start_of_one(
    repo: Repo, clock: StepClock
) -> None:
    say(repo, "one")
    for number in range(5):
        delete_branch(repo, f"idea-{number}")
        clock.advance(DAY)
        repo.branches.create(f"sessions/codex/{number}")
    for sessions in range(1, 6):
        assert len(expiring(repo, sessions=sessions)) == 6 - sessions
    assert expiring(repo, sessions=6) == {}


def test_a_long_removed_message_is_listed_by_its_first_72_characters(repo: Repo) -> None:
    whole = " ".join(f"word{number}" for number in range(40))
    [gone] = say(repo, whole)
    repo.remove(gone)
    [shown] = listed(repo)
    assert shown.endswith("…")
    assert whole.startswith(shown[:-1].rstrip())
    assert len(shown) == 72


def test_settings(repo: Repo) -> None:
    config = repo.store.config
    assert read_rules(repo.store).is_empty
    config.set("trash_retention", "5 sessions")
    config.set("trash_size", "2k")
    config.set("trash_keep", "tags,pinned")
    assert read_rules(repo.store) == RetentionRules(
        None, 5, None, 2048, frozenset(("pinned", "tags"))
    )
    given = {"trash_retention": "72h", "trash_count": 3, "trash_keep": "nothing"}
    assert read_rules(repo.store, given) == RetentionRules(
        3 * DAY, None, 3, 2048, frozenset(("nothing",))
    )
    for key, value in (
        ("trash_retention", "soon"),
        ("trash_retention", "3"),
        ("trash_size", "much"),
        ("trash_size", "-1"),
        ("trash_count", "1.5"),
        ("trash_keep", "cats"),
        ("trash_keep", ""),
    ):
        with pytest.raises(errors.InvalidInputError):
            config.set(key, value)
    assert [parse_duration(each) for each in ("2 hours", "1 day", "2w", "day", "3", "")] == [
        2 * HOUR,
        DAY,
        14 * DAY,
        None,
        None,
        None,
    ]


def test_gc_and_prune_leave_all_that_can_be_asked_for(repo: Repo, clock: StepClock) -> None:
    """With an age of zero, and after all reflogs have expired."""
    made = say(repo, "one", "two", "three", "four")
    repo.replace(made[:2], [Message("user", "one and two")])
    repo.remove(made[2], ghost=True)
    summarised = repo.resolve("HEAD")
    deleted = delete_branch(repo, "idea")
    repo.tags.create("v1", "HEAD~1", message="Sent.")
    repo.tags.delete("v1")
    repo.reset("HEAD~1", hard=True)
    target = repo.append("user", "of the checkpoint").oid
    tag = Tag(target, "before", ADA, clock.now(), "saved").encode()
    put(repo.store, tag, "refs/checkpoints/before")
    repo.reset("HEAD~1", hard=True)
    refs = dict(repo.store.refs.iterate("refs/"))
    trash = in_trash(repo)
    clock.advance(400 * DAY)
    for _ in range(2):
        repo.maintenance.gc(grace_days=0, reflog_days=0)
        repo.maintenance.prune(grace_days=0)
    assert dict(repo.store.refs.iterate("refs/")) == refs
    assert in_trash(repo) == trash
    assert all(each.time for each in list_refs(repo.store)), "their age is still known"
    assert all(repo.compile(name).prefix_hash for name in refs)
    assert repo.compile("checkpoints/before").commit == target
    state = repo.contexts.fold(summarised)
    for address in made:
        entry = state.entry(address)
        assert repo.store.objects.read(entry.parts[0]["blob"])
    repo.restore(made[0])
    assert "one" in texts(repo)
    assert deleted in {each.oid for each in list_refs(repo.store)}
    assert fsck(repo.store) == []


def test_expired_refs_leave_the_disk(repo: Repo, clock: StepClock) -> None:
    say(repo, "one")
    tip = delete_branch(repo, "idea")
    repo.store.config.set("trash_retention", "1 day")
    clock.advance(2 * DAY)
    assert repo.trash.expire(retention="30 days").expired == ()
    with pytest.raises(errors.InvalidInputError, match="not something to keep"):
        repo.trash.expire(keep=["everything"])
    plan = repo.trash.expire(dry_run=True)
    report = repo.trash.expire()
    assert report.expired == plan.expired
    assert [each.name for each, _ in report.expired] == ["idea"]
    assert (report.freed.objects, list_refs(repo.store)) == (2, [])
    clock.advance(DAY)
    repo.maintenance.gc(grace_days=0, reflog_days=0)
    repo.maintenance.prune(grace_days=0)
    repo.maintenance.gc(grace_days=0, reflog_days=0)
    assert not repo.store.objects.contains(tip)
    assert texts(repo) == ["one"]


def test_only_what_is_older_is_emptied(repo: Repo, clock: StepClock) -> None:
    old, new = say(repo, "an old text", "a new text")
    repo.remove(old)
    delete_branch(repo, "old")
    clock.advance(2 * DAY)
    repo.remove(new)
    delete_branch(repo, "new")
    dry = repo.trash.empty(older="1d", dry_run=True)
    assert (dry.messages, dry.refs) == (1, 1)
    assert repo.trash.empty(older="3d").refs == 0
    report = repo.trash.empty(older="1d")
    assert (report.messages, report.refs) == (1, 1)
    assert listed(repo) == ["a new text"]
    assert [each.name for each in list_refs(repo.store)] == ["new"]


def test_what_is_exactly_as_old_is_not_older(repo: Repo, clock: StepClock) -> None:
    [gone] = say(repo, "gone")
    delete_branch(repo, "idea")
    repo.remove(gone)
    (message,) = list_messages(repo.contexts)
    (ref,) = list_refs(repo.store)
    assert ref.time < message.time
    for shift, before, since in ((0, False, True), (1, True, False)):
        shown = list_messages(repo.contexts, "HEAD", TrashFilter(before=message.time + shift))
        assert bool(shown) is before
        shown = list_messages(repo.contexts, "HEAD", TrashFilter(since=message.time + shift))
        assert bool(shown) is since
        found = list_refs(repo.store, where=TrashFilter(before=ref.time + shift))
        assert bool(found) is before
        found = list_refs(repo.store, where=TrashFilter(since=ref.time + shift))
        assert bool(found) is since
        clock.advance(HOUR)
        age = repo.store.clock.now() + CLOCK_STEP - ref.time - shift
        assert bool(expiring(repo, age_ms=age)) is before


def forget_age(folder: Path, clock: StepClock, name: str) -> Repo:
    """Delete the reflog of an entry of the trash, as if git had fetched the ref; return the repository again."""
    with Repo.open(folder, author=ADA, clock=clock) as repo:
        repo.seal()
        (ref,) = (each.ref for each in list_refs(repo.store) if each.name == name)
        Path(repo.store.layout.log_file(ref)).unlink()
    for journal in (folder / ".trace/journal").iterdir():
        journal.unlink()
    repo = Repo.open(folder, author=ADA, clock=clock)
    (each,) = (each for each in list_refs(repo.store) if each.name == name)
    assert each.time == 0
    return repo


def test_refs_of_unknown_age_count_as_the_newest(tmp_path: Path, clock: StepClock) -> None:
    """Git fetches a ref without its reflog."""
    with Repo.init(tmp_path, author=ADA, clock=clock) as repo:
        say(repo, "one")
        for name in ("fetched", "older", "newer"):
            delete_branch(repo, name, f"a text of {name}")
            clock.advance(DAY)
    repo = forget_age(tmp_path, clock, "fetched")
    assert [each.name for each in list_refs(repo.store)] == ["newer", "older", "fetched"]
    assert expiring(repo, age_ms=0).keys() == {"older", "newer"}
    assert expiring(repo, count=3) == {}
    assert expiring(repo, count=2) == {"older": "count"}
    assert expiring(repo, count=1) == {"older": "count", "newer": "count"}
    assert expiring(repo, count=0).keys() == {"fetched", "older", "newer"}
    sizes = {each: own_size(repo, each) for each in ("fetched", "newer", "older")}
    assert expiring(repo, size_bytes=sizes["fetched"]).keys() == {"older", "newer"}
    assert expiring(repo, size_bytes=sizes["fetched"] - 1).keys() == {"fetched", "older", "newer"}
    assert repo.trash.empty(older="1d").refs == 2, "its age is unknown"
    assert [each.name for each in list_refs(repo.store)] == ["fetched"]
    assert list_refs(repo.store, where=TrashFilter(since=clock.now())), "it may be new"


def own_size(repo: Repo, name: str) -> int:
    """Return the bytes that only an entry of the trash holds."""
    entry = find_ref(repo.store, name)
    assert entry is not None
    (amount,) = own_amounts(repo.store, [entry.ref])
    return amount.disk


def test_a_limit_that_is_met_exactly_is_met(repo: Repo, clock: StepClock) -> None:
    say(repo, "one")
    for number in range(3):
        delete_branch(repo, f"idea-{number}", f"text {number} " * 9)
        clock.advance(DAY)
    sizes = [own_size(repo, f"idea-{number}") for number in (2, 1, 0)]
    assert all(sizes)
    for count in (3, 2, 1):
        kept = sum(sizes[:count])
        oldest = [f"idea-{number}" for number in range(3 - count)]
        assert list(expiring(repo, size_bytes=kept)) == oldest[::-1]
        assert f"idea-{3 - count}" in expiring(repo, size_bytes=kept - 1)
        assert list(expiring(repo, count=count)) == oldest[::-1]


def test_what_only_other_entries_of_the_trash_share_costs_nothing(repo: Repo) -> None:
    say(repo, "one")
    repo.tags.create("v1")
    repo.tags.delete("v1")
    assert expiring(repo, size_bytes=0, keep=frozenset()) == {}, "main has all of it"


def test_nothing_expires_by_sessions_until_there_are_so_many(repo: Repo, clock: StepClock) -> None:
    say(repo, "one")
    delete_branch(repo, "idea")
    clock.advance(DAY)
    assert expiring(repo, sessions=1) == {}
    assert expiring(repo, sessions=0) == {"idea": "age"}
    repo.branches.create("sessions/codex/0")
    repo.branches.create("sessions/codex/0/agent")
    assert expiring(repo, sessions=1) == {"idea": "age"}
    assert expiring(repo, sessions=2) == {}, "an agent of a session is no session"


def test_a_removed_message_with_another_label_stays_on_the_list(repo: Repo) -> None:
    [gone] = say(repo, "gone")
    repo.remove(gone)
    repo.annotate(gone, labels=["wrong"])
    assert listed(repo) == ["gone"]
    repo.trash.empty()
    assert listed(repo) == []
    repo.annotate(gone, labels=["more"])
    assert listed(repo) == []
    repo.restore(gone)
    repo.remove(gone)
    assert listed(repo) == ["gone"], "removed once more"


def test_removed_messages_that_a_merge_brings_are_in_the_trash_until_it_is_emptied(
    repo: Repo, clock: StepClock
) -> None:
    say(repo, "one")
    repo.branches.switch("side", create=True)
    gone, emptied = say(repo, "gone", "emptied")
    repo.remove(emptied)
    repo.trash.empty()
    repo.remove(gone)
    repo.branches.switch("main")
    clock.advance(HOUR)
    say(repo, "two")
    repo.merge("side")
    assert listed(repo) == ["gone"]
    assert listed(repo, "side") == ["gone"]
    assert texts(repo) == ["one", "two"]
    repo.trash.empty()
    assert listed(repo) == []
    repo.restore(emptied)
    repo.remove(emptied)
    assert listed(repo) == ["emptied"]
