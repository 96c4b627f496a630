"""The messages of one variant and size: a file of JSON lines in the work folder, from which all contestants read.

Trace replaces secrets. The file has its placeholders already, so all contestants store the same text.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks import transcripts
from benchmarks.model import Turn
from benchmarks.real import real_turns
from benchmarks.sources import Corpus
from trace_store.secrets.engine import Scanner, replaced

FOLLOWING = 2000
"""How many messages are there beyond those that the stores hold, to be appended."""

REAL = "real"
_TEXTS = {"text", "arguments", "content"}
_MARKED = {"text": "text", "tool_call": "id", "tool_result": "content"}
VARIANTS = (*transcripts.VARIANTS, REAL)


class Messages:
    """The messages in stores of one size, and the messages to append.

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
            self.path = folder / f"{REAL}.jsonl"
            _write(self.path, real_turns(real))
            content = self.path.read_bytes()
            self.name = f"{REAL}-{hashlib.sha256(content).hexdigest()[:12]}"
            self.size = min(size, content.count(b"\n"))
            return
        corpus = _corpus()
        self.name = f"{variant}-{seed}-{corpus.fingerprint}-{_generator()}"
        self.path = folder / f"{self.name}-{size}.jsonl"
        if not self.path.exists():
            endless = transcripts.turns(variant, seed, corpus)
            _write(self.path, islice(endless, size + FOLLOWING))

    def held(self) -> Iterator[Turn]:
        """Yield the messages that the stores hold."""
        return self._lines(0, self.size)

    def following(self, count: int) -> list[Turn]:
        """Return messages to append: those after the stores' own, or the first again where none are left."""
        found = list(self._lines(self.size, self.size + count))
        return found or list(self._lines(0, count))

    def _lines(self, start: int, stop: int) -> Iterator[Turn]:
        with self.path.open("rb") as lines:
            yield from map(json.loads, islice(lines, start, stop))


def _write(path: Path, turns: Iterable[Turn]) -> None:
    """Write a file that is complete or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    scanner = Scanner()
    with part.open("wb") as file:
        for turn in turns:
            _replace_secrets(turn, scanner)
            text = json.dumps(turn, ensure_ascii=False, separators=(",", ":"))
            file.write(text.encode("utf-8", "surrogatepass") + b"\n")
    part.replace(path)


def _replace_secrets(turn: Turn, scanner: Scanner) -> None:
    for part in turn["content"]:
        for name in _TEXTS & part.keys():
            if isinstance(part[name], str):
                data = part[name].encode("utf-8", "surrogatepass")
                if found := scanner.find_bytes(data):
                    part[name] = replaced(data, found).decode("utf-8", "surrogatepass")


@functools.cache
def _corpus() -> Corpus:
    return Corpus.installed()


@functools.cache
def _generator() -> str:
    """Return a short hash of the transcript generator, to regenerate after changes."""
    told = hashlib.sha256()
    for name in ("messages", "sources", "transcripts", "workspace"):
        told.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return told.hexdigest()[:6]


def marked(turn: Turn, mark: str) -> Turn:
    """Return a message that says the same and a mark: another one than any that lacks it."""
    first, *others = turn["content"]
    field = _MARKED[first["type"]]
    told = {**first, field: f"{first[field]} {mark}"}
    return {**turn, "id": f"{turn['id']}.{mark}", "content": [told, *others]}


def characters(turns: Iterable[Turn]) -> int:
    """Count the characters of texts and tool results; every contestant must come to the same number."""
    return sum(
        len(part["text"] if part["type"] == "text" else part["content"])
        for turn in turns
        for part in turn["content"]
        if part["type"] in ("text", "tool_result")
    )
