"""Frozen value classes: a fast replacement for dataclasses.

    @value
    class Place:
        commit: bytes
        number: int = 0

`value` is like `dataclass(frozen=True, slots=True)` at a tenth of the load time, except that only the type checker
prevents changes. `mutable` is like `dataclass(slots=True, eq=False)`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")

    def field(*, default_factory: Callable[[], T] | None = None, hidden: bool = False) -> Any:
        """Describe a field's default.

        Args:
            default_factory: called for each instance created without the field.
            hidden: whether to leave the field out of equality, hash and `repr`.
        """

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def value(cls: type[T]) -> type[T]:
        """Turn the class into a frozen value class with slots."""

    @dataclass_transform(field_specifiers=(field,))
    def mutable(cls: type[T]) -> type[T]:
        """Turn the class into a mutable class with slots, compared by identity."""

    def fields(instance: object) -> tuple[str, ...]:
        """Return the field names of a value class or of an instance."""

    def replace(instance: T, **changes: Any) -> T:
        """Return a copy with some fields changed."""

else:

    class _Field:
        __slots__ = ("factory", "hidden")

    class _Signature:
        """Compiles `__init__` for `help` and `inspect.signature`, which then read it there."""

        __slots__ = ("_compile_init",)

        def __init__(self, compile_init):
            self._compile_init = compile_init

        def __get__(self, instance, owner):
            self._compile_init()
            raise AttributeError("__signature__")

    def field(*, default_factory=None, hidden=False):
        """Describe a field's default."""
        result = _Field()
        result.factory, result.hidden = default_factory, hidden
        return result

    def value(cls):
        """Turn the class into a frozen value class with slots."""
        return _build_class(cls, (("__eq__", _eq), ("__hash__", _hash), ("__repr__", _repr)))

    def mutable(cls):
        """Turn the class into a mutable class with slots, compared by identity."""
        return _build_class(cls, (("__repr__", _repr),))

    def fields(instance):
        """Return the field names of a value class or of an instance."""
        return instance.__match_args__

    def replace(instance, **changes):
        """Return a copy with some fields changed."""
        return instance.__class__(
            **{n: getattr(instance, n) for n in instance.__match_args__} | changes
        )

    def _build_class(cls, methods):
        members = dict(cls.__dict__)
        names = tuple(members.get("__annotations__", ()))
        given = {name: members.pop(name) for name in names if name in members}
        hidden = {n for n, each in given.items() if each.__class__ is _Field and each.hidden}

        # Compiled for the first instance: a command creates none of most classes that it loads.
        def compile_init():
            built.__init__ = _constructor(names, given)

        def __init__(self, *positional, **keywords):  # noqa: N807 - becomes a method of the class
            compile_init()
            built.__init__(self, *positional, **keywords)

        for name in ("__dict__", "__weakref__"):
            members.pop(name, None)
        members["__init__"] = __init__
        members["__signature__"] = _Signature(compile_init)
        members["__slots__"] = names
        members["__match_args__"] = names
        members["__shown__"] = tuple([n for n in names if n not in hidden]) if hidden else names
        for name, method in methods:
            members.setdefault(name, method)
        members["__qualname__"] = cls.__qualname__
        built = type(cls)(cls.__name__, cls.__bases__, members)
        return built

    def _constructor(names, given):
        """Return `__init__` for fields and what the class body assigned to some of them."""
        factories = {n for n, each in given.items() if each.__class__ is _Field and each.factory}
        defaults = {
            n: each for n, each in given.items() if n in factories or each.__class__ is not _Field
        }
        arguments = "".join(f", {n}={n}" if n in defaults else f", {n}" for n in names)
        values = {n: f"{n}.factory() if {n}.__class__ is _Field else {n}" for n in factories}
        body = "".join(f"\n    self.{n} = {values.get(n, n)}" for n in names) or "\n    pass"
        scope = {**defaults, "_Field": _Field}
        exec(f"def __init__(self{arguments}):{body}", scope)
        return scope["__init__"]


def _fields(self: Any) -> tuple[object, ...]:
    return tuple([getattr(self, name) for name in self.__shown__])


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _fields(self) == _fields(other)


def _hash(self: Any) -> int:
    return hash(_fields(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shown__)
    return f"{self.__class__.__qualname__}({shown})"
