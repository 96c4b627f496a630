"""Value classes behave like frozen, slotted dataclasses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from dataclasses import field as slow_field
from dataclasses import replace as slow_replace

import pytest

from trace_store.base.frozen import field, fields, mutable, replace, value
from trace_store.base.lazy_import import names


@value
class Quick:
    name: str
    count: int = 0
    more: tuple[int, ...] = ()

    @property
    def double(self) -> int:
        return 2 * self.count


@dataclass(frozen=True, slots=True)
class Slow:
    name: str
    count: int = 0
    more: tuple[int, ...] = ()


CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    (("a",), {}),
    (("a", 1), {}),
    (("a",), {"more": (2,)}),
    ((), {"name": "a", "count": 3}),
    (("b", 1, (4,)), {}),
]


@pytest.mark.parametrize(("words", "named"), CALLS)
def test_a_value_is_its_fields(words: tuple[object, ...], named: dict[str, object]) -> None:
    quick, slow = Quick(*words, **named), Slow(*words, **named)  # type: ignore[arg-type]
    assert repr(quick) == repr(slow).replace("Slow", "Quick")
    assert hash(quick) == hash(slow)
    for others, more in CALLS:
        same = quick == Quick(*others, **more)  # type: ignore[arg-type]
        assert same == (slow == Slow(*others, **more))  # type: ignore[arg-type]
    assert vars(Quick)["__slots__"] == vars(Slow)["__slots__"]
    assert Quick.__match_args__ == Slow.__match_args__
    assert quick.double == 2 * quick.count
    assert not hasattr(quick, "__dict__")


def test_a_value_takes_what_it_has_a_field_for() -> None:
    for words, named in (((), {}), (("a", 1, (), 2), {}), (("a",), {"nothing": 1})):
        with pytest.raises(TypeError):
            Quick(*words, **named)  # type: ignore[arg-type]


@value
class QuickList:
    name: str
    beside: object = field(hidden=True)
    found: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SlowList:
    name: str
    beside: object = slow_field(repr=False, compare=False)
    found: list[int] = slow_field(default_factory=list)


def test_a_field_may_be_made_anew_or_hidden() -> None:
    quick, slow = QuickList("a", 1), SlowList("a", 1)
    assert repr(quick) == repr(slow).replace("Slow", "Quick")
    assert (quick == QuickList("a", 2)) is (slow == SlowList("a", 2)) is True
    assert (quick == QuickList("a", 1, [3])) is (slow == SlowList("a", 1, [3])) is False
    assert quick.found == slow.found == []
    assert quick.found is not QuickList("a", 1).found
    with pytest.raises(TypeError):
        QuickList("a")  # type: ignore[call-arg]


def test_another_of_a_value_has_its_fields_but_for_those_given() -> None:
    quick, slow = QuickList("a", 1, [3]), SlowList("a", 1, [3])
    assert repr(replace(quick, name="b")) == repr(slow_replace(slow, name="b")).replace(
        "Slow", "Quick"
    )
    assert replace(quick, name="b").found is quick.found
    assert replace(quick, name="b").beside == quick.beside
    assert fields(quick) == fields(QuickList) == ("name", "beside", "found")
    with pytest.raises(TypeError):
        replace(quick, nothing=1)


def test_what_may_be_changed_is_equal_to_itself_alone() -> None:
    @mutable
    class Bench:
        items: list[int] = field(default_factory=list)
        count: int = 0

    bench, other = Bench(), Bench()
    assert bench != other
    assert len({bench, other}) == 2
    bench.count += 1
    bench.items.append(3)
    assert repr(bench).endswith("Bench(items=[3], count=1)")
    assert other.items == []


def test_a_lazy_package_offers_its_names_and_nothing_else() -> None:
    from trace_store.odb import verify as module

    enter = names("trace_store.odb", {"check_object": "verify"})
    assert enter("check_object") is module.check_object
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        enter("nothing")


def test_help_shows_the_fields_before_the_first_instance() -> None:
    @value
    class Place:
        commit: bytes
        number: int = 0

    assert str(inspect.signature(Place)) == "(commit, number=0)"
    assert Place(b"a").number == 0
    assert not hasattr(Place, "__signature__")
