"""The data sets of the benchmarks: the same from the same seed, and as repetitive as they say."""

from __future__ import annotations

import itertools
import json
import random
import statistics
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.model import Turn
from benchmarks.real import real_turns
from benchmarks.sources import Corpus
from benchmarks.transcripts import VARIANTS, turns

COUNT = 3000
REPETITIVE, VARIED = VARIANTS


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """A part of the standard library, so that the tests look at few files."""
    installed = Corpus.installed()
    return Corpus([file for file in installed.files if "/" not in file.name][:150])


def made(corpus: Corpus, variant: str, count: int = COUNT, seed: int = 1) -> list[Turn]:
    return list(itertools.islice(turns(variant, seed, corpus), count))


def size_bytes(turn: Turn) -> int:
    return len(json.dumps(turn, ensure_ascii=False).encode())


def copied_share(messages: Iterable[Turn]) -> float:
    """Return the share of bytes in tool results that are an exact copy of an earlier one."""
    seen: set[str] = set()
    copied = total = 0
    for message in messages:
        total += size_bytes(message)
        for block in message["content"]:
            if block["type"] == "tool_result":
                copied += len(block["content"]) if block["content"] in seen else 0
                seen.add(block["content"])
    return copied / total


def test_the_same_seed_gives_the_same_messages(corpus: Corpus) -> None:
    assert made(corpus, REPETITIVE, 400) == made(corpus, REPETITIVE, 400)
    assert made(corpus, REPETITIVE, 400, seed=2) != made(corpus, REPETITIVE, 400)


@pytest.mark.parametrize("variant", VARIANTS)
def test_sizes_are_those_of_real_sessions(corpus: Corpus, variant: str) -> None:
    sizes = [size_bytes(message) for message in made(corpus, variant)]
    assert len(sizes) == COUNT
    tenths = statistics.quantiles(sizes, n=10)
    assert 2_300 < statistics.mean(sizes) < 4_500
    assert 1_000 < tenths[4] < 2_300
    assert 5_000 < tenths[8] < 12_000


def test_one_variant_repeats_itself_and_the_other_hardly(corpus: Corpus) -> None:
    assert 0.10 < copied_share(made(corpus, REPETITIVE)) < 0.25
    assert copied_share(made(corpus, VARIED)) < 0.01


def test_calls_and_results_are_paired_and_ids_are_unique(corpus: Corpus) -> None:
    messages = made(corpus, REPETITIVE, 1000)
    assert len({message["id"] for message in messages}) == 1000
    calls: set[str] = set()
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_call":
                calls.add(block["id"])
            if block["type"] == "tool_result":
                assert block["call_id"] in calls


def test_no_source_files_is_said() -> None:
    with pytest.raises(ValueError, match="no source files"):
        next(turns(REPETITIVE, 1, Corpus([])))


def test_real_transcripts_become_messages(tmp_path: Path) -> None:
    record = {
        "type": "user",
        "uuid": "11111111-1111-4111-8111-111111111111",
        "parentUuid": None,
        "sessionId": "22222222-2222-4222-8222-222222222222",
        "timestamp": "2026-01-02T03:04:05.000Z",
        "cwd": "/srv",
        "version": "2.1.0",
        "message": {"role": "user", "content": "Where is the bug?"},
    }
    source = tmp_path / "session.jsonl"
    source.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (turn,) = real_turns([str(source)])
    assert turn["role"] == "user"
    assert turn["content"] == [{"type": "text", "text": "Where is the bug?"}]


def test_all_files_come_before_any_comes_again(corpus: Corpus) -> None:
    names: list[str] = []
    for group in itertools.islice(corpus.groups(random.Random(1)), 30):
        names += [file.name for file in group.files]
        if len(names) >= len(corpus.files):
            break
    assert sorted(names) == sorted(file.name for file in corpus.files)
