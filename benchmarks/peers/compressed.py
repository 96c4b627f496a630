"""JSON Lines compressed as a whole: the least room, and nothing can be read without all before it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.compact import PACKAGE, dumps
from benchmarks.model import Turn

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 9
WINDOW_BITS = 27


class Compressed:
    """One file."""

    store = "zstd"
    packages = ("backports.zstd", PACKAGE)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Write a line for each message, compressed with a window over much of the file."""
        options: dict[int, int] = {
            zstd.CompressionParameter.compression_level: LEVEL,
            zstd.CompressionParameter.window_log: WINDOW_BITS,
            zstd.CompressionParameter.enable_long_distance_matching: 1,
        }
        with zstd.open(folder / "messages.jsonl.zst", "wb", options=options) as file:
            for turn in turns:
                file.write(dumps(turn) + b"\n")
