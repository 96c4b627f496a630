"""Objects as JSON: readable, safe on a terminal, and lossless."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_cli.render.escape import safe
from trace_cli.render.structure import from_json, quoted, to_json
from trace_store.base.oid import ObjectId
from trace_store.errors import InvalidInputError

HEX = "ab" * 32
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    [HEX, "$bin", "$text"]
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS | st.binary(max_size=40)
)
VALUES = st.recursive(
    LEAVES | st.binary(min_size=32, max_size=32),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS | st.sampled_from(["$bin", "$map", "$text"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_there_and_back(value: Any) -> None:
    text = to_json(value)
    assert from_json(json.loads(text)) == value
    assert safe(text) == text


def test_form() -> None:
    value = {"ops": [["append", {"n": 1}]], "parents": [], "time": 5, "x": ObjectId(bytes(32))}
    assert to_json(value) == (
        '{\n  "ops": [\n    [\n      "append",\n      {\n        "n": 1\n      }\n    ]\n  ],\n'
        '  "parents": [],\n  "time": 5,\n  "x": "' + "0" * 64 + '"\n}'
    )
    assert to_json(b"\x01\x02") == '{"$bin": "0102"}'
    assert to_json(HEX) == f'{{"$text": "{HEX}"}}'
    assert to_json({"$bin": 1}) == '{"$map": {"$bin": 1}}'


@given(st.text(max_size=30))
def test_strings_are_json(text: str) -> None:
    assert json.loads(quoted(text)) == text


@pytest.mark.parametrize("value", [1.5, {"$bin": "xy"}, {"$text": 1}, [{"$map": 3}]])
def test_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError):
        from_json(value)
