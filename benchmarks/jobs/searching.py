"""Searching messages by words, beside SQLite's FTS5 alone: the time of a query, and the size of the index."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.peers import load
from benchmarks.peers.fulltext import text_of
from benchmarks.samplers import Cold, Single

SIZES = (10_000, 100_000)
QUERIES = 50
TRACE, FTS = "Trace", "SQLite FTS5, with the texts"
INDEX, TEXT = "Trace, its index", "the texts themselves"
_WORD = re.compile(r"[A-Za-z]{4,16}")


def searching(name: str, peer: str) -> Contestant:
    """Return a contestant that searches for words of the messages, the same for all."""

    def start(ground: Ground, peer: str) -> Sampler:
        return Cold(
            ground,
            peer,
            "search",
            words=str(_words(ground, peer)),
            measure=lambda told: float(told["seconds"]) / QUERIES,
        )

    return Contestant(name, peer, start)


def _words(ground: Ground, peer: str) -> Path:
    """Write random words of messages to a file, in proportion to their frequency."""
    path = ground.store(peer).folder.with_name(f"words-{ground.seed}.txt")
    source = Random(ground.seed)
    words = [word for turn in ground.messages.held() for word in _WORD.findall(text_of(turn))[:20]]
    path.write_text("".join(f"{word}\n" for word in source.choices(words, k=QUERIES)), "utf-8")
    return path


def _index(ground: Ground, peer: str) -> Sampler:
    built = ground.store(peer)
    load(peer).search(built.folder, str(_words(ground, peer)))()
    path = built.folder / ".trace" / "cache" / "search.sqlite3"
    return Single(built.messages, path.stat().st_size)


def _texts(ground: Ground, peer: str) -> Sampler:
    size = sum(len(text_of(turn).encode()) for turn in ground.messages.held())
    return Single(ground.size, size)


JOBS = (
    Job(
        name="search",
        title="Fresh process, 50 searches: the newest 20 messages with a word, and what stands around it; for each",
        unit="s",
        sizes=SIZES,
        rounds=15,
        contestants=(searching(TRACE, "trace"), searching(FTS, "fts5")),
        rows=(Row("a search for a word", TRACE, FTS, 0),),
    ),
    Job(
        name="search-index",
        title="Bytes of the index of words, beside the texts that it is of",
        unit="B",
        sizes=SIZES,
        rounds=1,
        contestants=(Contestant(INDEX, "trace", _index), Contestant(TEXT, "trace", _texts)),
        rows=(Row("size of the index", INDEX, TEXT, 0.5, at_most=True),),
    ),
)
