"""Warnings about another order: those of a slow and obvious definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.merge.support.sides import Builder
from trace_store.merge import meaning_warnings


@given(
    st.lists(st.sampled_from(["user", "system", "call", "result"]), max_size=9).flatmap(
        lambda roles: st.tuples(st.just(roles), st.permutations(range(len(roles))))
    )
)
def test_warnings_are_about_all_that_passed(drawn: tuple[list[str], list[int]]) -> None:
    roles, order = drawn
    line = Builder("line")
    for number, role in enumerate(roles):
        if role == "call":
            line.call(f"c{number % 2}")
        elif role == "result":
            line.result(f"c{number % 2}")
        else:
            line.say(role, f"said {number}")
    entries = line.fold.entries
    after = [entries[at].address for at in order]
    expected: list[meaning_warnings.MeaningWarning] = []
    for at, entry in enumerate(entries):
        rank = order.index(at)
        overtook = [e for n, e in enumerate(entries) if n > at and order.index(n) < rank]
        fell = [e for n, e in enumerate(entries) if n < at and order.index(n) > rank]
        if overtook or fell:
            expected += meaning_warnings._warnings_about(entry, overtook, fell, lambda _: "")
    assert meaning_warnings.check_order(entries, after, lambda _: "") == expected
