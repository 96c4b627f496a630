"""The small msgpack codec equals msgpack, or refuses."""

from __future__ import annotations

import sys
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trace_store.errors import InvalidInputError
from trace_store.objects import codec, mini_msgpack
from trace_store.objects.commit import Commit, Operation

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([0, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x10000, 2**32 - 1, 2**32, 2**64 - 1])
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | st.sampled_from(["x" * n for n in (31, 32, 255, 256, 65_535, 65_536)])
    | st.sampled_from([b"x" * n for n in (0, 255, 256, 65_535, 65_536)])
    | st.floats(allow_nan=False)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=17) | st.dictionaries(st.text(max_size=8), inner, max_size=17)
    ),
    max_leaves=40,
)


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_msgpack, "MAXIMUM_BYTES", 1 << 30)
    monkeypatch.setattr(mini_msgpack, "_WORTH_BYTES", 1 << 60)


def unpacked(data: bytes) -> Any:
    return msgpack.unpackb(data, raw=False, strict_map_key=True, max_ext_len=0)


@given(VALUES)
def test_it_writes_what_msgpack_writes(value: Any) -> None:
    try:
        data = mini_msgpack.pack(value)
    except mini_msgpack.UnsureError:
        return
    assert data == msgpack.packb(value, use_bin_type=True)


@given(VALUES)
def test_it_reads_what_msgpack_reads(value: Any) -> None:
    data = msgpack.packb(value, use_bin_type=True)
    try:
        found = mini_msgpack.unpack(data)
    except mini_msgpack.UnsureError:
        return
    assert repr(found) == repr(unpacked(data))


@given(st.binary(max_size=60))
@example(b"\x82\xa1a\x01\xa1a\x02")
@example(b"\x81\x01\x02")
@example(b"\xa1\xff")
@example(b"\xcc\x01")
@example(b"\xd9\x01a")
@example(b"\xc4\x05a")
@example(b"\x93\x01")
def test_bytes_of_a_stranger_mean_the_same_or_are_left_to_msgpack(data: bytes) -> None:
    try:
        found = mini_msgpack.unpack(data)
    except mini_msgpack.UnsureError:
        return
    assert repr(found) == repr(unpacked(data))


def test_what_every_command_reads_is_read_here() -> None:
    commit = Commit([], "Ada", 1_700_000_000_000, [Operation("append", {"messages": []})])
    for value in (
        ["commit", {}],
        {"author": "Ada", "moves": [["refs/heads/main", None, bytes(32)]]},
    ):
        assert mini_msgpack.unpack(mini_msgpack.pack(value)) == value
    assert mini_msgpack.unpack(commit.encode())[0] == "commit"


@given(VALUES)
def test_the_codec_is_the_same_with_either(value: Any) -> None:
    def encoded() -> bytes | str:
        try:
            return codec.encode(["kind", value])
        except InvalidInputError as error:
            return str(error)

    with_msgpack = encoded()
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "msgpack")
        assert encoded() == with_msgpack
        if isinstance(with_msgpack, bytes):
            patch.delitem(sys.modules, "msgpack", raising=False)
            again = codec.decode(with_msgpack)
            assert repr(again) == repr(["kind", unpacked(with_msgpack)[1]])


def test_it_steps_back_when_there_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_msgpack, "MAXIMUM_BYTES", 100)
    monkeypatch.setattr(mini_msgpack, "_WORTH_BYTES", 1000)
    monkeypatch.setattr(mini_msgpack._Handled, "bytes", 0)
    for size in (101, 5000):
        with pytest.raises(mini_msgpack.UnsureError):
            mini_msgpack.pack(b"x" * size)
    monkeypatch.setattr(mini_msgpack._Handled, "bytes", 0)
    for _ in range(19):
        mini_msgpack.pack(b"x" * 50)
    with pytest.raises(mini_msgpack.UnsureError):
        mini_msgpack.pack(b"x" * 50)
