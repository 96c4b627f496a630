"""Values: classes that are their fields, for modules that start quickly.

    @value
    class Place:
        commit: bytes
        number: int = 0

Rule: it makes what `dataclass(frozen=True, slots=True)` makes, and costs a tenth of it to load: `__slots__`, the fields
as arguments in their order, equality and a hash by the fields, and a `repr`. A type checker sees to it that a value is
not changed; nothing does so while the program runs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[T]) -> type[T]:
        """Return the class with its fields as slots, and the methods that a value has."""

else:

    def value(cls):
        """Return the class with its fields as slots, and the methods that a value has."""
        members = dict(cls.__dict__)
        names = tuple(members.get("__annotations__", ()))
        defaults = {name: members.pop(name) for name in names if name in members}
        for name in ("__dict__", "__weakref__"):
            members.pop(name, None)
        arguments = "".join(f", {n}={n}" if n in defaults else f", {n}" for n in names)
        body = "".join(f"\n    self.{name} = {name}" for name in names) or "\n    pass"
        made = {}
        exec(f"def __init__(self{arguments}):{body}", defaults, made)
        members["__init__"] = made["__init__"]
        members["__slots__"] = names
        members["__match_args__"] = names
        for name, method in (("__eq__", _eq), ("__hash__", _hash), ("__repr__", _repr)):
            members.setdefault(name, method)
        members["__qualname__"] = cls.__qualname__
        return type(cls)(cls.__name__, cls.__bases__, members)


def _fields(self: Any) -> tuple[object, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _fields(self) == _fields(other)


def _hash(self: Any) -> int:
    return hash(_fields(self))


def _repr(self: Any) -> str:
    said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{self.__class__.__qualname__}({said})"
