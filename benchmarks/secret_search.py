"""The search for secrets in the first texts of a process, and appends with it beside SQLite.

    python -m benchmarks.secret_search
    python -m benchmarks.secret_search --real FOLDER --rounds 9

The texts are those of generated messages, or of real transcripts. Each figure is of a new process: RE2 alone, RE2 after
Hyperscan, and for appends no search, and a content-addressed SQLite. The processes of a round run one after another,
and figures are medians of all rounds, in microseconds of processor time. Appends are not synced, unless `--durable`;
the store is empty at first. Loading the engine counts with the first texts of an append.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import transcripts
from benchmarks.model import Turn
from benchmarks.peers.sqlite import Addressed
from benchmarks.peers.trace import as_message
from benchmarks.real import real_turns
from benchmarks.sources import Corpus
from trace_store import Environment, Repo
from trace_store.secrets.engine import Scanner

SPANS = ((0, 500), (500, 1000), (1000, 3000))
SEARCHES = ("re2", "hyperscan")
APPENDS = (*SEARCHES, "no search", "sqlite")
SEED = 1


def turns_of(variant: str, real: str) -> list[Turn]:
    """Return the messages of a variant, or the real ones."""
    endless = real_turns([real]) if variant == "real" else generated(variant)
    return list(islice(endless, SPANS[-1][1]))


def generated(variant: str) -> Iterator[Turn]:
    """Return generated messages."""
    return transcripts.turns(variant, SEED, Corpus.installed())


def texts_of(turns: list[Turn]) -> list[bytes]:
    """Return the texts of messages as they are searched."""
    texts = (
        part.get("text") or part.get("content") or part.get("arguments")
        for turn in turns
        for part in turn["content"]
    )
    return [text.encode("utf-8", "surrogatepass") for text in texts if text]


def spans(given: list[Any], act: Callable[[Any], object]) -> dict[str, float]:
    """Return the microseconds of processor time for each span of calls."""
    found = {}
    for start, end in SPANS:
        part = given[start:end]
        began = time.process_time()
        for each in part:
            act(each)
        if part:
            found[f"{start} to {end}"] = (time.process_time() - began) / len(part) * 1e6
    return found


def search(kind: str, turns: list[Turn], cache: str) -> dict[str, float]:
    """Measure the search in texts."""
    texts = texts_of(turns)
    began = time.process_time()
    folder = Environment(cache_dir=cache if kind == "hyperscan" else "").cache_folder()
    scanner = Scanner(cache=folder)
    loaded = {"loading": (time.process_time() - began) * 1e6}
    return loaded | spans(texts, scanner.find_bytes)


def append(kind: str, turns: list[Turn], cache: str, durable: bool) -> dict[str, float]:
    """Measure appends to an empty store."""
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        if kind == "sqlite":
            addressed = Addressed()
            addressed.build(Path(folder), [])
            writer = addressed.writer(Path(folder), "FULL" if durable else "NORMAL")
            return spans([[writer.prepare(turn)] for turn in turns], writer.append)
        environment = Environment(author="benchmark", cache_dir="" if kind == "re2" else cache)
        with Repo.init(
            Path(folder) / "repository",
            durability="durable" if durable else "fast",
            environment=environment,
            secrets="off" if kind == "no search" else "redact",
        ) as repo:
            return spans([[as_message(turn)] for turn in turns], repo.commit)


def measured(options: list[str]) -> dict[str, float]:
    """Run this module in a new process, and return what it measures."""
    command = [sys.executable, "-m", "benchmarks.secret_search", "--worker", *options]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def table(title: str, kinds: tuple[str, ...], rounds: int, options: list[str]) -> None:
    """Measure some kinds by turns, and print the medians."""
    results: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            results[kind].append(measured([kind, *options]))
    print(f"\n{title}")
    print(f"{'':16}" + "".join(f"{kind:>12}" for kind in kinds))
    for row in results[kinds[0]][0]:
        medians = [statistics.median(each[row] for each in results[kind]) for kind in kinds]
        print(f"{row:16}" + "".join(f"{median:12.1f}" for median in medians))


def main(given: list[str]) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secret_search", description=__doc__)
    parser.add_argument("--real", default="", help="a folder of transcripts to measure, too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--durable", action="store_true", help="sync each append")
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.worker:
        kind, job, variant, real, cache, durable = arguments.worker
        turns = turns_of(variant, real)
        searches = job == "search"
        found = (
            search(kind, turns, cache) if searches else append(kind, turns, cache, bool(durable))
        )
        print(json.dumps(found))
        return
    print(
        f"microseconds of processor time; {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}"
    )
    with tempfile.TemporaryDirectory() as cache:
        rest = [arguments.real, cache, "durable" if arguments.durable else ""]
        for variant in (*transcripts.VARIANTS, *(["real"] if arguments.real else [])):
            measured(["hyperscan", "append", variant, *rest])  # compiles the rules
            table(
                f"search, {variant}: a text", SEARCHES, arguments.rounds, ["search", variant, *rest]
            )
            table(
                f"append, {variant}: a message",
                APPENDS,
                arguments.rounds,
                ["append", variant, *rest],
            )


if __name__ == "__main__":
    main(sys.argv[1:])
