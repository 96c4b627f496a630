"""Facts from the first bytes of images, documents and audio: type, size, tokens.

Invariant: pure functions of bytes. Only headers are read; nothing is decoded.

    PNG    w3.org/TR/png-3, 5.2 and 11.2.1        GIF    w3.org/Graphics/GIF/spec-gif89a.txt, 17 and 18
    JPEG   ITU-T T.81, B.1.1.3 and B.2.2          WebP   RFC 9649, 2.3 to 2.7
    PDF    ISO 32000-1, 7.5.2 and 7.7.3.3         WAV    RIFF, `fmt ` chunk: bytes a second
"""

from __future__ import annotations

import binascii
from math import ceil

from trace_store.frozen import value

MANY_IMAGES = 20
"""With more images in a request, Anthropic's size limit is far lower."""
ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
"""Synonyms of media types."""
_PIXELS_A_TOKEN = 750
_MOST_PIXELS = 1_200_000
"""Anthropic shrinks images to about 1,600 tokens: its page on vision, as below."""
PAGE_TOKENS = 2_250
"""A page of a PDF takes 1,500 to 3,000: docs.claude.com/en/docs/build-with-claude/pdf-support."""
SECOND_TOKENS = 32
"""Of audio: ai.google.dev/gemini-api/docs/audio."""
_BYTES_A_SECOND = 16_000
"""Bytes per second of compressed speech, if the header has no rate."""
_UNKNOWN_TOKENS = 1_500
_PAGES = rb"/Type\s*/Page(?![A-Za-z])"
_COUNT = rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d{1,6})|/Count\s+(\d{1,6})[^>]*?/Type\s*/Pages\b"
_BYTES_A_PAGE = 50_000
"""Used if pages are in compressed streams and their number is not given."""
_LONGEST_WORD = 1_000
_LONG_BASE64 = r"[A-Za-z0-9+/_-]{1000,}={0,2}"


@value
class ImageFacts:
    """Facts about an image.

    Attributes:
        media_type: by its first bytes.
        width, height: in pixels; 0 if not in the header.
        whole: whether it has its end.
    """

    media_type: str
    width: int = 0
    height: int = 0
    whole: bool = True


@value
class ImageLimits:
    """A provider's limits for images.

    Attributes:
        side: pixels of its longer side; 0 for any.
        encoded_bytes: bytes of its base64; 0 for any.
    """

    side: int = 0
    encoded_bytes: int = 0


ANY_IMAGE = ImageLimits()
ANTHROPIC_IMAGES = ImageLimits(8_000, 5 << 20)
ANTHROPIC_MANY_IMAGES = ImageLimits(2_000, 5 << 20)
"""platform.claude.com/docs/en/build-with-claude/vision, "General limits"."""
OPENAI_IMAGES = ImageLimits(0, 50 << 20)
"""platform.openai.com/docs/guides/images-vision: bytes per request."""
GEMINI_IMAGES = ImageLimits(0, 20 << 20)
"""ai.google.dev/gemini-api/docs/image-understanding: bytes per request with inline images."""


def image_facts(data: bytes) -> ImageFacts | None:
    """Return the facts of an image; None for an unknown type or a missing header."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        if data[12:16] != b"IHDR" or len(data) < 33:
            return None
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        return ImageFacts("image/png", width, height, b"IEND" in data[-64:])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) > 13:
        width, height = (int.from_bytes(data[at : at + 2], "little") for at in (6, 8))
        return ImageFacts("image/gif", width, height, data.rstrip(b"\0").endswith(b";"))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        size = int.from_bytes(data[4:8], "little") + 8
        return ImageFacts("image/webp", *_webp_size(data), len(data) >= size)
    if data.startswith(b"\xff\xd8\xff"):
        width, height = _jpeg_size(data)
        # Decoders need no end marker, but they need a scan.
        return ImageFacts("image/jpeg", width, height, bool(width) and b"\xff\xda" in data)
    if data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"mif1", b"heif", b"msf1"):
        return ImageFacts("image/heic" if data[8:11] == b"hei" else "image/heif")
    return None


def image_fault(media_type: str, data: bytes, most: ImageLimits = ANY_IMAGE) -> str:
    """Return the fault of an image; "" if a provider accepts it.

    Args:
        media_type: its declared media type.
        data: its bytes.
        most: the provider's limits.
    """
    facts = image_facts(data)
    if not data:
        return "an image has no data"
    if facts is None:
        return "not an image, or of a type that no model accepts"
    if not facts.whole:
        return f"an image ({facts.media_type}) is cut off"
    side = max(facts.width, facts.height)
    if most.side and side > most.side:
        return f"an image is {facts.width:,} by {facts.height:,} pixels; the limit is {most.side:,}"
    if most.encoded_bytes and ceil(len(data) / 3) * 4 > most.encoded_bytes:
        return f"an image has {len(data):,} bytes; the limit is {most.encoded_bytes:,} of base64"
    declared = ALIASES.get(media_type.lower(), media_type.lower())
    if declared != facts.media_type:
        return f"an image is declared as {media_type[:40]!r} but is {facts.media_type}"
    return ""


def image_tokens(data: bytes) -> int:
    """Return the approximate tokens of an image, by its pixels; a guess if unknown."""
    facts = image_facts(data)
    if facts is None or not (facts.width and facts.height):
        return _UNKNOWN_TOKENS
    return max(1, ceil(min(facts.width * facts.height, _MOST_PIXELS) / _PIXELS_A_TOKEN))


def media_tokens(data: bytes) -> int:
    """Return the approximate tokens of an image, document or audio."""
    if data.startswith(b"%PDF-"):
        return page_count(data) * PAGE_TOKENS
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        rate = int.from_bytes(data[28:32], "little") or _BYTES_A_SECOND
        return ceil(len(data) / rate * SECOND_TOKENS)
    if data.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"OggS", b"fLaC")):
        return ceil(len(data) / _BYTES_A_SECOND * SECOND_TOKENS)
    return min(image_tokens(data), ceil(len(data) / 4))


def page_count(data: bytes) -> int:
    """Return the approximate number of pages of a PDF, at least one."""
    import re  # slow to load, and seldom needed

    counts = [int(first or second) for first, second in re.findall(_COUNT, data)]
    counts.append(len(re.findall(_PAGES, data)))
    return max(counts) or max(1, len(data) // _BYTES_A_PAGE)


def without_base64(text: str) -> tuple[str, int]:
    """Return a text without its long base64 runs, and the approximate tokens of these."""
    if len(text) < _LONGEST_WORD:
        return text, 0
    import re  # slow to load, and seldom needed

    tokens = 0

    def weigh(match: re.Match[str]) -> str:
        nonlocal tokens
        data = _decoded(match[0])
        tokens += media_tokens(data) if data is not None else 0
        return ""

    kept = re.sub(_LONG_BASE64, weigh, text)
    return kept, tokens


def _decoded(text: str) -> bytes | None:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(body[: len(body) // 4 * 4])
    except ValueError:
        return None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return width and height from the first frame header, or zeros."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = (int.from_bytes(data[n : n + 2], "big") for n in (at + 5, at + 7))
            return width, height
        if length < 2:
            break
        at += 2 + length
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return tuple(int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))  # type: ignore[return-value]
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return tuple(int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28))  # type: ignore[return-value]
    return 0, 0
