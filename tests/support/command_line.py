"""What tests of the command line speak of: a command that ran, and the function that runs one."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from trace_store.environment import Environment


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


class Trace(Protocol):
    def __call__(
        self,
        *words: str,
        stdin: bytes = b"",
        terminal: bool = False,
        environment: Environment | None = None,
    ) -> Outcome: ...
