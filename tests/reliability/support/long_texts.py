"""Hostile text that repeats: whatever reads, scans, escapes or writes it takes time in proportion to its length.

    python -m tests.reliability.support.long_texts                  a table: seconds at 1 MB and at 10 MB
    python -m tests.reliability.support.long_texts --megabytes 50 secrets tokens

The suite counts steps of short texts instead, which no other process changes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

from tests.secrets.support.redaction import redacted
from tests.secrets.test_engine import SCANNER
from trace_cli.render.escape import bounded, guarded, one_line, safe
from trace_cli.render.tables import fit
from trace_store.base.environment import Environment
from trace_store.context.compiler import ContextCompiler
from trace_store.context.tokens.tokenizer import get_tokenizer
from trace_store.errors import TraceError
from trace_store.exporters.registry import writer_named
from trace_store.exporters.session import read_session
from trace_store.history.text_diff import word_diff
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import BUILT_IN, format_of
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.objects.codec import encode_text
from trace_store.providers.documents import parse_messages
from trace_store.providers.rendering import render
from trace_store.repo.repository import Repo
from trace_store.store.store import Store
from trace_store.writer import Writer

MEGABYTE = 1_000_000
CORPUS = Path(__file__).parents[2] / "fuzzing" / "corpus"
FACTOR = 3.0
"""So many times more than in proportion a text may take: memory is slower than caches, and others interfere."""
SHORT_SECONDS = 0.3
"""What takes no longer is not judged."""

# Prefixes of patterns, escaped characters, nesting, and separators.
PIECES = (
    *("A", "a=", "password=", "eyJ", "://a:", "-----BEGIN RSA PRIVATE KEY-----", "\\", "sk-"),
    *(" ", "\n", "a\n", "\t", "\x1b[31m", "\x1b", "\u202e", "é", "日", "0", "'", '"', "''"),
    *("`", "```\n", "# ", "- ", "> ", "<", "&", "[](", "*", "**a", "_", "|", "$", "!["),
    *("<<<<<<< ", "data:image/png;base64,", "[redacted:a:", "<|endoftext|>", "</p>", "http://"),
)
QUICK = ("secrets", "terminal", "commit", "store")
"""Beginnings of the names of readers that take a second or three for 10 MB."""
STRUCTURE = (
    "[",
    "{",
    '{"a":',
    '[{"a":[',
    '"',
    '\\"',
    ",",
    "}",
    "1",
    "-",
    "INSERT INTO part VALUES(",
    "(",
)
_TEXT = re.compile(
    rb'("(?:text|content|output|thought|message)"\s*:\s*)"((?:[^"\\]|\\.)*)"', re.DOTALL
)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the user's keys, which goes with the process."""
    return tempfile.TemporaryDirectory(prefix="trace-long-texts-")


def _guarded_import(data: bytes, name: str) -> None:
    store = Store.memory()
    writer = Writer(store, environment=Environment(data_dir=_folder().name))
    import_paths(writer, ["-"], format=name, stdin=io.BytesIO(data))


@cache
def samples() -> dict[str, bytes]:
    """Return a transcript of each format with a replaceable text."""
    found: dict[str, bytes] = {}
    for path in sorted(CORPUS.glob("import-*/seed-*")):
        data = path.read_bytes()
        named = path.parent.name.removeprefix("import-")
        format_ = format_of(data[:HEAD_BYTES])
        name = named if format_ is None else format_.NAME
        if _TEXT.search(data) and not data.startswith(b"SQLite"):
            found.setdefault(name, data)
    return found


def _spelled(text: str) -> bytes:
    return json.dumps(text).encode()


def _import_text(name: str, text: str) -> None:
    """Import a transcript that contains the text."""
    data = samples()[name]
    found = _TEXT.search(data)
    assert found is not None
    _guarded_import(data[: found.end(1)] + _spelled(text) + data[found.end() :], name)


def _import_raw(name: str, text: str) -> None:
    """Import the text itself, as if it were a transcript."""
    _guarded_import(text.encode("utf-8", "surrogatepass"), name)


@lru_cache(maxsize=1)
def _said(text: str) -> Repo:
    repo = Repo(Store.memory(), author="a", environment=Environment(), secrets="off")
    repo.append("user", text)
    return repo


def _written(form: str, text: str) -> None:
    writer_named(form).write(read_session(_said(text).store, "HEAD")).to_bytes()


def _rendered(form: str, text: str) -> None:
    render(form, ContextCompiler(_said(text).store).compile("HEAD").messages)


