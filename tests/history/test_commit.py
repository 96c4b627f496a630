"""Commits: content, branch, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import move
from tests.support.examples import examples
from tests.support.lines import LINES, repo_and_line
from tests.support.message_strategies import sound_contexts
from trace_store import (
    Environment,
    FixedClock,
    Message,
    ObjectId,
    Repo,
    Store,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.base.ident import FixedRandomness
from trace_store.contracts.ref_names import branch_ref
from trace_store.errors import (
    InvalidInputError,
    InvalidMessageError,
    InvalidOperationError,
    InvalidRefNameError,
    MessageNotFoundError,
)
from trace_store.history import commit as writing
from trace_store.history import log as walk
from trace_store.history.draft import Draft
from trace_store.history.token_history import token_growth
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts
from trace_store.writer import Writer

ADA = Environment(author="ada")


@pytest.fixture(params=["disk", "memory"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Repo:
    if request.param == "memory":
        return Repo.memory(author="ada", clock=FixedClock())
    return Repo.init(tmp_path, environment=ADA, clock=FixedClock(), durability="fast")


def texts(repo: Repo, revision: str = "HEAD") -> list[str]:
    return [message.text for message in repo.compile(revision).messages]


def commit_of(repo: Repo, oid: ObjectId) -> Commit:
    return Commit.decode(repo.store.objects.read(oid))


def through_a_draft(store: Store, messages: Sequence[Message], message: str) -> None:
    draft = Draft(Writer(store, author="ada"))
    draft.extend(messages)
    writing.write(draft, message=message)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.sampled_from(["anthropic", "openai"]).flatmap(sound_contexts), max_size=3),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
def test_the_short_way_writes_what_the_long_way_writes(
    contexts: list[list[Message]], message: str
) -> None:
    """An append makes no draft and sorts nothing; the journal's frames and the reflogs are the same to the byte."""
    found = []
    for short in (True, False):
        with TemporaryDirectory() as folder:
            store = Store.init(
                folder, clock=FixedClock(), durability="fast", randomness=FixedRandomness()
            )
            for messages in contexts:
                if short:
                    writing.commit(Writer(store, author="ada"), messages, message=message)
                else:
                    through_a_draft(store, messages, message)
            journal = store.layout.journal_file(1)
            held = Path(journal).read_bytes() if contexts else b""
            found.append((held, store.refs.read(branch_ref("main"))))
            store.close()
    assert found[0] == found[1]


def test_a_commit_says_who_when_and_after_what(repo: Repo) -> None:
    first = repo.commit([Message("user", "a")], message="begin")
    second = repo.append("assistant", "b")
    commit = commit_of(repo, second.oid)
    assert commit.parents == (first.oid,)
    assert commit.author == "ada"
    assert commit.time > commit_of(repo, first.oid).time
    assert commit_of(repo, first.oid).message == "begin"
    assert (second.ref, second.message_count) == ("refs/heads/main", 1)
    assert second.addresses == [Address.of(second.oid, 0)]


def test_the_same_content_is_stored_once(repo: Repo) -> None:
    repo.append("user", "the same words")
    before = set(repo.store.objects.iterate())
    repo.append("assistant", "the same words")
    assert len(set(repo.store.objects.iterate()) - before) == 1, "the commit alone"


def test_a_batch_goes_to_the_branch_that_it_began_on(repo: Repo) -> None:
    repo.append("user", "one")
    repo.branches.create("other")
    with repo.batch() as draft:
        draft.append("user", "meant for main")
        repo.branches.switch("other")
    assert [each.text for each in repo.compile("main").messages] == ["one", "meant for main"]
    assert [each.text for each in repo.compile("other").messages] == ["one"]


def test_every_operation_through_one_batch(repo: Repo) -> None:
    with repo.batch("all at once") as draft:
        first = draft.append("user", "a")
        second = draft.append("user", "b")
        third = draft.append("user", "c")
        draft.move([third], after=None)
        draft.edit(first, "A")
        draft.annotate([first], priority="pinned", labels=["decision"], keep=["A"])
        draft.remove([second], ghost=True)
        draft.replace([third], [Message("user", "C1"), Message("user", "C2")], reason="test")
        draft.set_tools([{"name": "read"}])
        draft.record_usage({"prompt_tokens": 3, "completion_tokens": 1}, model="gpt-5")
    result = draft.result
    assert result is not None
    assert len(list(repo.log())) == 1
    context = repo.compile()
    *shown, ghost = [m.text for m in context.messages]
    assert shown == ["C1", "C2", "A"]
    assert ghost.replace("b, ", "") == f"[removed: 1 token, {result.oid.short(8)}.1]"
    assert context.messages[2].priority == "pinned"
    assert context.messages[2].labels == {"decision"}
    assert context.tools == ({"name": "read"},)
    assert repo.contexts.verify().matches


