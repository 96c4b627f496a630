"""A commit that is taken because it is like one before is one that a decoder takes, and names the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store.errors import CorruptObjectError, InvalidInputError
from trace_store.objects import operations as ops
from trace_store.objects.checking import check_object
from trace_store.objects.codec import (
    COMMIT,
    encode,
    encode_blob,
    is_canonical,
    is_plain_blob,
    links_within,
)
from trace_store.objects.codec import decode as decode_object
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.likeness import MAXIMUM_SHAPES, Likenesses
from trace_store.oid import OID_BYTES, ObjectId

oids = st.binary(min_size=OID_BYTES, max_size=OID_BYTES).map(ObjectId)
words = st.text(max_size=40) | st.sampled_from(["user", "ops", "append", "é", "x" * 300, ""])
times = st.integers(0, 2**64 - 1) | st.integers(2**32 - 2, 2**32 + 2)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | words | oids | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    parts = [{"blob": draw(oids), "type": draw(words)} for _ in range(draw(st.integers(0, 3)))]
    message = {"kind": draw(words), "parts": parts, "role": draw(words)}
    return draw(
        st.sampled_from(
            [
                ops.append([message]),
                ops.append([message, message]),
                ops.remove([(draw(oids), 3), (ops.HERE, 70_000)]),
                ops.usage({"input_total": draw(st.integers(0, 2**40)), "model": draw(words)}),
                Operation("future", {"a": draw(values), "b": draw(words)}),
            ]
        )
    )


commits = st.builds(
    Commit,
    parents=st.lists(oids, max_size=3),
    author=words,
    time=times,
    operations=st.lists(operations(), max_size=3),
    message=words,
    meta=st.dictionaries(st.text(max_size=6), values, max_size=3),
    links=st.lists(st.tuples(words, oids | words), max_size=2),
)


def judged(data: bytes) -> tuple[bytes, ...] | None:
    """Return what a sound commit names, as decoding tells; None for anything else."""
    try:
        if check_object(data) != COMMIT or not is_canonical(data):
            return None
        return tuple(links_within(decode_object(data)))
    except (CorruptObjectError, InvalidInputError):
        return None


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(commits, min_size=1, max_size=6), st.data())
def test_what_is_taken_is_sound_and_names_the_same(
    learned: list[Commit], data: st.DataObject
) -> None:
    known = Likenesses()
    seen: list[bytes] = []
    for commit in learned:
        try:
            encoded = commit.encode()
        except InvalidInputError:
            continue
        expected = judged(encoded)
        assert known.links(encoded) in (None, expected)
        if expected is not None:
            known.learn(encoded)
            assert known.links(encoded) == expected
            seen.append(encoded)
    if not seen:
        return
    chosen = bytearray(data.draw(st.sampled_from(seen)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(chosen) - 1))
        piece = data.draw(
            st.binary(min_size=1, max_size=9) | st.sampled_from([bytes(4), bytes(8), b"\xff"])
        )
        chosen[at : at + len(piece)] = piece[: len(chosen) - at]
    found = known.links(bytes(chosen))
    if found is not None:
        assert found == judged(bytes(chosen))


def test_commits_of_one_line_are_alike() -> None:
    known = Likenesses()

    def made(number: int) -> bytes:
        oid = ObjectId(bytes([number]) * 32)
        part = {"blob": oid, "type": "text"}
        message = {"kind": "dialogue", "parts": [part], "role": "user"}
        time = 1_700_000_000_000 + number
        return Commit([oid], "ada", time, [ops.append([message])]).encode()

    assert known.links(made(1)) is None
    known.learn(made(1))
    assert known.links(made(2)) == (bytes([2]) * 32, bytes([2]) * 32)


def test_what_is_remembered_is_bounded() -> None:
    known = Likenesses()
    for number in range(MAXIMUM_SHAPES + 10):
        known.learn(Commit([], "a" * (number + 1), number, []).encode())
    last = Commit([], "a" * (MAXIMUM_SHAPES + 10), MAXIMUM_SHAPES + 9, []).encode()
    assert judged(last) == ()
    assert known.links(last) is None


@given(st.binary(max_size=300) | st.sampled_from([bytes(n) for n in (255, 256, 65535, 65536)]))
def test_plain_blobs_are_canonical(content: bytes) -> None:
    blob = encode_blob(content)
    assert is_plain_blob(blob)
    assert not is_plain_blob(blob + b"x")
    assert not is_plain_blob(blob[:-1])
    assert not is_plain_blob(encode_blob(content, bytes(16)))
    size = len(content)
    longer = b"\x92\xa4blob\xc6" + size.to_bytes(4, "big") + content
    assert is_plain_blob(longer) == is_canonical(longer) == (size >= 0x10000)
    assert not is_plain_blob(encode(["list", {}]))
