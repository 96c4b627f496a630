"""Counting: equal to tiktoken's own, without a network, and never raising."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import random
import socket
import string
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.support.transcripts import chosen_files
from tests.support.examples import examples
from trace_store.context.tokens.tokenizer import (
    ENCODINGS,
    HEURISTIC_ENCODING,
    PART_CHARACTERS,
    CallableTokenizer,
    TiktokenTokenizer,
    estimate_from_bytes,
    exact_parts,
    get_tokenizer,
    load_tokens,
)
from trace_store.errors import InvalidInputError, StateError

Counter = Callable[[str], int]

# It has no types.
openai_public: Any = importlib.import_module("tiktoken_ext.openai_public")

RANKS_DIR = os.environ.get("TRACE_TEST_RANKS")
TRANSCRIPTS_DIR = os.environ.get("TRACE_TEST_TRANSCRIPTS")

NASTY = [
    "",
    "<|endoftext|>",
    "a<|endoftext|>b<|fim_prefix|><|fim_middle|><|fim_suffix|><|endofprompt|>",
    "<|start|>assistant<|channel|>final<|message|>",
    "\ud83d",
    "\ude00",
    "\ud83d\ude00 a pair of lone surrogates",
    "x\udc80y\ud800",
    "\x00\x01\x7f",
    "\ufeffbyte order mark",
    "\r\n\r\n \t\n\u2028\u2029\x85\x0b\x0c\x1c",
    "日本語のテキスト、한국어 텍스트、العربية נוסח",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "e\u0301" * 50,
    "don't DON'T we'll WE'LL I'm I'M",
    "1234567890 " * 20,
    "    def f(self) -> None:\n\t\treturn\n\n\n",
    '{"a": [1, 2, {"b": "c"}]}',
    "https://example.org/a/b?c=d&e=f#g",
    base64.b64encode(bytes(range(256)) * 8).decode(),
    "///***---===___" * 30,
]


def official_ranks(name: str) -> dict[bytes, int]:
    """Return the ranks from the official file where it is at hand, else as shipped."""
    if RANKS_DIR is None:
        return {token: rank for rank, token in enumerate(load_tokens(name))}
    data = Path(RANKS_DIR, f"{name}.tiktoken").read_bytes()
    assert hashlib.sha256(data).hexdigest() == ENCODINGS[name].ranks_sha256
    pairs = (line.split() for line in data.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


@pytest.fixture(scope="module", params=list(ENCODINGS))
def name(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture(scope="module")
def official(name: str) -> Counter:
    """tiktoken's own definition of the encoding, its download replaced by the ranks at hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: official_ranks(name))
        definition = getattr(openai_public, name)()
    encoding = tiktoken.Encoding(**definition)
    return lambda text: len(encoding.encode(text, disallowed_special=()))


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was asked for")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def strings(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)


def transcript_texts() -> set[str]:
    """Return every distinct text of the chosen transcripts: in their JSON, and each file as a whole."""
    texts: set[str] = set()
    for path in chosen_files():
        whole = path.read_bytes().decode("utf-8", "replace")
        texts.add(whole)
        for document in (whole, *whole.split("\n")):
            try:
                texts.update(strings(json.loads(document)))
            except ValueError:
                texts.add(document)
    return texts


@pytest.mark.usefixtures("no_network")
@pytest.mark.skipif(TRANSCRIPTS_DIR is None, reason="TRACE_TEST_TRANSCRIPTS names no transcripts")
def test_every_text_of_the_transcripts_counts_as_in_tiktoken(
    name: str, official: Counter, record_property: Callable[[str, object], None]
) -> None:
    texts = transcript_texts()
    assert texts
    count = TiktokenTokenizer(name).count
    different = [text[:80] for text in texts if count(text) != official(text)]
    assert not different
    record_property("texts", len(texts))
    record_property("characters", sum(map(len, texts)))
    print(f"{name}: {len(texts)} texts, {sum(map(len, texts))} characters, all equal")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_text_counts_as_in_tiktoken(name: str, official: Counter, text: str) -> None:
    assert get_tokenizer(name).count(text) == official(text)


def test_c16_text_of_control_tokens_is_text(name: str) -> None:
    """C16: text with `<|endoftext|>` is counted, as text."""
    assert get_tokenizer(name).count("<|endoftext|>") > 1


def test_c16_first_count_needs_no_network_and_no_environment(tmp_path: Path) -> None:
    """C16: offline start, in a process of its own, with nowhere to put a download."""
    script = (
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith('socket.') or 'data-gym-cache' in str(arguments):\n"
        "        raise RuntimeError(event)\n"
        "sys.addaudithook(refuse)\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from trace_store.context.tokens.tokenizer import get_tokenizer\n"
        "print(get_tokenizer().count('hello world'), get_tokenizer('cl100k_base').count('hello'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", script],
        env={key: os.environ[key] for key in ("SYSTEMROOT",) if key in os.environ},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "2 1\n", run.stderr


def test_patterns_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
    definition = getattr(openai_public, name)()
    assert ENCODINGS[name].pattern == definition["pat_str"]
    assert ENCODINGS[name].special_tokens == definition["special_tokens"]


