"""Walks over the commit graph, compared with a simple model."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store.base.oid import ObjectId, hash_object
from trace_store.commit_table import graph

Graph = dict[ObjectId, list[ObjectId]]


def name(number: int) -> ObjectId:
    return hash_object(str(number).encode())


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 14))
    made: Graph = {}
    for number in range(count):
        parents = (
            draw(st.lists(st.integers(0, number - 1), max_size=3, unique=True)) if number else []
        )
        made[name(number)] = [name(parent) for parent in parents]
    return made


def past(made: Graph, oid: ObjectId) -> set[ObjectId]:
    found = {oid}
    for parent in made[oid]:
        found |= past(made, parent)
    return found


@settings(max_examples=examples(150), deadline=None)
@given(graphs(), st.data())
def test_walks_agree_with_the_model(made: Graph, data: st.DataObject) -> None:
    one, other = (data.draw(st.sampled_from(sorted(made))) for _ in range(2))
    parents = made.__getitem__
    visited = list(graph.ancestors([one, other], parents))
    assert set(visited) == past(made, one) | past(made, other)
    assert len(visited) == len(set(visited))
    assert graph.is_ancestor(one, other, parents) == (one in past(made, other))
    values = data.draw(st.lists(st.sampled_from(sorted(made)), max_size=6))
    expected = {v for v in values if not any(v in past(made, w) for w in values if w != v)}
    assert set(graph.maximal(values, parents)) == expected
    common = past(made, one) & past(made, other)
    best = {c for c in common if not any(c in past(made, d) for d in common if d != c)}
    assert set(graph.merge_bases(one, other, parents)) == best
    near = graph.near_merge_base(one, other, parents, data.draw(st.integers(0, 6)))
    assert near is None or best == {near}
    order = list(graph.topological([one], parents, hidden=[other]))
    assert set(order) == past(made, one) - past(made, other)
    for place, oid in enumerate(order):
        assert not set(made[oid]) & set(order[:place])


def test_two_short_lines_are_all_that_is_read_for_their_merge_base() -> None:
    names = [name(number) for number in range(100)]
    made = {oid: names[max(n - 1, 0) : n] for n, oid in enumerate(names)}
    side = name(1000)
    made[side] = [names[95]]
    read: list[ObjectId] = []

    def parents(oid: ObjectId) -> list[ObjectId]:
        read.append(oid)
        return made[oid]

    assert graph.near_merge_base(names[-1], side, parents, 64) == names[95]
    assert len(read) < 10
    assert graph.near_merge_base(names[-1], names[0], parents, 64) is None


def test_a_long_history_needs_no_recursion() -> None:
    count = 30_000
    names = [name(number) for number in range(count)]
    made = {oid: names[max(n - 1, 0) : n] for n, oid in enumerate(names)}
    assert sum(1 for _ in graph.ancestors([names[-1]], made.__getitem__)) == count
    assert graph.is_ancestor(names[0], names[-1], made.__getitem__)
    assert graph.maximal([names[0], names[-1]], made.__getitem__) == [names[-1]]
    assert graph.merge_bases(names[5], names[-1], made.__getitem__) == [names[5]]
    assert next(iter(graph.topological([names[-1]], made.__getitem__))) == names[-1]
