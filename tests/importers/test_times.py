"""Times of records: each minute is parsed once, with the same results."""

from __future__ import annotations

from datetime import datetime

import hypothesis.strategies as st
from hypothesis import given

from trace_store.base.ident import parse_time
from trace_store.errors import InvalidInputError
from trace_store.importers.convert import time_of_text


def _as_javascript(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


TIMES = st.datetimes().map(_as_javascript)
NEARLY = st.builds(
    lambda text, at, other: text[:at] + other + text[at + 1 :],
    TIMES,
    st.integers(0, 23),
    st.characters() | st.sampled_from("0123456789:-. ZTW+,"),
)


@given(TIMES | NEARLY | st.datetimes().map(str))
def test_a_time_is_what_it_is_taken_apart_alone(text: str) -> None:
    try:
        expected = parse_time(text)
    except InvalidInputError:
        expected = None
    assert time_of_text(text) == expected
