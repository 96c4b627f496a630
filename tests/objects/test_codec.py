"""Objects: canonical encoding, limits, golden vectors, schemas of operations."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import blake3
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_store.base.oid import ObjectId, hash_object
from trace_store.errors import CorruptObjectError, InvalidInputError
from trace_store.objects import codec
from trace_store.objects.codec import MAXIMUM_ELEMENTS
from trace_store.objects.commit import Commit, Operation, Tag
from trace_store.objects.content import ObjectCollector, bytes_of, read_content, text_of

VECTORS = json.loads((Path(__file__).parents[1] / "format" / "vectors.json").read_text())

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_golden_vectors_hold_for_ever(vector: dict[str, str]) -> None:
    """Bytes and ids as first written; an independent blake3 gives the same ids."""
    data = bytes.fromhex(vector["bytes"])
    assert str(hash_object(data)) == vector["id"] == blake3.blake3(data).hexdigest()
    assert codec.is_canonical(data)
    kind = codec.kind_of(data)
    assert kind == vector["kind"]
    if kind == "blob":
        content = bytes.fromhex(vector["content"])
        salt = bytes.fromhex(vector.get("salt", "")) or None
        assert codec.encode_blob(content, salt) == data
        assert codec.blob_content(data) == content
    elif kind == "commit":
        assert Commit.decode(data).encode() == data
    elif kind == "tag":
        assert Tag.decode(data).encode() == data


@given(st.lists(VALUES))
def test_a_value_has_one_spelling(values: list[Any]) -> None:
    data = codec.encode(["kind", *values])
    assert codec.decode(data) == ["kind", *values]
    assert codec.is_canonical(data)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_in_which_a_map_was_written_does_not_show(value: Any, random: Random) -> None:
    """Sorted maps are written as they are, others are sorted first; the bytes are the same."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(shuffled, value)) if random.random() < 0.5 else [*map(shuffled, value)]
        if isinstance(value, dict):
            keys = list(value)
            random.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return value

    def in_order(value: Any) -> Any:
        if isinstance(value, list):
            return [in_order(item) for item in value]
        if isinstance(value, dict):
            return {key: in_order(value[key]) for key in sorted(value)}
        return value

    expected = msgpack.packb(["kind", in_order(value)])
    assert codec.encode(["kind", shuffled(value)]) == expected
    assert codec.encode(["kind", in_order(value)]) == expected


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (codec.decode, codec.kind_of, codec.blob_content, codec.links, Commit.decode):
        with suppress(CorruptObjectError):
            read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc0",
        b"\x90",
        b"\x91\x01",
        b"\x92\xa4blob\xc4\x05abc",
        b"\x92\xa4blob\xc4\x02abc",
        b"\x92\xa1v\xca\x00\x00\x00\x00",
        b"\x92\xa1v\xc7\x01\x05x",
        b"\x92\xa1v\xdd\xff\xff\xff\xff",
        b"\x92\xa1v" + b"\x91" * 200 + b"\xc0",
        b"\x92\xa1v\xa2\xff\xfe",
        b"\x92\xa1v\x81\x01\x02",
        b"\x92\xa1v\x91\x81\xc4\x01k\x02",
    ],
)
def test_hostile_bytes_are_refused(data: bytes) -> None:
    read = codec.blob_content if data.startswith(b"\x92\xa4blob") else codec.decode
    with pytest.raises(CorruptObjectError):
        read(data)


def test_other_spellings_are_seen() -> None:
    assert not codec.is_canonical(b"\x92\xa1v\xcc\x01")  # 1 in two bytes
    assert not codec.is_canonical(b"\x92\xa1v\x82\xa1b\x01\xa1a\x01")  # keys not sorted
    assert not codec.is_canonical(b"\x92\xa1v\x82\xa1a\x01\xa1a\x01")  # a duplicate key


