"""Raw records kept beside their commit come back byte for byte, whatever they hold."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from trace_store.errors import CorruptObjectError
from trace_store.importers.build_commits import make_commit, own_operations, put_source
from trace_store.importers.contract import PlannedCommit, PlannedMessage
from trace_store.objects.address import HERE, Address
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts import sources
from trace_store.transcripts.sources import SOURCE_KEY, Record, record_count, source_records

TEXTS = st.text(st.characters(), max_size=120) | st.sampled_from(
    ["\ud83d lone", '"quoted" \\ back', "\x00\x1f\x7f\u2028", "é" * 50, "0j", "x" * 60]
)
LEAVES = st.one_of(
    TEXTS.map(Text),
    st.binary(max_size=90).map(lambda data: Image("image/png", data)),
    TEXTS.map(lambda url: Image(url=url)),
    st.builds(Reasoning, TEXTS, st.none() | TEXTS),
    st.dictionaries(TEXTS, TEXTS, max_size=2).map(
        lambda value: ToolCall("id", "name", json.dumps(value, separators=(",", ":")))
    ),
    TEXTS.map(lambda text: Opaque("anthropic", json.dumps({"x": text}).encode())),
)
PARTS = LEAVES | st.lists(LEAVES, max_size=3).map(lambda inner: ToolResult("id", inner))


def spelled(part: Part, ascii_only: bool) -> Any:
    """A JSON value with a part's contents, as in a record."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Reasoning):
        return [part.text, part.signature, part.text]
    if isinstance(part, ToolResult):
        return [spelled(inner, ascii_only) for inner in part.content]
    if isinstance(part, ToolCall):
        return json.loads(part.arguments)
    if isinstance(part, Opaque):
        return json.loads(part.data)
    return [getattr(part, "url", None)]


@given(
    st.lists(st.lists(PARTS, max_size=3), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_what_goes_in_comes_out(
    records: list[list[Part]], ascii_only: bool, spaced: bool, indent: int | None
) -> None:
    made: list[Record] = []
    for parts in records:
        value = {"said": [spelled(part, ascii_only) for part in parts], "again": [""]}
        separators = (", ", ": ") if spaced else (",", ":")
        raw = json.dumps(value, ensure_ascii=ascii_only, separators=separators, indent=indent)
        made.append(Record(1, 0, 0, raw.encode("utf-8", "backslashreplace"), value, tuple(parts)))
    everything = tuple(part for parts in records for part in parts)
    gathering = ObjectCollector()
    planned = PlannedCommit(
        0, "k", 0, None, "a", 0, messages=(PlannedMessage("user", everything),), records=tuple(made)
    )
    operations = own_operations(planned, gathering.put, lambda place: Address(HERE, place[1]))
    source = put_source(planned, gathering.put)
    commit = Commit.decode(make_commit(planned, operations, (), source).encode())
    objects = dict(gathering.objects)
    assert source_records(commit, lambda oid: objects[oid]) == [record.raw for record in made]  # type: ignore[index]
    assert record_count(commit, lambda oid: objects[oid]) == len(made)  # type: ignore[index]


def test_long_contents_are_kept_once() -> None:
    text = "the same words again and again; " * 40
    raw = json.dumps({"content": text, "stdout": text}, separators=(",", ":")).encode()
    part = Text(text)
    planned = PlannedCommit(
        0,
        *("k", 0, None, "a", 0),
        messages=(PlannedMessage("user", (part,)),),
        records=(Record(1, 0, len(raw), raw, {}, (part,)),),
    )
    gathering = ObjectCollector()
    own_operations(planned, gathering.put, lambda place: Address(HERE, 0))
    put_source(planned, gathering.put)
    assert sorted(len(data) for _, data in gathering.objects)[0] < 60


def test_a_damaged_source_is_told() -> None:
    gathering = ObjectCollector()
    for bad in (b'{"a":\x009j\x00}', b"\x00x\x00", b"\x00\x00\x00", b"\x000q\x00"):
        commit = Commit((), "a", 0, (), meta={SOURCE_KEY: gathering.put(bad)})
        objects = dict(gathering.objects)
        with pytest.raises(CorruptObjectError):
            source_records(commit, lambda oid: objects[oid])  # type: ignore[index]  # noqa: B023


def test_a_commit_without_source_has_no_records() -> None:
    assert source_records(Commit((), "a", 0, ()), lambda _: b"") == []


@given(
    st.text('ab"', max_size=90).map(str.encode),
    st.text("ab", min_size=1, max_size=60).map(str.encode),
    st.integers(0, 90),
)
def test_a_spelling_is_replaced_as_bytes_are(around: bytes, spelled: bytes, at: int) -> None:
    for raw in (around, around[:at] + spelled + around[at:], spelled + around + spelled):
        found = sources._replace(raw, spelled, b"\x001j\x00")
        assert found == raw.replace(spelled, b"\x001j\x00")
        assert (found is raw) == (spelled not in raw)


@given(TEXTS)
def test_the_quick_spelling_is_the_usual_one_where_a_record_holds_it(content: str) -> None:
    record = json.dumps({"x": content, "y": [content]}, ensure_ascii=False).encode(
        "utf-8", "backslashreplace"
    )
    quick = sources._encode_as_javascript(content)
    usual = sources._encode("j", content)
    assert (quick is not None and quick in record) <= (quick == usual)
    assert sources._replace_content(record, 3, "j", content) == record.replace(usual, b"\x003j\x00")
