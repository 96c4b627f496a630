"""Files that are compressed, in another encoding than UTF-8, or printed over many lines, as plain lines in UTF-8.

Rule: the first bytes tell, never the name. What is decompressed is bounded.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import zlib
from collections.abc import Callable
from typing import Any

from trace_store.errors import UnreadableInputError

COMPRESSED = (".zst", ".gz")
"""Suffixes that are removed from a file's name."""
MAXIMUM_PLAIN_BYTES = 1 << 30
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1
_GZIP = b"\x1f\x8b"  # RFC 1952, 2.3.1
MAXIMUM_PRINTED_BYTES = 64 << 20
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\r?\n")
_OPENING_BYTES = 256
_WORD = re.compile(r"\S")
_decode = json.JSONDecoder().raw_decode
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16 does, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def plain_content(path: str, size: int, read_at: Callable[[int, int], bytes]) -> bytes | None:
    """Return what a file holds when it is compressed, not in UTF-8, or JSON values over many lines; None for any other.

    Args:
        path: of the file, for errors.
        size: its bytes.
        read_at: returns bytes, given an offset and a size.

    Raises:
        UnreadableInputError: it is damaged, cut short, or holds more than 1 GiB.
    """
    head = read_at(0, 4)
    if head == _ZSTD:
        zstd = _zstd()
        return _decompressed(zstd.ZstdDecompressor, zstd.ZstdError, read_at(0, size), path)
    if head.startswith(_GZIP):
        return _decompressed(_gzip, zlib.error, read_at(0, size), path)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return read_at(0, size).decode(encoding, "replace").encode("utf-8", "replace")
    if _OPENING.match(read_at(0, _OPENING_BYTES)) and size <= MAXIMUM_PRINTED_BYTES:
        return _one_a_line(read_at(0, size))
    return None


def _one_a_line(data: bytes) -> bytes | None:
    """Return JSON values that are printed over many lines with one a line; None when it is one document, or damaged.

    `jq .` prints the records of a transcript so.
    """
    try:
        text = data.decode("utf-8-sig")
        lines: list[str] = []
        at = _blanks(text, 0)
        while at < len(text):
            value, end = _decode(text, at)
            lines.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
            at = _blanks(text, end)
    except (ValueError, RecursionError):
        return None
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass") if len(lines) > 1 else None


def _blanks(text: str, at: int) -> int:
    found = _WORD.search(text, at)
    return len(text) if found is None else found.start()


def _gzip() -> Any:
    return zlib.decompressobj(_GZIP_WINDOW)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # slow to load, and seldom needed
    return zstd


def _decompressed(
    begin: Callable[[], Any], damage: type[Exception], data: bytes, path: str
) -> bytes:
    """Return the content of all frames, or members, of a compressed file."""
    pieces: list[bytes] = []
    left = MAXIMUM_PLAIN_BYTES
    while data:
        decompressor = begin()
        try:
            piece = decompressor.decompress(data, left + 1)
        except damage as error:
            raise UnreadableInputError(
                f"damaged, it cannot be decompressed: {path}", path=path
            ) from error
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise UnreadableInputError(f"it holds more than 1 GiB: {path}", path=path)
        if not decompressor.eof:
            raise UnreadableInputError(f"the end of it is missing: {path}", path=path)
        data = decompressor.unused_data
    return b"".join(pieces)