def test_earlier_wordings_come_back(repo: Repo) -> None:
    first = repo.append("user", "one")
    repo.edit(first.addresses[0], "two")
    repo.edit(first.addresses[0], "three")
    repo.restore(first.addresses[0], version=1)
    assert texts(repo) == ["two"]
    repo.restore(first.addresses[0], version=0)
    assert texts(repo) == ["one"]
    with pytest.raises(InvalidOperationError):
        repo.restore(first.addresses[0], version=3)
    entry = repo.contexts.fold(repo.resolve("HEAD")).entry(first.addresses[0])
    said = [load_parts(v.parts, repo.store.objects.read) for v in entry.versions]
    assert said == [(Text("one"),), (Text("two"),), (Text("three"),)]


def test_a_restored_message_stands_where_it_stood(repo: Repo) -> None:
    middle = [repo.append("user", text) for text in "abc"][1]
    repo.remove(middle.addresses[0])
    assert texts(repo) == ["a", "c"]
    repo.restore(middle.addresses[0])
    assert texts(repo) == ["a", "b", "c"]


def test_a_replacement_keeps_what_it_replaced_readable(repo: Repo) -> None:
    targets = [repo.append("user", text).addresses[0] for text in "abcd"][1:3]
    repo.replace(targets, [Message("user", "b and c")], reason="compression", model="m", prompt="?")
    assert texts(repo) == ["a", "b and c", "d"]
    assert texts(repo, "HEAD~1") == ["a", "b", "c", "d"]
    repo.restore(targets)
    assert texts(repo) == ["a", "b and c", "b", "c", "d"]


def test_a_detached_head_takes_commits(repo: Repo) -> None:
    first = repo.append("user", "a")
    repo.append("user", "b")
    repo.store.refs.set_head(first.oid)
    third = repo.append("user", "c")
    assert third.ref is None
    assert texts(repo) == ["a", "c"]
    assert texts(repo, "main") == ["a", "b"]


def test_two_writers_of_one_detached_head_make_one_line(tmp_path: Path) -> None:
    """A commit that loses the race for HEAD goes on top of the other."""
    repo = Repo.init(tmp_path, environment=ADA, durability="fast")
    repo.store.refs.set_head(repo.append("user", "base").oid)
    other = Repo.open(tmp_path, environment=ADA, durability="fast")
    overtaken = False
    transact = repo.store.transact

    def overtake(*arguments: Any, **options: Any) -> Any:
        nonlocal overtaken
        done = transact(*arguments, **options)
        if not overtaken:
            overtaken = True
            other.append("user", "theirs")
        return done

    repo.store.transact = overtake  # type: ignore[method-assign]
    repo.append("user", "ours")
    assert texts(other) == ["base", "theirs", "ours"]


def test_head_is_no_name_for_a_branch(repo: Repo) -> None:
    with pytest.raises(InvalidRefNameError):
        writing.commit(Writer(repo.store, author="ada").on("HEAD"), [Message("user", "x")])


def test_a_commit_goes_to_the_branch_that_is_named(repo: Repo) -> None:
    repo.append("user", "a")
    writing.commit(Writer(repo.store, author="ada").on("notes/x"), [Message("user", "elsewhere")])
    assert texts(repo) == ["a"]
    assert texts(repo, "notes/x") == ["elsewhere"]
    with pytest.raises(InvalidRefNameError):
        writing.commit(Writer(repo.store, author="ada").on("a..b"), [Message("user", "x")])


@pytest.mark.parametrize("author", ["", "  ", "a\nb", "x" * 2000, "\ud800"])
def test_an_author_that_cannot_be_one_is_refused(repo: Repo, author: str) -> None:
    with pytest.raises(InvalidInputError):
        writing.commit(Writer(repo.store, author=author), [Message("user", "x")])
    assert repo.store.refs.head().oid is None


