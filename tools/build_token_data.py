"""Write the shipped token data from OpenAI's official rank files.

    python tools/build_token_data.py RANKS_DIR            write trace_store/context/tokens/data/*.zst
    python tools/build_token_data.py RANKS_DIR --check    compare with what is there, write nothing

RANKS_DIR holds o200k_base.tiktoken and cl100k_base.tiktoken as OpenAI publishes them. Each is checked
against its official SHA-256 before anything is written, and the data must give back the same file.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
from pathlib import Path

import msgpack

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from trace_store.context.tokens.tokenizer import (  # noqa: E402
    ENCODINGS,
    data_name,
    load_zstd,
    unpack_tokens,
)

PACKAGE_DIR = ROOT / "trace_store" / "context" / "tokens"
COMPRESSION_LEVEL = 22


def read_official(ranks_dir: Path, encoding: str) -> list[bytes]:
    """Return the tokens of an official rank file, its hash checked."""
    path = ranks_dir / f"{encoding}.tiktoken"
    text = path.read_bytes()
    found, expected = hashlib.sha256(text).hexdigest(), ENCODINGS[encoding].ranks_sha256
    if found != expected:
        sys.exit(f"{path}: SHA-256 is {found}, the official file has {expected}")
    tokens = [base64.b64decode(line.partition(b" ")[0]) for line in text.splitlines()]
    if format_ranks(tokens) != text:
        sys.exit(f"{path}: cannot be written back as it is")
    return tokens


def format_ranks(tokens: list[bytes]) -> bytes:
    """Return a `.tiktoken` file: lines of base64, space and rank."""
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    return b"".join(lines)


def pack_tokens(tokens: list[bytes]) -> bytes:
    """Return the content of a data file. Equal tokens give equal bytes under one version of zstd."""
    zstd = load_zstd()
    options = {
        zstd.CompressionParameter.compression_level: COMPRESSION_LEVEL,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    packed: bytes = zstd.compress(msgpack.packb(tokens), options=options)
    return packed


def main() -> None:
    """Build or check the data of every encoding."""
    parser = argparse.ArgumentParser(description="Write the shipped token data.")
    parser.add_argument("ranks_dir", type=Path, metavar="RANKS_DIR")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    arguments = parser.parse_args()
    for encoding in ENCODINGS:
        tokens = read_official(arguments.ranks_dir, encoding)
        path = PACKAGE_DIR / data_name(encoding)
        if arguments.check:
            # Another version of zstd may compress differently; only the decompressed data counts.
            if unpack_tokens(path.read_bytes()) != tokens:
                sys.exit(f"{path}: does not hold the official ranks")
        else:
            data = pack_tokens(tokens)
            if unpack_tokens(data) != tokens:
                sys.exit(f"{encoding}: the packed data do not give the ranks back")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        print(f"{encoding}: {len(tokens)} tokens, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
