"""Values: classes that are their fields, for modules that start quickly.

    @value
    class Place:
        commit: bytes
        number: int = 0

Rule: it makes what `dataclass(frozen=True, slots=True)` makes, and costs a tenth of it to load: `__slots__`, the fields
as arguments in their order, equality and a hash by the fields, and a `repr`. A type checker sees to it that a value is
not changed; nothing does so while the program runs. `mutable` makes what `dataclass(slots=True, eq=False)` makes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")

    def field(*, default_factory: Callable[[], T] | None = None, hidden: bool = False) -> Any:
        """Return what stands for a field's default.

        Args:
            default_factory: makes the default of each value that is made without the field.
            hidden: whether equality, hash and `repr` leave the field out.
        """

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def value(cls: type[T]) -> type[T]:
        """Return the class with its fields as slots, and the methods that a value has."""

    @dataclass_transform(field_specifiers=(field,))
    def mutable(cls: type[T]) -> type[T]:
        """Return the class with its fields as slots, which may be changed; it is equal to itself alone."""

    def fields(made: object) -> tuple[str, ...]:
        """Return the names of the fields of a class that was made here, or of one of its values."""

    def replace(made: T, **changes: Any) -> T:
        """Return another of the same class, with the same fields but for those given."""

else:

    class _Field:
        __slots__ = ("factory", "hidden")

    def field(*, default_factory=None, hidden=False):
        """Return what stands for a field's default."""
        made = _Field()
        made.factory, made.hidden = default_factory, hidden
        return made

    def value(cls):
        """Return the class with its fields as slots, and the methods that a value has."""
        return _made(cls, (("__eq__", _eq), ("__hash__", _hash), ("__repr__", _repr)))

    def mutable(cls):
        """Return the class with its fields as slots, which may be changed; it is equal to itself alone."""
        return _made(cls, (("__repr__", _repr),))

    def fields(made):
        """Return the names of the fields of a class that was made here, or of one of its values."""
        return made.__match_args__

    def replace(made, **changes):
        """Return another of the same class, with the same fields but for those given."""
        return made.__class__(**{n: getattr(made, n) for n in made.__match_args__} | changes)

    def _made(cls, methods):
        members = dict(cls.__dict__)
        names = tuple(members.get("__annotations__", ()))
        given = {name: members.pop(name) for name in names if name in members}
        fields = {name: each for name, each in given.items() if each.__class__ is _Field}
        made = {name for name, each in fields.items() if each.factory}
        defaults = {
            name: each for name, each in given.items() if name in made or name not in fields
        }
        for name in ("__dict__", "__weakref__"):
            members.pop(name, None)
        arguments = "".join(f", {n}={n}" if n in defaults else f", {n}" for n in names)
        values = {n: f"{n}.factory() if {n}.__class__ is _Field else {n}" for n in made}
        body = "".join(f"\n    self.{n} = {values.get(n, n)}" for n in names) or "\n    pass"
        scope = {**defaults, "_Field": _Field}
        exec(f"def __init__(self{arguments}):{body}", scope)
        members["__init__"] = scope["__init__"]
        members["__slots__"] = names
        members["__match_args__"] = names
        hidden = {name for name, each in fields.items() if each.hidden}
        members["__shown__"] = tuple([n for n in names if n not in hidden]) if hidden else names
        for name, method in methods:
            members.setdefault(name, method)
        members["__qualname__"] = cls.__qualname__
        return type(cls)(cls.__name__, cls.__bases__, members)


def _fields(self: Any) -> tuple[object, ...]:
    return tuple([getattr(self, name) for name in self.__shown__])


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _fields(self) == _fields(other)


def _hash(self: Any) -> int:
    return hash(_fields(self))


def _repr(self: Any) -> str:
    said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shown__)
    return f"{self.__class__.__qualname__}({said})"