@pytest.mark.parametrize("value", [1.5, {1: 2}, object(), "\ud800", 2**64, [[[1.0]]], {1, 2}])
def test_what_cannot_be_stored_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError):
        codec.encode(["kind", value])


@given(st.text())
def test_text_with_surrogates_comes_back(text: str) -> None:
    gathering = ObjectCollector()
    oid = gathering.put(bytes_of(text))
    objects: dict[bytes, bytes] = dict(gathering.objects)
    assert text_of(read_content(oid, objects.__getitem__)) == text


def test_a_salt_hides_what_the_content_is() -> None:
    plain, salted = codec.encode_blob(b"secret"), codec.encode_blob(b"secret", b"s" * 16)
    assert hash_object(plain) != hash_object(salted)
    assert codec.blob_content(salted) == b"secret"
    with pytest.raises(InvalidInputError):
        codec.encode_blob(b"secret", b"short")


def test_links_are_found_in_what_is_not_known() -> None:
    one, two = ObjectId(b"1" * 32), ObjectId(b"2" * 32)
    data = codec.encode(["teleport", {"a": [one, {"b": two}], "c": b"not an id"}])
    assert codec.links(data) == [one, two]
    assert codec.links(codec.encode_blob(b"3" * 32)) == []


def test_unknown_fields_and_operations_are_carried_whole() -> None:
    fields = {
        "author": "ada",
        "ops": [["teleport", {"x": 1}]],
        "parents": [],
        "time": 1,
        "zz": {"later": [1, 2]},
    }
    data = codec.encode(["commit", fields])
    assert Commit.decode(data).encode() == data


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("add", {}),
        ("add", {"messages": 1}),
        ("add", {"messages": [{"role": "user"}]}),
        ("add", {"messages": [{"role": 1, "parts": []}]}),
        ("add", {"messages": [{"role": "user", "parts": [1]}]}),
        ("add", {"messages": [{"role": "user", "parts": [{}]}]}),
        ("add", {"messages": [], "after": [b"x", 0]}),
        ("add", {"messages": [{"role": "user", "parts": [], "born": [b"x", 0]}]}),
        ("edit", {"target": [b"", 0], "parts": [{"type": "tool_result", "call": 1}]}),
        ("edit", {"target": [b"", -1], "parts": []}),
        ("edit", {"target": [b"", 0]}),
        ("annotate", {"targets": [], "priority": 7}),
        ("remove", {}),
        ("restore", {"targets": [], "version": "x"}),
        ("replace", {"targets": []}),
        ("move", {"targets": [], "after": 1}),
        ("tools", {"schemas": [b"short"]}),
        ("usage", {"about": b"short"}),
    ],
)
def test_operations_of_the_wrong_shape_are_refused(name: str, fields: dict[str, Any]) -> None:
    data = Commit([], "ada", 1, [Operation(name, fields)]).encode()
    with pytest.raises(CorruptObjectError, match=name):
        Commit.decode(data)


class TestTooMuch:
    """What a reader would reject is not written."""

    MESSAGE: ClassVar[dict[str, Any]] = {"parts": [], "role": "user"}

    def test_a_list_with_more_elements_than_are_read(self) -> None:
        messages = [self.MESSAGE] * MAXIMUM_ELEMENTS
        whole = Commit([], "ada", 1, [Operation("add", {"messages": messages})]).encode()
        assert Commit.decode(whole).encode() == whole
        messages.append(self.MESSAGE)
        commit = Commit([], "ada", 1, [Operation("add", {"messages": messages})])
        with pytest.raises(
            InvalidInputError, match="65,537 elements, over the limit of 65,536"
        ) as error:
            commit.encode()
        assert error.value.code == "too-large"

    def test_more_bytes_than_are_read(self) -> None:
        with pytest.raises(InvalidInputError, match="over the limit of 16,777,216") as error:
            Commit([], "ada", 1, [], "m" * (1 << 24)).encode()
        assert error.value.code == "too-large"
