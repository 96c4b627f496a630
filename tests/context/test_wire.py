"""What makes text fit for a provider, against the plainest way to say it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trace_store.providers.wire import marked, scrub, word

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
