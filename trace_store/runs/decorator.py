"""`@traced` makes each call of a function a step of the run of the `with` block around the call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from trace_store.runs.run import current_run

P = ParamSpec("P")
R = TypeVar("R")
SHOWN_CHARACTERS = 2000
"""How much of a result is stored as the content of the step."""


@overload
def traced(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def traced(
    *, type: str = "tool_call", title: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def traced(
    function: Callable[..., Any] | None = None, /, *, type: str = "tool_call", title: str = ""
) -> Callable[..., Any]:
    """Make each call of a function, plain or `async`, a step; without a current run, the function just runs.

    Args:
        function: the function.
        type: the type of the steps.
        title: their title; "" is the name of the function.
    """
    if function is None:
        return lambda given: traced_as(given, type, title)
    return traced_as(function, type, title)


def traced_as(function: Callable[..., Any], type: str, title: str) -> Callable[..., Any]:
    """Wrap a function so that each call is a step."""
    title = title or function.__name__

    def call(*args: Any, **more: Any) -> Any:
        run = current_run()
        if run is None:
            return function(*args, **more)
        with run.step(type, title) as step:
            result = function(*args, **more)
            step.complete(_shown(result))
        return result

    async def await_call(*args: Any, **more: Any) -> Any:
        run = current_run()
        if run is None:
            return await function(*args, **more)
        async with run.step(type, title) as step:
            result = await function(*args, **more)
            step.complete(_shown(result))
        return result

    return functools.wraps(function)(await_call if inspect.iscoroutinefunction(function) else call)


def _shown(result: object) -> str:
    """Return a result as text, with its end cut if it is long."""
    text = result if isinstance(result, str) else "" if result is None else repr(result)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
