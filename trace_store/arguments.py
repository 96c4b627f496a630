"""Checks of the arguments of public methods."""

from __future__ import annotations

import os

from trace_store import errors

_MOST = 2**53
"""The largest count: a larger one is no index for `islice` or SQLite."""


def check_text(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is not text."""
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise _wrong(name, "text", value)


def check_flag(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is neither True nor False."""
    for name, value in arguments.items():
        if not isinstance(value, bool):
            raise _wrong(name, "True or False", value)


def check_count(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is neither None nor an integer from 0 on."""
    for name, value in arguments.items():
        if value is None or (type(value) is int and 0 <= value <= _MOST):
            continue
        raise _wrong(name, "a count", value)


def check_path(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is not a path."""
    for name, value in arguments.items():
        if not isinstance(value, str | os.PathLike):
            raise _wrong(name, "a path", value)
        try:
            has_nul = b"\0" in os.fsencode(value)
        except UnicodeEncodeError:
            has_nul = True
        if has_nul:
            raise errors.InvalidInputError(
                f"{name} has characters that no path has: {str(value)[:80]!r}", argument=name
            )


def check_callable(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is neither None nor callable."""
    for name, value in arguments.items():
        if value is not None and not callable(value):
            raise _wrong(name, "a callable", value)


def check_items(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is not an iterable of items; text is none."""
    for name, value in arguments.items():
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise _wrong(name, "a list", value)


def check_texts(**arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is neither a list nor a tuple of texts."""
    for name, value in arguments.items():
        if not isinstance(value, list | tuple):
            raise _wrong(name, "a list of texts", value)
        for item in value:
            if not isinstance(item, str):
                raise _wrong(name, "a list of texts", item)


def check_type(wanted: type, **arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is not a value of a class."""
    for name, value in arguments.items():
        if not isinstance(value, wanted):
            raise _wrong(name, f"of class {wanted.__name__}", value)


def check_number(low: float, high: float, **arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is not a number from `low` to `high`."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not (isinstance(value, int | float) and low <= value <= high):
            raise _wrong(name, f"a number from {low} to {high}", value)


def check_integer(low: int, high: int, **arguments: object) -> None:
    """Raise InvalidInputError, naming the argument, if one is not an integer from `low` to `high`."""
    for name, value in arguments.items():
        if type(value) is not int or not low <= value <= high:
            raise _wrong(name, f"an integer from {low} to {high}", value)


def _wrong(argument: str, wanted: str, value: object) -> errors.InvalidInputError:
    return errors.InvalidInputError(
        f"{argument} is {wanted}, not {type(value).__name__} {str(value)[:40]!r}",
        argument=argument,
    )
