"""Tokens of images, documents and recordings, by the rule of each provider.

Invariant: pure functions of sizes, pages and seconds, never of the length of base64. They are the provider's own
tokens, so no factor for text applies to them.

    Claude   pixels / 750, after shrinking to 1,568 pixels a side and 1,590 tokens; from version 4.7 on 2,576 pixels and
             4,784 tokens        platform.claude.com/docs/en/build-with-claude/vision
    OpenAI   a base, and as much for each tile of 512 pixels, after shrinking to 2,048 by 2,048 and a shorter side of
             768; small models: patches of 32 pixels, at most 1,536, times a factor
             platform.openai.com/docs/guides/images-vision, "Calculating costs"
    Gemini   258, or that for each tile if a side is longer than 384; from version 3 on at most 1,120 an image
             ai.google.dev/gemini-api/docs/tokens, .../media-resolution
"""

from __future__ import annotations

import binascii
from math import ceil

from trace_store import providers
from trace_store.base.frozen import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    ImageRule = Callable[[int, int], float]

_BYTES_A_SECOND = 16_000
"""Bytes per second of compressed speech, if the header has no rate."""
_UNKNOWN_SIDE = 1_000
"""An image of unknown size, such as one that is given by its address, counts as one with these sides."""
_LONGEST_WORD = 1_000
_LONG_BASE64 = r"[A-Za-z0-9+/_-]{1000,}={0,2}"


@value
class MediaRule:
    """How a model counts media.

    Attributes:
        name: the rule's name, which can be part of a file name.
        image: returns the tokens of an image, by width and height in pixels.
        page: tokens of a page of a document.
        second: tokens of a second of a recording.
    """

    name: str
    image: ImageRule
    page: int
    second: int

    def image_tokens(self, data: bytes | None = None) -> int:
        """Return the approximate tokens of an image, or of one of unknown size."""
        facts = providers.media_facts.image_facts(data) if data else None
        known = facts is not None and facts.width and facts.height
        sides = (facts.width, facts.height) if known and facts else (_UNKNOWN_SIDE, _UNKNOWN_SIDE)
        return max(1, ceil(self.image(*sides)))

    def media_tokens(self, data: bytes) -> int:
        """Return the approximate tokens of an image, document or recording."""
        if data.startswith(b"%PDF-"):
            return providers.media_facts.page_count(data) * self.page
        if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
            rate = int.from_bytes(data[28:32], "little") or _BYTES_A_SECOND
            return ceil(len(data) / rate * self.second)
        if data.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"OggS", b"fLaC")):
            return ceil(len(data) / _BYTES_A_SECOND * self.second)
        found = self.image_tokens(data)
        return found if providers.media_facts.image_facts(data) else min(found, ceil(len(data) / 4))

    def without_base64(self, text: str) -> tuple[str, int]:
        """Return a text without its long base64 runs, and the approximate tokens of these."""
        if len(text) < _LONGEST_WORD:
            return text, 0
        import re  # slow to load, and seldom needed

        tokens = 0

        def weigh(match: re.Match[str]) -> str:
            nonlocal tokens
            data = _decoded(match[0])
            tokens += self.media_tokens(data) if data is not None else 0
            return ""

        kept = re.sub(_LONG_BASE64, weigh, text)
        return kept, tokens


def _claude(side: int, most: int) -> ImageRule:
    def tokens(width: int, height: int) -> float:
        shrunk = min(1, side / max(width, height))
        return min(width * height * shrunk**2 / 750, most)

    return tokens


def _tiles(base: int, tile: int) -> ImageRule:
    def tokens(width: int, height: int) -> float:
        shrunk = min(1, 2_048 / max(width, height))
        shrunk = min(shrunk, 768 / min(width, height))
        across, down = (ceil(round(side * shrunk, 3) / 512) for side in (width, height))
        return base + tile * across * down

    return tokens


def _patches(factor: float) -> ImageRule:
    return lambda width, height: min(ceil(width / 32) * ceil(height / 32), 1_536) * factor


def _gemini_tiles(width: int, height: int) -> float:
    if max(width, height) <= 384:
        return 258
    side = min(max(min(width, height) // 1.5, 256), 768)
    return 258 * ceil(width / side) * ceil(height / side)


_OPENAI_PAGE = _CLAUDE_PAGE = 2_250
"""A page takes 1,500 to 3,000: docs.claude.com/en/docs/build-with-claude/pdf-support."""
CLAUDE = MediaRule("claude", _claude(1_568, 1_590), _CLAUDE_PAGE, 32)
CLAUDE_LARGE = MediaRule("claude-large", _claude(2_576, 4_784), _CLAUDE_PAGE, 32)
GEMINI = MediaRule("gemini", _gemini_tiles, 258, 32)
GEMINI_3 = MediaRule("gemini-3", lambda width, height: 1_120, 560, 32)
# By the start of a model's name, longer ones first.
_OPENAI_IMAGES = {
    "gpt-4o-mini": _tiles(2_833, 5_667),
    "gpt-4.1-mini": _patches(1.62),
    "gpt-4.1-nano": _patches(2.46),
    "gpt-5-mini": _patches(1.62),
    "gpt-5-nano": _patches(2.46),
    "o4-mini": _patches(1.72),
    "gpt-5": _tiles(70, 140),
    "o1": _tiles(75, 150),
    "o3": _tiles(75, 150),
    "": _tiles(85, 170),
}
OPENAI = {
    start: MediaRule(f"openai-{start}".rstrip("-").replace(".", ""), image, _OPENAI_PAGE, 10)
    for start, image in _OPENAI_IMAGES.items()
}
"""By the start of a model's name; "" is for all others."""
RULES = {each.name: each for each in (CLAUDE, CLAUDE_LARGE, GEMINI, GEMINI_3, *OPENAI.values())}


def openai_rule(name: str) -> MediaRule:
    """Return the rule of a model of OpenAI."""
    return next(rule for start, rule in OPENAI.items() if name.startswith(start))


def _decoded(text: str) -> bytes | None:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(body[: len(body) // 4 * 4])
    except ValueError:
        return None
