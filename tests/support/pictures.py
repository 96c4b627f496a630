"""Small pictures that are whole, as bytes."""

from __future__ import annotations

import base64
import struct
import zlib


def png(width: int = 1, height: int = 1) -> bytes:
    """Return a black picture of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" * (width + 1) for _ in range(height)), 9)
    end = chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + end


PNG = png()
PNG_TEXT = base64.b64encode(PNG).decode()
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    b"\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x01?\x10\xff\xd9"
)
