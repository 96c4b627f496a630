"""Values are what frozen, slotted dataclasses are, as far as anybody relies on it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from trace_store.doors import door
from trace_store.values import value


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


def test_a_door_offers_what_it_says_and_nothing_else() -> None:
    import trace_store.odb.checks as module

    enter = door("trace_store.odb", {"check_hash": "checks"})
    assert enter("check_hash") is module.check_hash
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        enter("nothing")
