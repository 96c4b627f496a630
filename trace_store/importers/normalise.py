"""What importers share in making stored values of what transcripts hold.

Rule: pure, and never fails: what cannot be stored as a name is left out, and what has no part of its own is opaque.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from trace_store.context.usage import normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.ident import check_author, parse_time
from trace_store.importers.json_records import compact
from trace_store.objects.content import bytes_of
from trace_store.objects.parts import Image, Opaque, Text

LONGEST_NAME_BYTES = 256
MAXIMUM_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""


@lru_cache(maxsize=256)
def author_of(agent: str, who: str) -> str:
    """Return the author of a commit: `codex/user`, `codex/<model>` or `codex`."""
    if not who:
        return agent
    try:
        return check_author(f"{agent}/{who}")
    except InvalidInputError:
        return agent


def storable_name(value: object) -> str:
    """Return a name or id as it may stand in a commit; empty when it may not."""
    if not isinstance(value, str):
        return ""
    try:
        if value.isascii():
            return value if len(value) <= LONGEST_NAME_BYTES else ""
        return value if len(value.encode()) <= LONGEST_NAME_BYTES else ""
    except UnicodeEncodeError:
        return ""


def usage_counts(usage: object, model: object = "") -> dict[str, int | str]:
    """Return a provider's usage in the form in which a commit holds it; nothing when it is of no known shape."""
    if not isinstance(usage, Mapping):
        return {}
    try:
        normal = normalise_usage(usage)
    except InvalidInputError:
        return {}
    # In the order in which they are stored.
    counts: dict[str, int | str] = {
        "cache_read": normal.cache_read,
        "cache_write": normal.cache_write,
        "input_total": normal.input_total,
    }
    name = storable_name(model)
    if name:
        counts["model"] = name
    counts["output_total"] = normal.output_total
    counts["reasoning"] = normal.reasoning
    counts["source"] = normal.source
    return counts


def time_of(value: object) -> int | None:
    """Return a time in milliseconds since the epoch: of ISO text, or of a number of seconds or milliseconds."""
    if isinstance(value, str):
        return time_of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    # A number of seconds stays below this until the year 5138, one of milliseconds is above it since 1973.
    milliseconds = value * 1000 if value < 100_000_000_000 else value
    return int(milliseconds) if milliseconds <= MAXIMUM_TIME else None


def time_of_text(text: str) -> int | None:
    """Return an ISO time in milliseconds since the epoch, or None."""
    try:
        # As JavaScript writes it; of the records of a minute only the first is taken apart.
        if len(text) == 24 and text[13:20:3] == "::." and text[23] == "Z":
            rest = text[17:19] + text[20:23]
            if rest < "60" and rest.isdecimal() and text.isascii():
                return _minute(text[:16]) + int(rest)
        return parse_time(text)
    except InvalidInputError:
        return None


@lru_cache(maxsize=16)
def _minute(text: str) -> int:
    return parse_time(text + ":00Z")


def opaque(provider: str, value: Any) -> Opaque:
    """Return a value that has no part of its own, in JSON."""
    return Opaque(provider, bytes_of(compact(value)))


def text_parts(*values: object) -> tuple[Text, ...]:
    """Return a part for each of the values that is text and not empty."""
    return tuple(Text(value) for value in values if isinstance(value, str) and value)


def image_of_data(url: str) -> Image:
    """Return the image of a URL: its bytes when it is a data URL in base64."""
    head, comma, body = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        media = storable_name(head[5:].removesuffix(";base64"))
        try:
            if media:
                return Image(media, base64.b64decode(body, validate=True))
        except (binascii.Error, ValueError):
            pass
    return Image(url=url)
