"""The data sets of the benchmarks: the same from the same seed, and as repetitive as they say."""

from __future__ import annotations

import itertools
import json
import random
import statistics
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.data import datasets
from benchmarks.data.sources import Corpus
from benchmarks.data.transcripts import JsonMessage, generate

COUNT = 3000


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """A part of the standard library, so that the tests look at few files."""
    installed = Corpus.installed()
    return Corpus([file for file in installed.files if "/" not in file.name][:150])


def made(corpus: Corpus, repetitive: bool, count: int = COUNT, seed: int = 1) -> list[JsonMessage]:
    return list(generate(count, seed=seed, repetitive=repetitive, corpus=corpus))


def copied_share(messages: Iterable[JsonMessage]) -> float:
    """Return the share of bytes in tool results that are an exact copy of an earlier one."""
    seen: set[str] = set()
    copied = total = 0
    for message in messages:
        total += len(datasets.json_line(message))
        for block in message["content"]:
            if block["type"] == "tool_result":
                copied += len(block["content"]) if block["content"] in seen else 0
                seen.add(block["content"])
    return copied / total


def test_the_same_seed_gives_the_same_messages(corpus: Corpus) -> None:
    assert made(corpus, True, 400) == made(corpus, True, 400)
    assert made(corpus, True, 400, seed=2) != made(corpus, True, 400)


def test_a_short_transcript_begins_a_long_one(corpus: Corpus) -> None:
    assert made(corpus, False, 400) == made(corpus, False, 900)[:400]


@pytest.mark.parametrize("repetitive", [True, False])
def test_sizes_are_those_of_real_sessions(corpus: Corpus, repetitive: bool) -> None:
    sizes = [len(datasets.json_line(message)) for message in made(corpus, repetitive)]
    assert len(sizes) == COUNT
    tenths = statistics.quantiles(sizes, n=10)
    assert 2_300 < statistics.mean(sizes) < 4_500
    assert 1_000 < tenths[4] < 2_300
    assert 5_000 < tenths[8] < 12_000


def test_one_variant_repeats_itself_and_the_other_hardly(corpus: Corpus) -> None:
    assert 0.10 < copied_share(made(corpus, True)) < 0.25
    assert copied_share(made(corpus, False)) < 0.01


def test_calls_and_results_are_paired_and_ids_are_unique(corpus: Corpus) -> None:
    messages = made(corpus, True, 1000)
    assert len({message["id"] for message in messages}) == 1000
    calls: set[str] = set()
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                calls.add(block["id"])
            if block["type"] == "tool_result":
                assert block["tool_use_id"] in calls


def test_every_message_is_one_for_trace(corpus: Corpus) -> None:
    roles = {datasets.as_message(message).role for message in made(corpus, True, 200)}
    assert roles == {"user", "assistant"}


def test_a_file_is_made_once_and_read_back(corpus: Corpus, tmp_path: Path) -> None:
    path = datasets.transcript(tmp_path, 300, corpus=corpus)
    before = path.stat().st_mtime_ns
    assert datasets.transcript(tmp_path, 300, corpus=corpus) == path
    assert path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [path]
    assert list(datasets.messages(path)) == made(corpus, True, 300)
    assert list(datasets.messages(path, 7)) == made(corpus, True, 7)


def test_no_source_files_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no source files"):
        list(generate(1, corpus=Corpus([])))


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
    path = datasets.real_transcript(tmp_path / "work", [str(source)])
    (message,) = datasets.messages(path)
    assert datasets.as_message(message).text == "Where is the bug?"
    assert not set(message) & set(datasets.PLACE_FIELDS)


def test_all_files_come_before_any_comes_again(corpus: Corpus) -> None:
    names: list[str] = []
    for group in itertools.islice(corpus.groups(random.Random(1)), 30):
        names += [file.name for file in group.files]
        if len(names) >= len(corpus.files):
            break
    assert sorted(names) == sorted(file.name for file in corpus.files)
