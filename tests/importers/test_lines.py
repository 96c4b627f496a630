"""Lines of files that are huge, torn, binary, or change while they are read."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from trace_store.importers import json_records
from trace_store.importers.contract import Skip
from trace_store.importers.input_files import InputLine, read_lines
from trace_store.importers.json_records import MAXIMUM_NESTING, records_of
from trace_store.objects.content import bytes_of
from trace_store.transcripts.sources import Record

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def lines_of(data: bytes, *, chunk: int = 7, limit: int = 1 << 20) -> list[InputLine]:
    return list(
        read_lines(lambda at, size: data[at : at + size], len(data), limit=limit, chunk_bytes=chunk)
    )


def one(data: bytes, *, ended: bool = True) -> list[Record | Skip]:
    return list(records_of(InputLine(1, 0, data, len(data), ended)))


SHORT_LINES = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\n\n"]), max_size=60).map(b"".join)
"""Lines that end where a chunk ends, as random bytes seldom do."""


@given(st.binary(max_size=200) | SHORT_LINES, st.integers(1, 64))
def test_lines_are_what_split_makes(data: bytes, chunk: int) -> None:
    found = lines_of(data, chunk=chunk)
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert [line.data for line in found] == expected
    assert [line.number for line in found] == list(range(1, len(expected) + 1))
    assert all(data[line.offset : line.offset + line.length] == line.data for line in found)
    assert [line.ended for line in found] == [True] * data.count(b"\n") + [False] * (
        len(found) - data.count(b"\n")
    )


@given(st.binary(max_size=200), st.integers(1, 64), st.integers(0, 20))
def test_lines_over_the_limit_are_told_but_not_kept(data: bytes, chunk: int, limit: int) -> None:
    for line in lines_of(data, chunk=chunk, limit=limit):
        assert (line.data is None) == (line.length > limit)


@given(st.binary(max_size=120), st.integers(0, 120))
def test_reading_on_makes_what_reading_at_once_makes(data: bytes, at: int) -> None:
    whole = lines_of(data)
    starts = {line.offset: index for index, line in enumerate(whole)}
    if at in starts:
        rest = read_lines(
            lambda offset, size: data[offset : offset + size],
            len(data),
            offset=at,
            number=starts[at] + 1,
        )
        assert list(rest) == whole[starts[at] :]


def test_separators_of_other_alphabets_end_no_line() -> None:
    data = '{"a":"x\u2028y\u2029z\x85\x7f"}\n'.encode()
    assert len(lines_of(data)) == 1
    (record,) = one(data[:-1])
    assert isinstance(record, Record)


def test_a_huge_line_is_passed_over_in_little_memory() -> None:
    size = 1 << 30
    tail = b"\n" + b'{"type":"user"}' + b"\n"

    def read_at(offset: int, count: int) -> bytes:
        end = min(offset + count, size + len(tail))
        inside = max(0, min(end, size) - offset)
        return b"x" * inside + tail[max(0, offset - size) : max(0, end - size)]

    tracemalloc.start()
    found = list(read_lines(read_at, size + len(tail), limit=1 << 20, chunk_bytes=1 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(line.data is None, line.length) for line in found] == [(True, size), (False, 15)]
    assert peak < 16 << 20
    (skip,) = records_of(found[0])
    assert skip == Skip(1, "line-too-long", f"{size} bytes")


def test_a_file_that_shrinks_while_it_is_read_just_ends() -> None:
    data = b'{"a":1}\n{"b":2}\n'
    found = list(read_lines(lambda at, size: data[at : at + size], 1000, chunk_bytes=4))
    assert [line.data for line in found] == [b'{"a":1}', b'{"b":2}']


@given(
    st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), min_size=1, max_size=4),
    st.booleans(),
)
def test_every_object_of_a_line_is_found(
    objects: list[dict[str, object]], ascii_only: bool
) -> None:
    spelled = [
        json.dumps(o, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for o in objects
    ]
    line = b" ".join(spelled)
    found = one(line)
    assert [r.data for r in found if isinstance(r, Record)] == objects
    for record, raw in zip(found, spelled, strict=True):
        assert isinstance(record, Record)
        assert record.raw == raw
        assert line[record.offset : record.offset + record.length] == raw


@given(st.binary(max_size=80))
def test_no_bytes_raise(data: bytes) -> None:
    for found in one(data.replace(b"\n", b"")):
        assert isinstance(found, Record | Skip)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":', "not-json"),
        (b"nonsense", "not-json"),
        (b'{"a":"\x00"}', "not-json"),
        (b"\x00\x01\x02", "not-json"),
        (b"42", "not-a-record"),
        (b"[1]", "not-a-record"),
        (b'{"a":' * 100_000, "nested-too-deep"),
        (b"[" * (MAXIMUM_NESTING + 50) + b"]" * (MAXIMUM_NESTING + 50), "nested-too-deep"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, reason: str) -> None:
    found = one(data)
    assert [skip.reason for skip in found if isinstance(skip, Skip)] == [reason]


def test_the_column_of_a_mistake_is_named() -> None:
    (skip,) = one(b'{"a":1,}')
    assert isinstance(skip, Skip)
    assert "column" in skip.detail


def test_what_stands_before_a_mistake_is_read() -> None:
    first, second = one(b'{"a":1} {"b":')
    assert isinstance(first, Record)
    assert isinstance(second, Skip)


def test_the_last_line_may_be_cut() -> None:
    for cut in range(1, 20):
        for found in one(b'{"type":"user","x":1}'[:cut], ended=False):
            assert isinstance(found, Skip)
            assert found.reason == "unfinished-line"
    (found,) = one(b'{"type":"user","x":1}', ended=False)
    assert isinstance(found, Record)


def test_lone_surrogates_and_escaped_nul_pass() -> None:
    (record,) = one(rb'{"a":"\ud83d \u0000"}')
    assert isinstance(record, Record)
    assert record.data == {"a": "\ud83d \x00"}


def _told(found: Iterable[Record | Skip]) -> list[Any]:
    """Return the content of records and skips; floats as text because of NaN."""
    return [
        found
        if isinstance(found, Skip)
        else (found.line, found.offset, found.length, found.raw, repr(found.data), found.filtered)
        for found in found
    ]


ODD = (
    *('"\\ud800"', '"\\udc00\\ud83d"', "NaN", "-Infinity", "1e999", "-0.0", "5e-324", "01", "1."),
    *("123456789012345678901234567890", "18446744073709551616", '"a\tb"', '{"a":1,"a":2,"b":3}'),
    *('{"\\ud800":1}', "tru", "[" * 250 + "]" * 250, '"' + "{[" * 300 + '"', "9" * 5000, ""),
)
TEXTS = st.one_of(
    st.builds(json.dumps, VALUES, ensure_ascii=st.booleans()),
    st.sampled_from(ODD),
    st.text('{}[]":,0123456789.-+eE\\untrfalse \r\t\ufeff\x0b\u2028é', max_size=30),
)
LINES = st.builds(
    lambda before, text, odd, after: (before + text.replace("1", odd) + after).encode(
        "utf-8", "surrogatepass"
    ),
    st.sampled_from(["", " ", "\ufeff", '{"x":']),
    TEXTS,
    st.sampled_from(["1", *ODD]),
    st.sampled_from(["", "}", "\r", " ", '{"b":2}', "x"]),
)


@given(LINES | st.binary(max_size=40), st.booleans(), st.sampled_from([0, 7]))
def test_a_line_read_in_one_pass_is_what_one_read_piece_by_piece_is(
    data: bytes, ended: bool, offset: int
) -> None:
    line = InputLine(3, offset, data, len(data), ended)
    found = _told(records_of(line))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "_single_record", lambda line: None)
        assert _told(records_of(line)) == found


def test_the_bound_on_nesting_is_the_same_in_one_pass() -> None:
    for depth in range(MAXIMUM_NESTING - 2, MAXIMUM_NESTING + 3):
        for opening, closing in ((b'{"a":', b"}"), (b"[", b"]")):
            data = b'{"a":' + opening * depth + b"1" + closing * depth + b"}"
            (found,) = one(data)
            assert isinstance(found, Record) == (depth <= MAXIMUM_NESTING)


WHOLE = (
    b'{"type":"user","n":[1,{"b":"\xc3\xa9 {\\"c\\": 1}"}],"m":{"k":{"v":null,"w":[{}]}},"z":"{"}'
)


@pytest.mark.parametrize("torn", range(1, len(WHOLE)))
def test_a_whole_record_is_found_behind_every_cut(torn: int) -> None:
    line = WHOLE[:torn] + WHOLE
    found = one(line)
    (record,) = (each for each in found if isinstance(each, Record) and each.data.get("z"))
    assert record.raw == WHOLE
    assert line[record.offset :] == WHOLE
    assert any(isinstance(each, Skip) for each in found)


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
@pytest.mark.parametrize("before", [b"", WHOLE[:40]], ids=["alone", "behind a cut"])
def test_what_stands_in_an_unfinished_record_is_no_record(before: bytes, cut: int) -> None:
    found = one(before + WHOLE[:cut], ended=False)
    assert [each for each in found if isinstance(each, Record)] == []
    assert [each.reason for each in found if isinstance(each, Skip)] == ["unfinished-line"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":{"j":{"k":"' + b"x" * 9000,
        b'{"a":' + b'{"b":1},' * 300 + b'"c":',
        b"\0" * 300,
    ],
    ids=["deep", "wide", "zeros"],
)
def test_whole_records_behind_a_cut_are_all_found(data: bytes) -> None:
    records = [each.data for each in one(data + b'{"w":1} {"x":2}') if isinstance(each, Record)]
    assert records[-1] == {"x": 2}
    if not data.endswith(b":"):
        assert records == [{"w": 1}, {"x": 2}]


@pytest.mark.parametrize(
    "line",
    [b"{" * 40_000, b'{"' * 20_000, b'{"a":1,"b{"w":1}' * 2_500, '{"a":"é"}'.encode() * 4_000],
    ids=["braces", "openings", "cuts", "records"],
)
def test_hostile_lines_take_work_in_proportion(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = 0
    scan = json_records.scan

    def count(text: str, at: int) -> tuple[Any, int]:
        nonlocal scanned
        scanned += 1
        try:
            found = scan(text, at)
        except json.JSONDecodeError as error:
            scanned += error.pos - at + error.pos // 16
            raise
        scanned += found[1] - at
        return found

    def measure(text: str) -> bytes:
        nonlocal scanned
        scanned += len(text)
        return bytes_of(text)

    monkeypatch.setattr(json_records, "scan", count)
    monkeypatch.setattr(json_records, "bytes_of", measure)
    one(line)
    assert scanned < 20 * len(line)


@pytest.mark.parametrize("wrong", [b"\xff", b"\xed\xed\xa0\x80\xed", b"\xed\xb3\xbf\xff", b"\xc3"])
def test_bytes_that_are_not_utf8_keep_their_place(wrong: bytes) -> None:
    data = b'{"a":"\xc3\xa9' + wrong + b'"} {"b":"\xf0\x9f\x98\x80"}'
    found = one(data)
    first, second = (each for each in found if isinstance(each, Record))
    assert first.raw + b" " + second.raw == data
    assert second.data == {"b": "😀"}
    assert [each.reason for each in found if isinstance(each, Skip)] == ["not-utf8"]
