"""The conversation store of pydantic-ai: beside its in-memory store, call by call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_store import Repo, errors

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryImage,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from trace_store.integrations.pydantic_ai_store import TraceConversationStore

IDS = ("one", "two 2", "ü/3")
SCOPES = st.sampled_from([None, None, None, "ada", "bob"])
PNG = BinaryImage(b"\xff\x00", media_type="image/png")
TURN: list[ModelMessage] = [
    ModelRequest(
        [SystemPromptPart("Be brief."), UserPromptPart("Weather? 😀")], instructions="Use tools."
    ),
    ModelResponse(
        [
            ThinkingPart("Two cities.", signature="gAAA"),
            ToolCallPart("look", {"at": 1.5}, "call_1"),
        ],
        model_name="test-1",
    ),
    ModelRequest([ToolReturnPart("look", {"sky": "rain"}, "call_1")], instructions="Use tools."),
    ModelResponse([TextPart("Rain.")], model_name="test-1"),
    ModelRequest([UserPromptPart(["And here?", PNG])], instructions="Guess."),
]
MESSAGES = st.lists(st.sampled_from(TURN), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.sampled_from(IDS), SCOPES, MESSAGES),
        st.tuples(st.just("rewrite"), st.sampled_from(IDS), st.integers(0, 5), MESSAGES),
        st.tuples(st.just("branch"), st.sampled_from(IDS), st.integers(0, 6), SCOPES),
        st.tuples(st.just("back"), st.sampled_from(IDS), st.integers(0, 2), SCOPES),
        st.tuples(st.just("fork"), st.sampled_from(IDS), st.integers(0, 6), st.sampled_from(IDS)),
        st.tuples(st.just("delete"), st.sampled_from(IDS), SCOPES, st.none()),
        st.tuples(st.just("stale"), st.sampled_from(IDS), st.none(), MESSAGES),
    ),
    min_size=10,
    max_size=25,
)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="ada", durability="fast") as made:
        yield made


async def save(
    store: ConversationStore, id: str, messages: list[ModelMessage], **given: Any
) -> Any:
    conversation = await store.load(id, **given) or Conversation(conversation_id=id)
    conversation.messages = [*conversation.messages, *messages]
    return await store.save(conversation, **given)


def call(kind: str, id: str, one: Any, two: Any) -> Callable[[ConversationStore], Awaitable[Any]]:
    """Return a function that makes a call of a step, and returns what both stores should agree on."""

    async def do(store: ConversationStore) -> Any:
        record = await store.read_record(id)
        revision = None if record is None else record.revision
        if kind == "save":
            return [entry.message for entry in await save(store, id, two, scope=one)]
        if kind == "rewrite":
            loaded = await store.load(id)
            kept = [] if loaded is None else loaded.messages[:one]
            given = Conversation(conversation_id=id, messages=[*kept, *two], revision=revision)
            return [entry.message for entry in await store.save(given)]
        if kind == "branch":
            return (await store.branch(id, at=one, expected_revision=revision, scope=two)).messages
        if kind == "back":
            tips = [] if record is None else record.branches
            tip = tips[one] if one < len(tips) else "no such entry"
            return (await store.branch(id, from_entry=tip, expected_revision=revision)).messages
        if kind == "fork":
            return (await store.fork(id, at=one, new_conversation_id=two)).messages
        if kind == "delete":
            return await store.delete(id, scope=one)
        loaded = await store.load(id)
        await save(store, id, two)
        return loaded and await store.save(loaded)

    return do


async def outcome(
    call: Callable[[ConversationStore], Awaitable[Any]], store: ConversationStore
) -> Any:
    try:
        return await call(store)
    except (errors.TraceError, LookupError, UserError) as error:
        return type(error)


async def seen(store: ConversationStore, id: str) -> Any:
    """Return what a conversation looks like, without ids that each store gives itself."""
    record = await store.read_record(id)
    if record is None:
        return None
    entries = await store.load_entries(id) or []
    assert [await store.read_entry(entry.id) for entry in entries[-1:]] == entries[-1:]
    lines = [await store.read_history(tip) for tip in [record.head_id, *record.branches]]
    messages = [[entry.message for entry in line] for line in lines]
    window = [entry.message for entry in await store.load_entries(id, limit=2) or []]
    return record.scope, record.forked_from, messages, window


@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_each_call_does_what_the_in_memory_store_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    async def compare(repo: Repo) -> None:
        theirs, ours = InMemoryConversationStore(), TraceConversationStore(repo)
        for kind, id, one, two in steps:
            do = call(kind, id, one, two)
            assert await outcome(do, ours) == await outcome(do, theirs)
            changed = two if kind == "fork" else id
            assert await seen(ours, changed) == await seen(theirs, changed)
        fresh = TraceConversationStore(repo)
        for id in IDS:
            assert await seen(fresh, id) == await seen(theirs, id)
        for scope in (None, "ada"):
            listed = [await each.list_conversations(scope=scope) for each in (fresh, theirs)]
            ours_, theirs_ = ({record.conversation_id for record in each} for each in listed)
            assert ours_ == theirs_

    with Repo.init(tmp_path_factory.mktemp("repo"), durability="fast") as repo:
        asyncio.run(compare(repo))


def test_a_conversation_and_its_branches_read_like_branches(repo: Repo) -> None:
    store = TraceConversationStore(repo)
    asyncio.run(save(store, "one", TURN[:2]))
    entries = asyncio.run(save(store, "one", TURN[2:]))
    texts = [(message.role, message.text) for message in repo.compile(store.ref("one"))]
    assert [role for role, _ in texts] == [
        *("system", "system", "user", "assistant", "tool", "assistant", "system", "user")
    ]
    assert repo.compile(store.commit(entries[0].id)).messages

    record = asyncio.run(store.read_record("one"))
    assert record is not None
    asyncio.run(store.branch("one", at=1, expected_revision=record.revision))
    assert [message.role for message in repo.compile(store.ref("one"))][-1] == "user"
    left = store.ref("one").removesuffix("main") + f"left-{entries[-1].id}"
    assert [message.text for message in repo.compile(left)] == [text for _, text in texts]


def test_deleting_erases_what_no_fork_shares(repo: Repo) -> None:
    store = TraceConversationStore(repo)
    asyncio.run(save(store, "one", TURN[:2]))
    shared = repo.resolve(store.ref("one"))
    asyncio.run(store.fork("one", new_conversation_id="two"))
    asyncio.run(save(store, "one", TURN[2:]))
    own = repo.resolve(store.ref("one"))
    asyncio.run(store.delete("one"))

    assert not repo.store.objects.contains(own)
    assert repo.store.objects.contains(shared)
    loaded = asyncio.run(TraceConversationStore(repo).load("two"))
    assert loaded is not None
    assert loaded.messages == TURN[:2]


def test_two_handles_on_one_conversation_conflict(repo: Repo, tmp_path: Path) -> None:
    with Repo.open(tmp_path, durability="fast") as other:
        first, second = TraceConversationStore(repo), TraceConversationStore(other)
        asyncio.run(save(first, "one", TURN[:2]))
        loaded = asyncio.run(second.load("one"))
        asyncio.run(save(first, "one", TURN[2:]))
        assert loaded is not None
        loaded.messages = [*loaded.messages, TURN[4]]
        with pytest.raises(ConversationConflict):
            asyncio.run(second.save(loaded))
        again = asyncio.run(second.load("one"))
    assert again is not None
    assert again.messages == TURN


def test_an_entry_that_is_missing_and_entries_out_of_order_are_refused(repo: Repo) -> None:
    store = TraceConversationStore(repo)
    record = ConversationRecord(conversation_id="one", head_id="missing")
    with pytest.raises(ConversationConflict):
        asyncio.run(store.write_record(record, expected_revision=None))
    stray = ConversationEntry(id="stray", parent_id=None, message=TURN[0])
    with pytest.raises(errors.InvalidInputError, match="new_entries"):
        asyncio.run(store.write_record(record, new_entries=[stray], expected_revision=None))
    with pytest.raises(KeyError):
        asyncio.run(store.read_entry("missing"))
    assert asyncio.run(store.list_conversations()) == []
