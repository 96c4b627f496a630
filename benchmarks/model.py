"""What a message and a peer are. Peers are modules of `peers/`, whose `__init__` holds the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

# One message as plain JSON: {"id", "role", "content": [part]}, where a part is one of
#   {"type": "text", "text"}
#   {"type": "tool_call", "id", "name", "arguments"}   arguments are JSON text
#   {"type": "tool_result", "call_id", "content"}      content is text
# and, in real transcripts, one of those that `real` names.
Turn = dict[str, Any]


class Unavailable(Exception):  # noqa: N818
    """A peer, or a form of a job, that cannot run here; the text says why."""


class Work(NamedTuple):
    """What was done, so that all contestants of a job provably did the same.

    Attributes:
        messages: how many were handled.
        amount: characters or bytes of them, as the job has it.
    """

    messages: int
    amount: int


# What a cold task returns: called after the clock has stopped, it tells what was done; a floor does no such work.
Proof = Callable[[], Work | None]


class Peer(Protocol):
    """A way to keep messages.

    Attributes:
        store: the folder's name among the stores of one size; peers that only differ in how they sync share one.
        packages: the distributions whose versions are recorded.
    """

    store: str
    packages: tuple[str, ...]

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Store the turns, one per commit, then do housekeeping; `turns` may end early."""
        ...


class Writer(Protocol):
    """A store that is open for writing."""

    def prepare(self, turn: Turn) -> Any:
        """Return the message in the form in which a program has it before storing it."""
        ...

    def append(self, messages: list[Any]) -> None:
        """Store prepared messages in one transaction that moves the branch."""
        ...

    def count(self) -> int:
        """Return how many messages the branch holds."""
        ...

    def close(self) -> None: ...


IDS = "blobs.txt"


def write_ids(folder: Path, ids: Iterable[str]) -> None:
    """Write down beside a store the id of each message's content, for jobs that read by id."""
    (folder / IDS).write_text("".join(f"{each}\n" for each in ids), "ascii")
