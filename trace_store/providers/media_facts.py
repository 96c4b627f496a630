"""Facts from the first bytes of images, documents and audio: type, size, pages.

Invariant: pure functions of bytes. Only headers are read; nothing is decoded.

    PNG    w3.org/TR/png-3, 5.2 and 11.2.1        GIF    w3.org/Graphics/GIF/spec-gif89a.txt, 17 and 18
    JPEG   ITU-T T.81, B.1.1.3 and B.2.2          WebP   RFC 9649, 2.3 to 2.7
    PDF    ISO 32000-1, 7.5.2 and 7.7.3.3         WAV    RIFF, `fmt ` chunk: bytes a second
"""

from __future__ import annotations

from math import ceil

from trace_store.base.frozen import value

MANY_IMAGES = 20
"""With more images in a request, Anthropic's size limit is far lower."""
ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
"""Synonyms of media types."""
_PAGES = rb"/Type\s*/Page(?![A-Za-z])"
_COUNT = rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d{1,6})|/Count\s+(\d{1,6})[^>]*?/Type\s*/Pages\b"
_ENCRYPTED = rb"/Encrypt(?:\s+\d+\s+\d+\s+R\b|\s*<<)"
"""In the trailer, or in a cross-reference stream: ISO 32000-1, table 15."""
_BYTES_A_PAGE = 50_000
"""Used if pages are in compressed streams and their number is not given."""


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


def page_count(data: bytes) -> int:
    """Return the approximate number of pages of a PDF, at least one."""
    import re  # slow to load, and seldom needed

    counts = [int(first or second) for first, second in re.findall(_COUNT, data)]
    counts.append(len(re.findall(_PAGES, data)))
    return max(counts) or max(1, len(data) // _BYTES_A_PAGE)


def is_locked_pdf(data: bytes) -> bool:
    """Return True if a PDF is encrypted, which providers refuse even without a password."""
    if not data.startswith(b"%PDF-") or b"/Encrypt" not in data:
        return False
    import re  # slow to load, and seldom needed

    return re.search(_ENCRYPTED, data) is not None


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
