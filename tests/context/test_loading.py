"""Messages loaded many at a time are those that are loaded one by one, and errors come where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.message_strategies import messages as any_messages
from trace_store import Message, ObjectId, Repo, Text
from trace_store.context import bulk_read
from trace_store.context.compiled import CompiledContext, CompiledMessage
from trace_store.errors import CorruptObjectError, ObjectNotFoundError
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.objects.content import bytes_of
from trace_store.objects.message import load_message, part_blobs
from trace_store.writer import Writer


def slowly(context: CompiledContext, message: CompiledMessage) -> Message:
    """Return a message as its stored form says it."""
    if message.ghost:
        return Message(message.role, message.parts, kind=message.kind)
    return load_message(message.stored, context.messages._source.read)


def same(message: CompiledMessage, other: Message) -> bool:
    if message.ghost:
        return message.parts == other.parts
    named = (message.name, message.model, message.id)
    return named == (other.name, other.model, other.id) and message.parts == other.parts


changes = st.lists(
    st.tuples(st.sampled_from(["edit", "remove", "ghost", "pin", "usage"]), st.integers(0, 99)),
    max_size=4,
)


@given(st.lists(st.lists(any_messages, min_size=1, max_size=4), min_size=1, max_size=12), changes)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_messages_that_are_walked_are_those_that_are_picked(
    history: list[list[Message]], changed: list[tuple[str, int]]
) -> None:
    with Repo.memory() as repo:
        addresses = []
        for messages in history:
            addresses += repo.commit(messages).addresses
        for change, number in changed:
            target = addresses[number % len(addresses)]
            if change == "usage":
                repo.record_usage({"input_tokens": 1, "output_tokens": number})
            elif change == "edit":
                draft = Draft(Writer(repo.store, author="ada"))
                draft.edit(target, [Text(f"edited {number}")], force=True)
                commit.write(draft)
            elif change == "pin":
                repo.annotate(target, priority="pinned")
            else:
                repo.remove(target, ghost=change == "ghost")
        context = repo.compile()
        expected = [slowly(context, message) for message in context.messages]
        for walked in (context.messages, list(context.messages)[::-1], context.messages[1:]):
            for message in walked:
                assert same(message, expected[message.position])
        for start in range(len(context)):
            assert same(context.messages[start], expected[start])


def read_counting(repo: Repo, context: CompiledContext) -> list[int]:
    """Let a context read through a counter, and return the list of how many ids each call asked for."""
    asked: list[int] = []
    source = context.messages._source
    read_data = source.read_data

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(source, name)

        def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
            listed = list(oids)
            asked.append(len(listed))
            return read_data(listed)

    context.messages._source = Counting()  # type: ignore[assignment]
    return asked


def grown(count: int) -> Repo:
    repo = Repo.memory()
    for number in range(count):
        repo.append("user", f"message {number}")
    return repo


def test_one_message_reads_nothing_ahead() -> None:
    with grown(300) as repo:
        context = repo.compile()
        asked = read_counting(repo, context)
        messages = list(context.messages)
        assert asked == []
        assert messages[7].text == "message 7"
        assert messages[200].text == "message 200"
        assert asked == []


def test_neighbours_are_read_together_and_once() -> None:
    with grown(3000) as repo:
        context = repo.compile()
        asked = read_counting(repo, context)
        assert [m.text for m in context.messages] == [f"message {n}" for n in range(3000)]
        assert sum(asked) == 5998
        assert len(asked) < 20


def test_what_is_read_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_read, "MAXIMUM_BYTES", 1000)
    with Repo.memory() as repo:
        for number in range(100):
            repo.append("user", f"{number} " + "x" * 300)
        context = repo.compile()
        read = 0
        for message in context.messages:
            read += len(message.text)
            ahead = message._reading.loader._loaded
            assert len(ahead) <= 4
        assert read > 30_000


def test_content_that_is_missing_is_missed_by_those_who_ask_for_it() -> None:
    with grown(40) as repo:
        context = repo.compile()
        lost = part_blobs(context.messages[20].stored["parts"])[0]
        source = context.messages._source

        class Losing:
            def __getattr__(self, name: str) -> object:
                return getattr(source, name)

            def read(self, oid: bytes) -> bytes:
                if oid == lost:
                    raise ObjectNotFoundError("gone", oid=ObjectId(oid))
                return source.read(oid)

            def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
                return map(self.read, oids)

        context.messages._source = Losing()  # type: ignore[assignment]
        messages: Sequence[CompiledMessage] = list(context.messages)
        for message in messages:
            if message.position == 20:
                with pytest.raises(ObjectNotFoundError):
                    message.parts  # noqa: B018
            else:
                assert message.text == f"message {message.position}"


def test_content_that_is_no_text_is_told_of_its_message_alone() -> None:
    with Repo.memory() as repo:
        for text in ("a", "b", "c"):
            repo.append("user", text)
        draft = Draft(Writer(repo.store, author="ada"))
        draft.append("user", "d")
        stored = draft.operations[0].fields["messages"][0]
        stored["parts"][0]["blob"] = draft.change.put(b"\xff\xfe")
        commit.write(draft)
        repo.append("user", "e")
        read = []
        for message in repo.compile().messages:
            try:
                read.append(message.text)
            except CorruptObjectError:
                read.append("?")
        assert read == ["a", "b", "c", "?", "e"]
        assert bytes_of("e") == b"e"
