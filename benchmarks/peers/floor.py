"""The raw floor: the cost of disk and system without encoding, hashing or lookup."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from benchmarks.model import Proof, Turn

NAME = "messages.jsonl"
BUFFER_BYTES = 1 << 20


class Floor:
    """A file of bytes."""

    store = "floor"
    packages = ()

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Write a line for each message."""
        with (folder / NAME).open("wb") as file:
            for turn in turns:
                file.write(_line(turn))

    def writer(self, folder: Path, mode: str) -> FloorWriter:
        """Open for appending; `mode` is "write", "fdatasync", or "flush" for one that writes a single byte."""
        return FloorWriter(folder / NAME, mode)

    def read(self, folder: Path) -> Proof:
        """Read the file into memory at once."""
        content = (folder / NAME).read_bytes()
        return lambda: told(content)

    def read_buffered(self, folder: Path) -> Proof:
        """Read the file a megabyte at a time, into the same memory."""
        buffer = bytearray(BUFFER_BYTES)
        total = 0
        with (folder / NAME).open("rb", buffering=0) as file:
            while got := file.readinto(buffer):
                total += got
        return lambda: None

    def pipe(self, folder: Path, sink: int) -> Proof:
        """Copy the file into a pipe, a megabyte at a time."""
        buffer = bytearray(BUFFER_BYTES)
        view = memoryview(buffer)
        total = 0
        with (folder / NAME).open("rb", buffering=0) as file:
            while got := file.readinto(buffer):
                write_all(sink, view[:got])
                total += got
        return lambda: None


class FloorWriter:
    """Bytes at the end of a file."""

    def __init__(self, path: Path, mode: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._path = path
        self._mode = mode

    def prepare(self, turn: Turn) -> bytes:
        return _line(turn)

    def append(self, messages: list[bytes]) -> None:
        os.write(self._fd, b"\n" if self._mode == "flush" else b"".join(messages))
        if self._mode != "write":
            os.fdatasync(self._fd)

    def count(self) -> int:
        with self._path.open("rb") as lines:
            return sum(1 for _ in lines)

    def close(self) -> None:
        os.close(self._fd)


def told(content: bytes) -> None:
    """Tell of no work, since bytes alone are no messages; but hold them until the clock has stopped."""


def write_all(sink: int, data: memoryview) -> None:
    """Write bytes to a pipe, which may take them in parts."""
    while data:
        data = data[os.write(sink, data) :]


def _line(turn: Turn) -> bytes:
    text = json.dumps(turn, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"