def test_nothing_is_no_commit(repo: Repo) -> None:
    with pytest.raises(InvalidMessageError):
        repo.commit([])
    with repo.batch() as draft:
        pass
    assert draft.result is None
    assert repo.store.refs.head().oid is None


def test_bad_messages_are_refused_before_anything_is_written(repo: Repo) -> None:
    with pytest.raises(InvalidMessageError):
        repo.append("narrator", "x")
    with pytest.raises(InvalidMessageError):
        repo.append("user", "x", kind="A poem")
    with pytest.raises(InvalidMessageError):
        repo.append("assistant", [ToolCall("\ud800", "f", "{}")])
    with pytest.raises(InvalidMessageError):
        repo.append("user", [object()])  # type: ignore[list-item]
    assert list(repo.store.objects.iterate()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda r, t: r.edit(t, "x"),
        lambda r, t: r.annotate(t, priority="skip"),
        lambda r, t: r.remove(t),
        lambda r, t: r.restore(t),
        lambda r, t: r.replace([t], []),
        lambda r, t: r.move(t, after=None),
    ],
)
def test_a_message_that_is_not_there_cannot_be_changed(repo: Repo, change: object) -> None:
    repo.append("user", "a")
    tip = repo.resolve("HEAD")
    for target in ((ObjectId(b"\1" * 32), 0), (tip, 5)):
        with pytest.raises((InvalidOperationError, MessageNotFoundError)):
            change(repo, target)  # type: ignore[operator]
    assert repo.resolve("HEAD") == tip


def test_two_writers_make_one_line(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path, environment=ADA, durability="fast")
    other = Repo.open(tmp_path, environment=Environment(author="eve"), durability="fast")
    for i in range(10):
        (repo, other)[i % 2].append("user", str(i))
    assert texts(repo) == texts(other) == [str(i) for i in range(10)]
    assert [e.commit.author for e in repo.log()] == ["eve", "ada"] * 5


