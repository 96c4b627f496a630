"""Zstandard, with the bounds that bytes from a stranger need.

Rule: what is decompressed is never larger than was declared, nor its window larger than a bound, and the compressed
bytes end exactly where the frame does. The format is https://datatracker.ietf.org/doc/html/rfc8878.
"""

from __future__ import annotations

import sys

from trace_store.errors import CorruptObjectError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAXIMUM_WINDOW_LOG = 25  # 32 MiB
_MINIMUM_PREFIX_BYTES = 8


def deflate(data: bytes, *, level: int, prefix: bytes = b"") -> bytes:
    """Return the data as one zstd frame with a checksum; `prefix` is content that the reader will have at hand."""
    zstd = _library()
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    if len(prefix) >= _MINIMUM_PREFIX_BYTES:
        # The window reaches back over the whole prefix.
        window_log = (len(prefix) + len(data)).bit_length()
        options[zstd.CompressionParameter.window_log] = min(max(window_log, 10), MAXIMUM_WINDOW_LOG)
    compressed: bytes = zstd.compress(data, options=options, zstd_dict=_dictionary(zstd, prefix))
    return compressed


def inflate(data: bytes, size: int, *, prefix: bytes = b"") -> bytes:
    """Return the `size` bytes that one zstd frame holds.

    Raises:
        CorruptObjectError: it holds another number of bytes, is damaged, or is followed by something.
    """
    zstd = _library()
    options = {zstd.DecompressionParameter.window_log_max: MAXIMUM_WINDOW_LOG}
    try:
        if zstd.get_frame_info(data).decompressed_size != size:
            raise CorruptObjectError("compressed data declares another size")
        machine = zstd.ZstdDecompressor(zstd_dict=_dictionary(zstd, prefix), options=options)
        content: bytes = machine.decompress(data, max_length=size + 1)
    except (zstd.ZstdError, ValueError, MemoryError) as error:
        raise CorruptObjectError(f"compressed data is damaged: {error}") from error
    if len(content) != size or not machine.eof or machine.unused_data:
        raise CorruptObjectError("compressed data has another length than declared")
    return content


def _dictionary(zstd: Any, prefix: bytes) -> Any:
    if len(prefix) < _MINIMUM_PREFIX_BYTES:
        return None
    return zstd.ZstdDict(prefix, is_raw=True).as_prefix


def _library() -> Any:
    # Imported on first use: a command that meets nothing compressed need not pay for it.
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
