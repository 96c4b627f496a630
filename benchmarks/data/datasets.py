"""Data sets as files of JSON lines, made once and kept in the work folder; and real transcripts given by path.

Rule: a file is complete or not there. Its name says what it was made from, so that nothing stale is ever read.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data.sources import Corpus
from benchmarks.data.transcripts import JsonMessage, generate
from trace_store.context.parsing import message_from_chat
from trace_store.context.render import Options, Repairs
from trace_store.context.render.lossless import parse_message, render_lossless
from trace_store.exporters.session import read_session
from trace_store.importers import import_paths
from trace_store.objects.message import Message
from trace_store.refs import BRANCHES
from trace_store.repo import Repo

GENERATOR_VERSION = 1
"""Raised when the generator changes what it makes, so that kept files are made anew."""

PLACE_FIELDS = ("address", "ghost", "labels", "priority")
"""What Trace's JSON form tells of a message's place in a context; the message itself is the rest."""


def json_line(message: JsonMessage) -> bytes:
    """Return a message as one line of compact JSON."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"


def transcript(
    folder: Path,
    count: int,
    *,
    repetitive: bool = True,
    seed: int = 1,
    corpus: Corpus | None = None,
) -> Path:
    """Return a file of `count` generated messages, one JSON object a line; it is made when it is not there.

    Raises:
        ValueError: no source files were found.
    """
    corpus = corpus or Corpus.installed()
    variant = "repetitive" if repetitive else "fresh"
    name = f"{variant}-{count}-seed{seed}-v{GENERATOR_VERSION}-{corpus.fingerprint}.jsonl"
    path = folder / name
    if not path.exists():
        messages = generate(count, seed=seed, repetitive=repetitive, corpus=corpus)
        _write(path, map(json_line, messages))
    return path


def messages(path: Path, count: int | None = None) -> Iterator[JsonMessage]:
    """Yield the first `count` messages of a file of JSON lines, or all."""
    with path.open("rb") as file:
        yield from map(json.loads, itertools.islice(file, count))


def real_messages(paths: Sequence[str]) -> Iterator[JsonMessage]:
    """Yield the messages of real transcripts in Trace's own JSON form, session by session, hidden ones too.

    Raises:
        UnreadableInputError: a named file is not there, or of no known format.
    """
    with Repo.memory() as repo:
        import_paths(repo.store, paths)
        for ref, _ in list(repo.store.refs.iterate(BRANCHES)):
            shown = [t.message for t in read_session(repo.store, ref, hidden=True).turns]
            document = render_lossless(shown, [], Options(), Repairs(shown))
            for message in document["messages"]:
                yield {name: message[name] for name in message if name not in PLACE_FIELDS}


def real_transcript(folder: Path, paths: Sequence[str]) -> Path:
    """Return a file of the messages of real transcripts, made anew each time; errors as `real_messages`."""
    path = folder / "real.jsonl"
    _write(path, map(json_line, real_messages(paths)))
    return path


def as_message(message: JsonMessage) -> Message:
    """Return a message of any data set as Trace takes it."""
    if "parts" in message:
        return parse_message(message, "a message of a transcript")
    return message_from_chat(message, "a generated message")


def _write(path: Path, lines: Iterator[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        file.writelines(lines)
    unfinished.replace(path)