def test_content_over_a_blob_is_kept_whole(tmp_path: Path) -> None:
    long = "0123456789abcdef" * (9 * 1024 * 1024 // 16) + "the end"
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("tool", [ToolResult("t1", long)])
    again = Repo.open(tmp_path, environment=ADA).compile().messages[0].parts[0]
    assert again == ToolResult("t1", long)


def test_the_log_walks_lines_ranges_and_merges(repo: Repo) -> None:
    ids = [repo.append("user", str(i)).oid for i in range(4)]
    move(repo.store, "refs/heads/side", ids[1])
    side = writing.commit(Writer(repo.store, author="ada").on("side"), [Message("user", "s")]).oid
    merge = repo.merge("side").after

    def log(revision: str, **options: object) -> list[ObjectId]:
        return [entry.oid for entry in walk.log(repo.store, revision, **options)]  # type: ignore[arg-type]

    assert log("main~1") == ids[::-1]
    assert log("main", limit=1) == [merge]
    assert log("main", first_parent=True) == [merge, *ids[::-1]]
    assert log("main~3..main~1") == [ids[3], ids[2]]
    assert set(log("main")) == {merge, side, *ids}
    assert log("main").index(side) < log("main").index(ids[1])
    assert log("side..main~1") == [ids[3], ids[2]]
    assert set(log("side...main~1")) == {ids[3], ids[2], side}
    assert log("main..side") == []


def test_the_growth_of_tokens_is_that_of_the_contexts(repo: Repo) -> None:
    first = repo.commit([Message("system", "be brief")])
    repo.set_tools([{"name": "read"}])
    repo.commit([Message("user", "some words"), Message("user", "and more", name="ada")])
    repo.edit(first.addresses[0], "a much longer wording than before")
    repo.append("assistant", "done")
    repo.annotate(first.addresses[0], priority="skip")
    repo.append("user", "thanks")
    entries = list(repo.log())
    growth = token_growth(repo.contexts, entries)
    for entry in entries:
        total = repo.contexts.compile(entry.oid, cold=True).token_count
        parents = entry.commit.parents
        before = repo.contexts.compile(parents[0], cold=True).token_count if parents else 0
        assert (growth[entry.oid].total, growth[entry.oid].added) == (total, total - before)


def test_status_says_how_things_stand(repo: Repo) -> None:
    assert repo.status().message_count == 0
    assert repo.status().branch == "main"
    repo.append("user", "one two three")
    repo.store.config.set("budget", 100)
    status = repo.status()
    assert status.message_count == 1
    assert status.token_count == repo.compile().token_count
    assert status.share == (status.token_count or 0) / 100
    if repo.store.local:
        assert status.unsealed_transactions == 1
        repo.seal()
        assert repo.status().unsealed_transactions == 0


def test_a_closed_repository_has_sealed(tmp_path: Path) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("user", "x")
    assert list((tmp_path / ".trace" / "objects" / "pack").glob("*.pack"))
    assert Store.open(str(tmp_path / ".trace")).unsealed().transactions == 0
    repo.close()


SURROGATE = "\ud800"
BAD: list[dict[str, Any]] = [
    {"role": "user", "content": "a", "id": SURROGATE},
    {"role": "user", "content": "a", "name": "n" * 4097},
    {"role": "user", "content": "a", "model": 7},
    {"role": "assistant", "content": [ToolCall(SURROGATE, "f", "{}")]},
    {"role": "tool", "content": [ToolResult("a", [ToolResult(SURROGATE, "b")])]},
]


@pytest.mark.parametrize("fields", BAD)
@pytest.mark.parametrize("several", [1, 20])
def test_the_short_way_refuses_what_the_long_way_refuses(
    repo: Repo, fields: dict[str, Any], several: int
) -> None:
    messages = [*[Message("user", "good")] * (several - 1), Message(**fields)]
    refusals = []
    for message in ("", SURROGATE):
        with pytest.raises(InvalidInputError) as short:
            repo.commit(messages, message=message)
        with pytest.raises(InvalidInputError) as long:
            through_a_draft(repo.store, messages, message)
        refusals.append((type(short.value), str(short.value), type(long.value), str(long.value)))
    assert all(refusal[:2] == refusal[2:] for refusal in refusals)
    assert repo.store.refs.read("refs/heads/main") is None


def test_what_cannot_be_said_of_a_commit_is_refused_either_way(repo: Repo) -> None:
    with pytest.raises(InvalidInputError) as short:
        repo.commit([Message("user", "a")], message=SURROGATE)
    with pytest.raises(InvalidInputError) as long:
        through_a_draft(repo.store, [Message("user", "a")], SURROGATE)
    assert str(short.value) == str(long.value)
    repo.append("user", "it goes on")
    assert texts(repo) == ["it goes on"]


def test_results_in_results_are_left_to_a_draft(repo: Repo) -> None:
    deep = ToolResult("a", "text")
    for _ in range(20):
        deep = ToolResult("a", [deep])
    repo.append("tool", [deep])
    assert repo.compile().messages[0].parts == (deep,)
    for _ in range(20):
        deep = ToolResult("a", [deep])
    with pytest.raises(InvalidInputError, match="nested deeper"):
        repo.append("tool", [deep])
    assert len(repo.compile()) == 1


def test_results_are_linked_to_their_calls_when_they_are_written(repo: Repo) -> None:
    repo.append("assistant", [ToolCall("c", "look", "{}")])
    repo.append("tool", [ToolResult("c", "first")])
    newer = repo.append("assistant", [ToolCall("c", "look", "{}"), ToolCall("d", "look", "{}")])
    answer = repo.append("tool", [ToolResult("d", "second"), ToolResult("c", "third")])
    (message,) = repo.compile().messages[-1:]
    calls = [part.call for part in message.parts if isinstance(part, ToolResult)]
    assert calls == [newer.addresses[0]] * 2
    with repo.batch() as draft:
        here = draft.append("assistant", [ToolCall("e", "look", "{}")])
        draft.append("tool", [ToolResult("e", "fourth")])
    assert here == Address(b"", 0)
    assert draft.result is not None
    call, result = draft.result.addresses
    assert repo.remove(result).also == (call,)
    assert repo.annotate(newer.addresses[0], priority="pinned").also == (answer.addresses[0],)
    assert repo.annotate(call, labels=["alone"]).also == ()


IDS = st.sampled_from(["a", "b"])
HALVES = st.lists(st.tuples(st.sampled_from([ToolCall, ToolResult]), IDS), min_size=1, max_size=3)


def message_of(halves: Sequence[tuple[type, str]]) -> list[Message]:
    return [
        Message("assistant", [ToolCall(id, "look", "{}")])
        if kind is ToolCall
        else Message("tool", [ToolResult(id, "seen")])
        for kind, id in halves
    ]


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.booleans(), HALVES), max_size=10))
def test_results_find_the_same_calls_as_in_a_draft(
    turns: list[tuple[bool, list[tuple[type, str]]]],
) -> None:
    appended, drafted = (Repo.memory(author="ada", clock=FixedClock(step=0)) for _ in range(2))
    for by_draft, halves in turns:
        for repo in (appended, drafted):
            if by_draft or repo is drafted:
                with repo.batch() as draft:
                    draft.extend(message_of(halves))
            else:
                repo.commit(message_of(halves))
        assert appended.resolve("HEAD") == drafted.resolve("HEAD")


