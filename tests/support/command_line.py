"""What tests of the command line speak of: a command that ran, and the function that runs one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from trace_store.base.environment import Environment


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8")

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


Run = Callable[..., Outcome]
"""A function that runs a command: what the fixture `ok` returns."""


def record(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON that a successful command printed."""
    assert outcome.code == 0, outcome.err
    value: dict[str, Any] = json.loads(outcome.out)
    return value


def first(outcome: Outcome) -> dict[str, Any]:
    """Return the first of several lines of JSON."""
    value: dict[str, Any] = json.loads(outcome.lines[0])
    return value


class Trace(Protocol):
    def __call__(
        self,
        *words: str,
        stdin: bytes = b"",
        terminal: bool = False,
        environment: Environment | None = None,
    ) -> Outcome: ...