# --- parts --------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        *(
            "\n",
            "\n\n",
            "\r\n",
            " ",
            "  ",
            "\t",
            "a",
            "Z",
            "9",
            "é",
            "中",
            "'s",
            "'",
            "/",
            "-",
            "<|",
        ),
        *(
            "_",
            "\u0301",
            "\u00a0",
            "\u2028",
            "\ud83d",
            "\ude00",
            "word",
            "CamelCase",
            "123",
            "//\n",
        ),
    ]
)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(pieces, max_size=60).map("".join), size=st.integers(1, 20))
def test_counts_of_parts_add_up(official: Counter, text: str, size: int) -> None:
    parts = list(exact_parts(text, size))
    assert "".join(parts) == text
    assert all(parts) or parts == [""]
    assert sum(map(official, parts)) == official(text)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(), max_size=200))
def test_any_text_counts_as_in_tiktoken(name: str, official: Counter, text: str) -> None:
    assert get_tokenizer(name).count(text) == official(text)


def test_large_texts_are_counted_in_parts(name: str, official: Counter) -> None:
    chooser = random.Random(7)
    lines = ("".join(chooser.choices(string.printable, k=60)) for _ in range(8_000))
    text = "\n".join(lines)
    assert len(list(exact_parts(text))) > 3
    assert get_tokenizer(name).count(text) == official(text)


# --- texts that tiktoken cannot count -----------------------------------------------------------


@pytest.mark.parametrize("space", [" ", "\u3000"])
def test_endless_white_space_is_counted_in_slices(name: str, official: Counter, space: str) -> None:
    """tiktoken refuses runs of over a million before a letter, in both encodings."""
    text = "x\n\nx" + space * 1_200_000 + "x"
    if space == " ":
        with pytest.raises(ValueError, match="stack"):
            official(text)
    assert abs(get_tokenizer(name).count(text) - 4 * official(space * 300_000)) <= 40


def test_endless_letters_count_as_in_tiktoken(name: str, official: Counter) -> None:
    text = "a" * 1_000_000
    assert get_tokenizer(name).count(text) == official(text)


def test_a_panic_of_an_older_tiktoken_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def encode(text: str) -> list[int]:
        if len(text) > 10_000:
            raise PanicException
        return list(range(len(text)))

    tokenizer = TiktokenTokenizer("o200k_base")
    monkeypatch.setattr(tokenizer, "_encode", encode)
    assert tokenizer.count("x" * 300_000) == 300_000


def test_interruption_is_not_taken_for_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(_: str) -> list[int]:
        raise KeyboardInterrupt

    tokenizer = TiktokenTokenizer("o200k_base")
    monkeypatch.setattr(tokenizer, "_encode", encode)
    with pytest.raises(KeyboardInterrupt):
        tokenizer.count("x" * 300_000)


# --- which tokenizer ----------------------------------------------------------------------------


def test_a_tokenizer_is_made_once_and_loads_late(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    def load(encoding: str) -> Callable[[str], list[int]]:
        loads.append(encoding)
        return lambda text: [0] * len(text)

    monkeypatch.setattr("trace_store.context.tokens.tokenizer._tiktoken_encode", load)
    tokenizer = TiktokenTokenizer("o200k_base")
    assert not loads
    threads = [threading.Thread(target=tokenizer.count, args=("abc",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tokenizer.count("abc") == 3
    assert loads == ["o200k_base"]
    assert get_tokenizer("o200k_base") is get_tokenizer("o200k_base")


def test_default_encoding() -> None:
    assert get_tokenizer().encoding == "o200k_base"
    assert get_tokenizer().exact


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="unknown encoding 'p50k_base'"):
        get_tokenizer("p50k_base")


@pytest.fixture
def without_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    monkeypatch.setattr("trace_store.context.tokens.tokenizer._TOKENIZERS", {})


@pytest.mark.usefixtures("without_tiktoken")
def test_without_tiktoken_counts_are_estimates_and_say_so() -> None:
    tokenizer = get_tokenizer("o200k_base")
    assert not tokenizer.exact
    assert tokenizer.encoding == HEURISTIC_ENCODING
    assert [tokenizer.count(text) for text in ("", "a", "a" * 36, "é" * 36, "\ud83d")] == [
        *(0, 1, 10, 20, 1)
    ]


def test_heuristic_is_near_the_count(official: Counter) -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert 0.6 < estimate_from_bytes(len(text.encode())) / official(text) < 1.5


def test_a_broken_tiktoken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(StateError, match="cannot be imported"):
        TiktokenTokenizer("o200k_base").count("x")


def test_custom_tokenizer() -> None:
    tokenizer = CallableTokenizer("words", lambda text: len(text.split()))
    assert tokenizer.encoding == "words"
    assert not tokenizer.exact
    assert tokenizer.count("one two three") == 3


@pytest.mark.parametrize(
    "bad", ["", "o200k_base", "bytes-3.6", "A", "a/b", "../x", ".x", "x.", "nul", "con.1", "a" * 65]
)
def test_custom_tokenizer_needs_a_name_fit_for_a_file(bad: str) -> None:
    with pytest.raises(InvalidInputError, match="not a tokenizer name"):
        CallableTokenizer(bad, len)


@pytest.mark.parametrize("result", [-1, 1.5, None, True, "3"])
def test_custom_tokenizer_must_return_a_count(result: Any) -> None:
    with pytest.raises(InvalidInputError, match="not a number of tokens"):
        CallableTokenizer("mine", lambda _: result).count("x")


def test_part_size_is_worth_it() -> None:
    """Texts of ordinary size are not cut at all."""
    assert list(exact_parts("a\n" * (PART_CHARACTERS // 2))) == ["a\n" * (PART_CHARACTERS // 2)]
