"""Checks of the arguments of public methods, as in `check.text(title=title, role=role)`.

Each raises InvalidInputError for the first value that does not fit; the error names its argument.
"""

from __future__ import annotations

import os

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MOST = 2**53
"""The largest count: a larger one is no index for `islice` or SQLite."""


def text(**arguments: object) -> None:
    """Check that each is text."""
    for name, value in arguments.items():  # without another call, because every append comes here
        if not isinstance(value, str):
            raise _wrong(name, "text", value)


def flag(**arguments: object) -> None:
    """Check that each is True or False."""
    _check_class(arguments, "True or False", bool)


def instance(wanted: type, **arguments: object) -> None:
    """Check that each is a value of a class."""
    _check_class(arguments, f"of class {wanted.__name__}", wanted)


def count(**arguments: object) -> None:
    """Check that each is None or an integer from 0 on."""
    _check(arguments, "a count", lambda it: it is None or (type(it) is int and 0 <= it <= _MOST))


def integer(low: int, high: int, **arguments: object) -> None:
    """Check that each is an integer from `low` to `high`."""
    wanted = f"an integer from {low} to {high}"
    _check(arguments, wanted, lambda it: type(it) is int and low <= it <= high)


def number(low: float, high: float, **arguments: object) -> None:
    """Check that each is a number from `low` to `high`."""
    wanted = f"a number from {low} to {high}"
    _check(arguments, wanted, lambda it: type(it) in (int, float) and low <= it <= high)


def function(**arguments: object) -> None:
    """Check that each is None or callable."""
    _check(arguments, "a callable", lambda it: it is None or callable(it))


def items(**arguments: object) -> None:
    """Check that each is iterable, and not text."""
    _check(arguments, "a list", lambda it: hasattr(it, "__iter__") and type(it) not in (str, bytes))


def texts(**arguments: Any) -> None:
    """Check that each is a list or tuple of texts."""
    for name, given in arguments.items():
        _check_class({name: given}, "a list of texts", (list, tuple))
        for each in given:
            _check_class({name: each}, "a list of texts", str)


def path(**arguments: Any) -> None:
    """Check that each is a path."""
    _check_class(arguments, "a path", (str, os.PathLike))
    _check_encoding(arguments, os.fsencode)


def storable(**texts: str) -> None:
    """Check that a message could hold each text; SQLite takes no others."""
    _check_encoding(texts, str.encode)


def _check(arguments: dict[str, object], wanted: str, fits: Callable[[Any], bool]) -> None:
    for name, value in arguments.items():
        if not fits(value):
            raise _wrong(name, wanted, value)


def _check_class(arguments: dict[str, object], wanted: str, classes: Any) -> None:
    for name, value in arguments.items():
        if not isinstance(value, classes):
            raise _wrong(name, wanted, value)


def _check_encoding(texts: dict[str, Any], encode: Callable[[Any], bytes]) -> None:
    for name, text in texts.items():
        try:
            if b"\0" not in encode(text):
                continue
        except UnicodeEncodeError:
            pass
        raise errors.InvalidInputError(
            f"{name} has a NUL character or is not valid UTF-8: {str(text)[:40]!r}", argument=name
        )


def _wrong(argument: str, wanted: str, value: object) -> errors.InvalidInputError:
    said = f"{argument} is {wanted}, not {type(value).__name__} {str(value)[:40]!r}"
    return errors.InvalidInputError(said, argument=argument)
