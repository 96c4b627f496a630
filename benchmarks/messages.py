"""The messages of one variant and size: a file of JSON lines in the work folder, from which all contestants read."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.data import datasets
from benchmarks.data.sources import Corpus
from benchmarks.model import Turn

FOLLOWING = 2000
"""How many messages are there beyond those that the stores hold, to be appended."""

REAL = "real"
VARIANTS = ("repetitive", "fresh", REAL)


class Messages:
    """What stores of one size hold, and what is appended to them.

    Attributes:
        path: the file.
        name: tells these messages from any others.
        size: how many a store holds; of real transcripts at most as many as there are.
    """

    def __init__(
        self, folder: Path, variant: str, size: int, *, seed: int, real: tuple[str, ...] = ()
    ) -> None:
        self.size = size
        if variant == REAL:
            self.path = datasets.real_transcript(folder, real)
            content = self.path.read_bytes()
            self.name = f"{REAL}-{hashlib.sha256(content).hexdigest()[:12]}"
            self.size = min(size, content.count(b"\n"))
        else:
            self.path = datasets.transcript(
                folder,
                size + FOLLOWING,
                repetitive=variant == "repetitive",
                seed=seed,
                corpus=_corpus(),
            )
            self.name = self.path.stem.replace(f"-{size + FOLLOWING}-", "-")

    def following(self, count: int) -> list[Turn]:
        """Return messages to append: those after the stores' own, or the first again where none are left."""
        found = list(self._lines(self.size, self.size + count))
        return found or list(self._lines(0, count))

    def _lines(self, start: int, stop: int) -> Iterator[Turn]:
        with self.path.open("rb") as lines:
            yield from map(json.loads, islice(lines, start, stop))


@functools.cache
def _corpus() -> Corpus:
    return Corpus.installed()


def characters(turns: Iterable[Turn]) -> int:
    """Count the characters of texts and tool results; every contestant must come to the same number."""
    return sum(_said(turn.get("content") or turn.get("parts") or ()) for turn in turns)


def _said(content: str | Iterable[Mapping[str, Any]]) -> int:
    if isinstance(content, str):
        return len(content)
    total = 0
    for part in content:
        if part["type"] == "text":
            total += len(part["text"])
        elif part["type"] == "tool_result":
            total += _said(part["content"])
    return total
