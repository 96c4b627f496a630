"""The shipped ranks: official, damaged, built."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.build_token_data import format_ranks, pack_tokens
from trace_store.context.tokens import tokenizer
from trace_store.context.tokens.tokenizer import (
    ENCODINGS,
    data_name,
    load_tokens,
    unpack_tokens,
)
from trace_store.errors import FormatError, StorageError

ROOT = Path(__file__).resolve().parents[2]
PACKAGE_DIR = ROOT / "trace_store" / "context" / "tokens"
SCRIPT = ROOT / "tools" / "build_token_data.py"
RANKS_DIR = os.environ.get("TRACE_TEST_RANKS")

# As tiktoken names them, written out once more: the table under test must not prove itself.
OFFICIAL_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


@pytest.mark.parametrize("name", OFFICIAL_SHA256)
def test_shipped_data_give_back_the_official_file(name: str) -> None:
    assert hashlib.sha256(format_ranks(load_tokens(name))).hexdigest() == OFFICIAL_SHA256[name]
    assert ENCODINGS[name].ranks_sha256 == OFFICIAL_SHA256[name]


def test_every_encoding_is_pinned_here() -> None:
    assert set(ENCODINGS) == set(OFFICIAL_SHA256)


def test_shipped_data_stay_small() -> None:
    sizes = [(PACKAGE_DIR / data_name(name)).stat().st_size for name in ENCODINGS]
    assert sum(sizes) < 1_400_000


def test_licence_notice_is_beside_the_data() -> None:
    notice = (PACKAGE_DIR / "data" / "LICENSE-tiktoken.txt").read_text(encoding="utf-8")
    assert "Copyright (c) 2022 OpenAI, Shantanu Jain" in notice
    assert "The above copyright notice and this permission notice shall be included" in notice
    assert all(Path(data_name(name)).name in notice for name in ENCODINGS)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=20))
def test_tokens_survive_packing(tokens: list[bytes]) -> None:
    assert unpack_tokens(pack_tokens(tokens)) == tokens
    assert pack_tokens(tokens) == pack_tokens(list(tokens))


@pytest.mark.parametrize("keep", [0, 3, 100, 400_000])
def test_cut_data_are_damaged(keep: int) -> None:
    data = (PACKAGE_DIR / data_name("cl100k_base")).read_bytes()
    with pytest.raises(FormatError, match="damaged"):
        unpack_tokens(data[:keep])


def test_one_flipped_bit_is_noticed() -> None:
    data = bytearray((PACKAGE_DIR / data_name("cl100k_base")).read_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(FormatError, match="damaged"):
        unpack_tokens(bytes(data))


def test_missing_data_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "data_name", lambda _: "data/absent.zst")
    with pytest.raises(StorageError, match="cannot read the ranks of o200k_base"):
        load_tokens("o200k_base")


def build(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )


def test_script_refuses_ranks_that_are_not_official(tmp_path: Path) -> None:
    (tmp_path / "o200k_base.tiktoken").write_bytes(b"YQ== 0\n")
    run = build(tmp_path)
    assert run.returncode == 1
    assert "the official file has 446a9538" in run.stderr


def test_script_finds_shipped_data_current(tmp_path: Path) -> None:
    """Files rebuilt from the shipped data replace missing official ones."""
    for name in ENCODINGS:
        (tmp_path / f"{name}.tiktoken").write_bytes(format_ranks(load_tokens(name)))
    run = build(RANKS_DIR or tmp_path, "--check")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("o200k_base: 199998 tokens, ")