def test_a_result_finds_a_call_that_another_process_has_appended_since(tmp_path: Path) -> None:
    one = Repo.init(tmp_path, environment=ADA, durability="fast")
    other = Repo.open(tmp_path, environment=ADA, durability="fast")
    one.append("assistant", [ToolCall("c", "look", "{}")])
    newer = other.append("assistant", [ToolCall("c", "look", "{}")])
    one.append("tool", [ToolResult("c", "seen")])
    [part] = one.compile().messages[-1].parts
    assert isinstance(part, ToolResult)
    assert part.call == newer.addresses[0]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("reopened", [True, False])
def test_results_of_one_id_answer_the_newest_calls_first(
    tmp_path: Path, together: bool, reopened: bool
) -> None:
    repo = Repo.init(tmp_path, environment=ADA, durability="fast")
    old, new = (repo.append("assistant", [ToolCall("c", "look", "{}")]).addresses for _ in "12")
    if reopened:
        repo = Repo.open(tmp_path, environment=ADA, durability="fast")
    results = [ToolResult("c", text) for text in ("one", "two", "three")]
    for parts in [results] if together else [[each] for each in results]:
        repo.append("tool", parts)
    found = [part for message in repo.compile().messages for part in message.parts]
    calls = [part.call for part in found if isinstance(part, ToolResult)]
    assert calls == [new[0], old[0], new[0]]


def test_an_edit_takes_no_call_from_its_result_unless_it_is_forced(repo: Repo) -> None:
    calling = [ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}")]
    asked = repo.append("assistant", calling).addresses[0]
    answered = repo.append("tool", [ToolResult("a", "one")]).addresses[0]
    repo.edit(asked, [ToolCall("a", "look", '{"deep":true}')])  # the other call has no result
    with pytest.raises(InvalidOperationError, match="a call that has a result: a") as refused:
        repo.edit(asked, [Text("Never mind.")])
    assert refused.value.calls == ["a"]
    with pytest.raises(InvalidOperationError, match="the result of a call: a"):
        repo.edit(answered, [Text("one")])
    with pytest.raises(InvalidOperationError, match="no result of call 'b'"):
        repo.edit(answered, "two", call="b")
    repo.edit(answered, [ToolResult("a", "two")])
    repo.edit(asked, [Text("Never mind.")], force=True)
    assert [part.type for part in repo.compile().messages[0].parts] == ["text"]
    assert repo.remove(answered).also == (asked,)


@pytest.mark.parametrize("name", LINES)
def test_a_text_replaces_each_of_several_results_or_one(name: str) -> None:
    line = repo_and_line(name)[1]
    names = ["call_1", "call_2"]
    line.append("assistant", [ToolCall(name, "look", "{}") for name in names])
    answer = line.append("tool", [ToolResult(name, "long") for name in names]).addresses[0]

    def said() -> list[str]:
        parts = line.compile().messages[-1].parts
        results = [part for part in parts if isinstance(part, ToolResult)]
        return [part.text for each in results for part in each.content if isinstance(part, Text)]

    with pytest.raises(InvalidOperationError, match="2 calls: call_1, call_2") as refused:
        line.edit(answer, "short")
    assert refused.value.calls == names
    with line.batch() as draft, pytest.raises(InvalidOperationError, match="2 calls"):
        draft.edit(answer, "short")
    with pytest.raises(InvalidInputError, match="not both"):
        line.edit(answer, "short", call="call_1", all_results=True)
    assert said() == ["long", "long"]
    line.edit(answer, "short", all_results=True)
    assert said() == ["short", "short"]
    line.edit(answer, "shorter", call="call_2")
    assert said() == ["short", "shorter"]
