"""JSON Lines with orjson: a line a message. It has no hashes, no branches and no transactions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import orjson

from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Work

NAME = "messages.jsonl"


class JsonLines:
    """One file that grows."""

    store = "jsonl"
    packages = ("orjson",)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Write a line for each message."""
        with (folder / NAME).open("wb") as file:
            for turn in turns:
                file.write(orjson.dumps(turn) + b"\n")

    def writer(self, folder: Path, mode: str) -> JsonLinesWriter:
        """Open for appending; `mode` is "write" or "fdatasync"."""
        return JsonLinesWriter(folder / NAME, mode)

    def compile(self, folder: Path) -> Proof:
        """Return all messages as dictionaries, read line by line."""
        with (folder / NAME).open("rb") as lines:
            found = [orjson.loads(line) for line in lines]
        return lambda: Work(len(found), characters(found))

    def tail(self, folder: Path) -> Proof:
        """Return length and token total, a number that each line would hold, and the last 50 messages."""
        with (folder / NAME).open("rb") as lines:
            found = [orjson.loads(line) for line in lines]
        total = len(found), sum(turn.get("tokens", 0) for turn in found)
        return lambda: Work(total[0], characters(found[-50:]))


class JsonLinesWriter:
    """A file that is open for appending."""

    def __init__(self, path: Path, mode: str) -> None:
        self._path = path
        self._sync = mode == "fdatasync"
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        os.write(self._fd, b"".join([orjson.dumps(each) + b"\n" for each in messages]))
        if self._sync:
            os.fdatasync(self._fd)

    def count(self) -> int:
        with self._path.open("rb") as lines:
            return sum(1 for _ in lines)

    def close(self) -> None:
        os.close(self._fd)
