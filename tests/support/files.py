"""Damage to files."""

from __future__ import annotations

from pathlib import Path


def flip(path: Path, at: int | None = None, bits: int = 1) -> bytes:
    """Change bits of one byte of a file, by default of the middle one; return the new content."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= bits
    path.chmod(0o644)
    path.write_bytes(data)
    return bytes(data)
