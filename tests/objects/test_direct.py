"""Commits put together from pieces equal those that are encoded whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_store.errors import InvalidInputError, InvalidMessageError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.content import Gathering
from trace_store.objects.direct import encode_commit, encode_message, encode_text
from trace_store.objects.message import KINDS, ROLES, Message, store_message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.oid import hash_object

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


def make(gathering: Gathering, given: Mapping[str, Any]) -> bytes | None:
    fields = dict(given)
    return encode_message(fields.pop("role"), fields.pop("parts"), gathering.put, **fields)


def store(gathering: Gathering, given: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(given)
    message = Message(fields.pop("role"), fields.pop("parts"), **fields)
    return store_message(message, gathering.put)


@given(
    st.lists(MESSAGES, max_size=3),
    USAGES,
    NAMES,
    st.integers(-(2**63), 2**64 - 1) | st.integers(0, 2**42),
    st.none() | st.binary(max_size=9).map(hash_object),
    NAMES,
)
def test_pieces_make_the_same_commit(
    messages: Sequence[Mapping[str, Any]],
    usage: Mapping[str, Any],
    author: str,
    time: int,
    parent: Any,
    key: str,
) -> None:
    direct, whole = Gathering(), Gathering()
    found = [make(direct, message) for message in messages]
    meta = b"\x81\xa6record" + encode_text(key)
    made = [message for message in found if message is not None]
    data = encode_commit(parent, author, time, made, usage, meta)
    operations = [ops.append([store(whole, message) for message in messages])] if messages else []
    if usage:
        operations.append(ops.usage(usage))
    parents = () if parent is None else (parent,)
    if len(made) == len(messages):
        assert direct.objects == whole.objects
        if list(usage) == sorted(usage):
            expected = Commit(parents, author, time, operations, meta={"record": key}).encode()
            assert data == expected
        else:
            assert data is None
    else:
        assert any(len(message["parts"]) > 15 for message in messages)


@pytest.mark.parametrize("bad", ["\ud800", "n" * 4097, 7])
def test_what_is_no_name_is_refused_as_it_is_elsewhere(bad: Any) -> None:
    for field in ("id", "name", "model"):
        with pytest.raises(InvalidMessageError):
            make(Gathering(), {"role": "user", "parts": [], field: bad})
    with pytest.raises(InvalidMessageError):
        make(Gathering(), {"role": "user", "parts": [ToolCall(bad, "n", "{}")]})


def test_what_has_no_form_is_left() -> None:
    nested = ToolResult("a", [ToolResult("b", "text")])
    assert make(Gathering(), {"role": "tool", "parts": [nested]}) is None
    meta = b"\x81\xa6record\xa1k"
    assert encode_commit(None, "a", 1.5, (), {}, meta) is None  # type: ignore[arg-type]
    assert encode_commit(None, "a", 1, (), {"input_total": True}, meta) is None
    assert encode_commit(None, "a", 1, (), {"model": "m" * 70_000}, meta) is None
    with pytest.raises(InvalidInputError):
        encode_commit(None, "\ud800", 1, (), {}, meta)
    with pytest.raises(InvalidInputError):
        encode_commit(None, "a", 2**64, (), {}, meta)
