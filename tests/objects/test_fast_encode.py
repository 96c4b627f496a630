"""The fast encoder gives the same bytes as the general one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_store.base.oid import hash_object
from trace_store.errors import InvalidInputError, InvalidMessageError
from trace_store.objects import operations as ops
from trace_store.objects.codec import encode_text
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.fast_encode import encode_commit, encode_message
from trace_store.objects.message import KINDS, ROLES, Message, store_message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

NAMES = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["n" * size for size in (31, 32, 255, 256, 4096)] + ["é" * 16, "é" * 128]
)
CONTENTS = st.text(max_size=300)
FLAT: st.SearchStrategy[Part] = st.one_of(
    CONTENTS.map(Text),
    st.builds(Image, NAMES, st.binary(max_size=300)),
    st.builds(Image, url=CONTENTS),
    st.builds(ToolCall, NAMES, NAMES, CONTENTS, st.sampled_from(["json", "text"])),
    st.builds(Reasoning, CONTENTS, st.none() | CONTENTS),
    st.builds(Opaque, NAMES, st.binary(max_size=300)),
)
PARTS = st.lists(
    FLAT | st.builds(ToolResult, NAMES, st.lists(FLAT, max_size=3), st.booleans()), max_size=17
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(ROLES),
        "parts": PARTS,
        "kind": st.sampled_from(["", *KINDS]),
        "name": NAMES,
        "model": NAMES,
        "id": NAMES,
    }
)
USAGES = st.dictionaries(
    st.sampled_from(["cache_read", "cache_write", "input_total", "model", "source", ""]),
    st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0, 127, 128, 2**32]) | NAMES,
)


def make(gathering: ObjectCollector, given: Mapping[str, Any]) -> bytes | None:
    fields = dict(given)
    return encode_message(fields.pop("role"), fields.pop("parts"), gathering.put, **fields)


def store(gathering: ObjectCollector, given: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(given)
    message = Message(fields.pop("role"), fields.pop("parts"), **fields)
    return store_message(message, gathering.put)


def nests(part: Part) -> bool:
    return isinstance(part, ToolResult) and any(isinstance(p, ToolResult) for p in part.content)


@given(
    st.lists(MESSAGES, max_size=3),
    USAGES,
    NAMES,
    st.integers(-(2**63), 2**64 - 1) | st.integers(0, 2**42),
    st.none() | st.binary(max_size=9).map(hash_object),
    NAMES | st.just(""),
    st.text(st.characters(codec="utf-8"), max_size=40),
)
def test_pieces_make_the_same_commit(
    messages: Sequence[Mapping[str, Any]],
    usage: Mapping[str, Any],
    author: str,
    time: int,
    parent: Any,
    key: str,
    said: str,
) -> None:
    direct, whole = ObjectCollector(), ObjectCollector()
    found = [make(direct, message) for message in messages]
    meta = b"\x81\xa6record" + encode_text(key) if key else b""
    made = [message for message in found if message is not None]
    data = encode_commit(parent, author, time, made, usage, meta, said)
    operations = [ops.add([store(whole, message) for message in messages])] if messages else []
    if usage:
        operations.append(ops.usage(usage))
    parents = () if parent is None else (parent,)
    if len(made) == len(messages):
        assert direct.objects == whole.objects
        if list(usage) == sorted(usage):
            facts = {"record": key} if key else {}
            assert data == Commit(parents, author, time, operations, said, facts).encode()
        else:
            assert data is None
    else:
        assert any(nests(part) for message in messages for part in message["parts"])


@pytest.mark.parametrize("bad", ["\ud800", "n" * 4097, 7])
def test_what_is_no_name_is_refused_as_it_is_elsewhere(bad: Any) -> None:
    for field in ("id", "name", "model"):
        with pytest.raises(InvalidMessageError):
            make(ObjectCollector(), {"role": "user", "parts": [], field: bad})
    with pytest.raises(InvalidMessageError):
        make(ObjectCollector(), {"role": "user", "parts": [ToolCall(bad, "n", "{}")]})


def test_what_has_no_form_is_left() -> None:
    nested = ToolResult("a", [ToolResult("b", "text")])
    assert make(ObjectCollector(), {"role": "tool", "parts": [nested]}) is None
    assert make(ObjectCollector(), {"role": "user", "parts": [Text("a")] * 65_536}) is None
    assert encode_commit(None, "a", 1, [b"\xc0"] * 65_536) is None
    meta = b"\x81\xa6record\xa1k"
    assert encode_commit(None, "a", 1.5, (), {}, meta) is None  # type: ignore[arg-type]
    assert encode_commit(None, "a", 1, (), {"input_total": True}, meta) is None
    with pytest.raises(InvalidInputError):
        encode_commit(None, "\ud800", 1, (), {}, meta)
    with pytest.raises(InvalidInputError):
        encode_commit(None, "a", 2**64, (), {}, meta)


@pytest.mark.parametrize("count", [15, 16, 17, 300])
def test_many_make_the_same_commit_too(count: int) -> None:
    """Arrays whose count needs more than the first byte."""
    text = "words " * (1 if count < 300 else 40)
    message = {"role": "user", "parts": [Text(text), ToolResult("a", [Text("b")] * count)]}
    for messages in ([message] * count, [{"role": "user", "parts": [Text("c")] * count}]):
        direct, whole = ObjectCollector(), ObjectCollector()
        pieces = [make(direct, each) or b"" for each in messages]
        operation = ops.add([store(whole, each) for each in messages])
        assert encode_commit(None, "ada", 1, pieces) == Commit([], "ada", 1, [operation]).encode()


def test_more_bytes_than_are_read_are_refused() -> None:
    piece = make(ObjectCollector(), {"role": "user", "parts": [Text("a")] * 60_000})
    assert piece is not None
    with pytest.raises(InvalidInputError, match="over the limit of 16,777,216") as error:
        encode_commit(None, "ada", 1, [piece] * 10)
    assert error.value.code == "too-large"
