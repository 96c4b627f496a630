"""What makes text fit for a provider, against the plainest way to say it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store.providers import wire
from trace_store.providers.wire import document_to_bytes, marked, scrub, to_bytes, to_lines, word

any_text = st.text(st.characters(), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=12,
)


def plainly(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in value)
    if isinstance(value, list):
        return [plainly(item) for item in value]
    if isinstance(value, dict):
        return {plainly(key): plainly(item) for key, item in value.items()}
    return value


@given(values)
def test_surrogates_are_found_wherever_they_stand(value: Any) -> None:
    found, changed = scrub(value)
    assert found == plainly(value)
    assert changed == (found != value)
    assert changed or found is value


@given(any_text | st.text("aZ09_-é²\n", max_size=6), st.integers(12, 20))
def test_words_are_what_they_are_made_of(text: str, limit: int) -> None:
    fits = [each.isascii() and (each.isalnum() or each in "_-") for each in text]
    whole = 0 < len(text) <= limit and all(fits)
    assert word(text, limit, "x") == (text if whole else marked(text, limit, "x"))


any_number = st.integers(-(2**70), 2**70) | st.floats() | st.floats(-1e17, 1e17)
any_value = st.recursive(
    st.none() | st.booleans() | any_number | any_text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(any_text | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(400), deadline=None)
@example("\ud800")
@example({"\ud83d": 1.0, "a": -0.0})
@example([1e-4, 1e-5, 1e16, 9007199254740993.0, 2**64, -(2**63) - 1, "\x7f\x00\x1f\u2028/"])
@example(float("nan"))
@example({1: float("inf")})
@given(any_value)
def test_large_documents_have_the_bytes_of_small_ones(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "WORTH_CHARACTERS", 0)
        try:
            plain = to_bytes([value])
        except ValueError:
            with pytest.raises(ValueError, match="JSON compliant"):
                document_to_bytes([value])
        else:
            assert document_to_bytes([value]) == plain
            assert to_lines([[value], [value]]) == 2 * (plain + b"\n")


@settings(max_examples=examples(400), deadline=None)
@given(st.floats(-1e17, 1e17) | st.floats(-1, 1))
def test_most_numbers_need_no_slow_path(number: float) -> None:
    found = wire._is_for_orjson(["x" * wire.WORTH_CHARACTERS, number])
    assert found == ("e" not in repr(number))


def test_deep_values_and_odd_types_are_left_to_json() -> None:
    deep: Any = "x" * wire.WORTH_CHARACTERS
    for _ in range(400):
        deep = [deep]
    assert json.loads(document_to_bytes(deep)) == deep
    with pytest.raises(TypeError):
        document_to_bytes(["x" * wire.WORTH_CHARACTERS, object()])
    assert document_to_bytes("x" * wire.WORTH_CHARACTERS) == b"x" * wire.WORTH_CHARACTERS
