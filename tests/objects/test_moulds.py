"""A commit read by a mould is what the decoder makes of it, or is left to the decoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.message_strategies import messages as any_messages
from trace_store.errors import CorruptObjectError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.content import Gathering
from trace_store.objects.message import Message, part_blobs, store_message
from trace_store.objects.moulds import (
    CALL,
    FREE_ATTEMPTS,
    LONGEST,
    RESULT,
    TEXT,
    Mould,
    Moulds,
    make_mould,
)
from trace_store.objects.parts import Reasoning, Text, ToolCall, ToolResult
from trace_store.oid import ObjectId, digest

said = st.text(st.characters(codec="utf-8"), max_size=6)
ids = st.sampled_from(["a", "b", "call_1", "call_2", "é", ""])
parts = st.one_of(
    said.map(Text),
    st.builds(ToolCall, ids, ids, said, st.sampled_from(["json", "text"])),
    st.builds(ToolResult, ids, st.lists(said.map(Text), max_size=2), st.booleans()),
    st.builds(Reasoning, said, st.one_of(st.none(), said)),
)
plain_messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    st.lists(parts, max_size=2),
    name=st.sampled_from(["", "ada", "eve"]),
    model=st.sampled_from(["", "m-1", "m-2"]),
    id=st.sampled_from(["", "msg_1", "msg_2"]),
)


def encoded(
    messages: Sequence[Message], *, time: int = 1, parent: bytes = b"p", **fields: Any
) -> bytes:
    """Return the bytes of a commit that appends messages."""
    gathering = Gathering()
    stored = [store_message(message, gathering.put) for message in messages]
    parents = [ObjectId(digest(parent))] if parent else []
    return Commit(parents, "ada", time, [ops.append(stored)], **fields).encode()


commits = st.builds(
    encoded,
    st.lists(st.one_of(plain_messages, plain_messages, any_messages), max_size=3),
    time=st.sampled_from([0, 127, 128, 1_700_000_000_000, 2**63, -5]),
    parent=st.sampled_from([b"", b"p", b"q"]),
    message=st.sampled_from(["", "one", "two", "é"]),
    meta=st.sampled_from([{}, {"line": 300}, {"line": 301, "of": "x"}, {"at": {"deep": [1, "y"]}}]),
)


def as_stored(mould: Mould, data: bytes) -> list[dict[str, Any]]:
    """Return the messages that a mould reads, in stored form."""

    def text(place: slice | str) -> str:
        return place if isinstance(place, str) else str(data[place], "utf-8")

    def part(plan: tuple[Any, ...]) -> dict[str, Any]:
        if plan[0] == RESULT:
            inner = [part(each) for each in plan[3]]
            found = {"id": text(plan[1]), "parts": inner, "type": "tool_result"}
            return {**found, "error": True} if plan[2] else found
        if plan[0] == TEXT:
            return {"blob": data[plan[1]], "type": "text"}
        if plan[0] == CALL:
            found = {"blob": data[plan[1]], "id": text(plan[2]), "name": text(plan[3])}
            found["type"] = "tool_call"
            return found if plan[4] == "json" else {**found, "format": plan[4]}
        found = {"blob": data[plan[1]], "type": "reasoning"}
        return found if plan[2] is None else {**found, "signature": data[plan[2]]}

    messages = []
    for plan in mould.messages:
        named = {"id": text(plan.id), "model": text(plan.model), "name": text(plan.name)}
        stored: dict[str, Any] = {key: value for key, value in named.items() if value}
        stored |= {"parts": [part(each) for each in plan.parts], "role": plan.role}
        messages.append({**stored, "kind": plan.kind} if plan.kind else stored)
    return messages


def agrees(mould: Mould, data: bytes) -> None:
    commit = Commit.decode(data)
    created = [message for operation in commit.operations for message in _messages(operation)]
    assert as_stored(mould, data) == created
    parent = None if mould.parent is None else data[mould.parent]
    assert parent == (commit.parents[0] if commit.parents else None)
    for plan, message in zip(mould.messages, created, strict=True):
        assert [data[blob] for blob in plan.blobs] == part_blobs(message["parts"])


def _messages(operation: Any) -> Iterator[Any]:
    yield from operation.fields.get("messages", ())


@given(st.lists(commits, min_size=1, max_size=12))
def test_moulds_agree_with_the_decoder(history: list[bytes]) -> None:
    moulds = Moulds()
    for data in [*history, *history]:
        mould = moulds.find(data)
        if mould is not None:
            agrees(mould, data)


@given(commits, st.integers(0, 4096), st.binary(min_size=1, max_size=40))
@example(encoded([Message("user", [ToolCall("a", "b", "")])]), 60, b"\xff")
def test_changed_bytes_are_read_as_the_decoder_reads_them_or_not_at_all(
    data: bytes, at: int, other: bytes
) -> None:
    mould = make_mould(data)
    at %= len(data)
    changed = (data[:at] + other + data[at + len(other) :])[: len(data)]
    if mould is not None and mould.fits(changed):
        agrees(mould, changed)
    fresh = make_mould(changed)
    if fresh is not None:
        agrees(fresh, changed)


def test_what_a_decoder_refuses_has_no_mould() -> None:
    for data in (b"", b"\x92", b"\x92\xa4blob\xc4\x02Hi", encoded([Message("user", "x")])[:-1]):
        assert make_mould(data) is None


def test_a_commit_that_does_more_than_append_has_no_mould() -> None:
    target = (digest(b"p"), 0)
    for operation in (ops.remove([target]), ops.tools([ObjectId(digest(b"s"))])):
        assert make_mould(Commit([], "ada", 1, [operation]).encode()) is None


def test_most_commits_are_compared_and_not_decoded() -> None:
    moulds = Moulds()
    histories = [
        encoded([Message("user", str(n))], time=1_700_000_000_000 + n, parent=b"%d" % n)
        for n in range(100)
    ]
    found = {id(moulds.find(data)) for data in histories}
    assert len(found) == 1


def test_commits_that_have_no_form_in_common_are_soon_left_to_the_decoder() -> None:
    moulds = Moulds()
    found = [moulds.find(encoded([Message("user", "x", name="n" * n)])) for n in range(1, 200)]
    assert sum(mould is not None for mould in found) <= FREE_ATTEMPTS + 1
    long = encoded([Message("user", "x")] * 60)
    assert len(long) > LONGEST
    assert Moulds().find(long) is None


def test_text_that_is_no_utf8_is_left_to_the_decoder() -> None:
    data = encoded([Message("user", [ToolCall("call", "name", "")])])
    mould = make_mould(data)
    assert mould is not None
    accented = data.replace(b"call", "cé!".encode(), 1)
    assert mould.fits(accented)
    agrees(mould, accented)
    broken = data.replace(b"call", b"ca\xffl", 2).replace(b"tool_ca\xffl", b"tool_call")
    assert not mould.fits(broken)
    try:
        Commit.decode(broken)
    except CorruptObjectError:
        return
    raise AssertionError("the decoder took it")