def _diffed(text: str) -> None:
    """Compare the text with others of its length: without spaces, and with another word after each second line."""
    half = len(text) // 2
    word_diff(text, text[half:] + "x" + text[:half])
    one = [f"x{n}\n" if n % 2 else f"{text[n : n + 9]}{n % 97}\n" for n in range(0, len(text), 10)]
    other = [
        f"z{n}\n" if n % 2 else f"{text[n : n + 9]}{n % 97}\n" for n in range(0, len(text), 10)
    ]
    word_diff("".join(one), "".join(other))
    word_diff(" ".join(one), " ".join(other).replace("\n", "\t"))


READERS: dict[str, Callable[[str], object]] = {
    "secrets: redact": lambda text: redacted(SCANNER, text),
    "terminal: safe": safe,
    "terminal: gate": guarded,
    "terminal: one line": one_line,
    "terminal: bytes": lambda text: bounded(text.encode("utf-8", "surrogatepass")),
    "terminal: fit": lambda text: fit(text, 40),
    "commit: parse": lambda text: parse_messages(
        f'[{{"role":"user","content":{_spelled(text).decode()}}}]'
    ),
    "commit: append": _said,
    "tokens: count": lambda text: get_tokenizer("o200k_base").count(text),
    "store: encode": encode_text,
    "diff: words": _diffed,
    **{f"export: {form}": partial(_written, form) for form in ("html", "markdown", "codex")},
    **{f"render: {form}": partial(_rendered, form) for form in ("openai", "anthropic", "text")},
    **{f"import: {name}": partial(_import_text, name) for name in samples()},
}
RAW_READERS: dict[str, Callable[[str], object]] = {
    f"import raw: {own.NAME}": partial(_import_raw, own.NAME) for own in BUILT_IN
}


def long_text(piece: str, size: int) -> str:
    """Return a text of a piece again and again."""
    return piece * (size // len(piece) + 1)


def readers() -> Iterator[tuple[str, Callable[[str], object], tuple[str, ...]]]:
    """Yield each reader with its name, and the pieces of the texts that it is given.

    Those that take long share much, so each of them gets a third of the pieces, another one than the next.
    """
    given: list[tuple[str, Callable[[str], object], tuple[str, ...]]]
    given = [(name, read, PIECES) for name, read in READERS.items()]
    given += [(name, read, (*STRUCTURE, *PIECES[:8])) for name, read in RAW_READERS.items()]
    for number, (name, read, pieces) in enumerate(given):
        yield name, read, pieces if name.startswith(QUICK) else pieces[number % 3 :: 3]


def attempt(read: Callable[[str], object], text: str) -> None:
    """Run a reader; a documented error counts as reading."""
    with contextlib.suppress(TraceError):
        read(text)


def steps(run: Callable[[], object]) -> int:
    """Return how many lines of Python run, and how many functions are called, while something is done."""
    count = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return line

    def call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(call)
    sys.settrace(line)
    try:
        run()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


def _seconds(read: Callable[[str], object], text: str) -> float:
    _said.cache_clear()
    start = time.process_time()
    attempt(read, text)
    return time.process_time() - start


def main() -> int:
    """Print each reader's slowest text; return 1 if one is slower than linear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="*", help="readers whose names begin so")
    parser.add_argument("--megabytes", type=int, default=10)
    options = parser.parse_args()
    print(f"{'reader':28} {'texts':>5} {'1 MB':>7} {options.megabytes:>4} MB  slowest    steepest")
    bad = 0
    for name, read, pieces in readers():
        if options.only and not name.startswith(tuple(options.only)):
            continue
        attempt(read, long_text("warm ", 1000))
        rows = []
        for piece in pieces:
            small = _seconds(read, long_text(piece, MEGABYTE))
            large = _seconds(read, long_text(piece, options.megabytes * MEGABYTE))
            rows.append((large, small, large / max(small, 0.01) / options.megabytes, piece))
        slowest, steepest = max(rows), max(rows, key=lambda row: row[2])
        large, small, _, piece = slowest
        print(
            f"{name:28} {len(rows):>5} {small:7.2f} {large:7.2f}  {piece[:9]!r:11}"
            f"{steepest[2]:.1f} {steepest[3][:9]!r}",
            flush=True,
        )
        bad += sum(
            large > SHORT_SECONDS * options.megabytes and ratio > FACTOR
            for large, _, ratio, _ in rows
        )
    print(f"{bad} texts took more than in proportion")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
