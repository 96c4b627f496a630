"""Parts coerced to what a format can hold, and placeholder ids and times.

Invariant: each function returns what a reader of the file gets back, or None if the format has no place for it.

Invariant: ids are derived from addresses alone, so that equal sessions give equal files, and look like the format's
own.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trace_store.base.oid import digest
from trace_store.exporters.contract import ExportSession, Facts, SessionTurn
from trace_store.exporters.lossy.drafts import DraftMessage, Fit, apart, fit_parts, with_roles
from trace_store.importers.convert import MAXIMUM_TIME, storable_name
from trace_store.objects.parts import Image, Opaque, Part, Text, ToolCall
from trace_store.providers.media import base64_image, web_url
from trace_store.providers.tools import call_input
from trace_store.providers.wire import INNER_DEPTH, parse_object, replace_surrogates, to_bytes

Spell = Callable[[Any], str]
"""Writes a JSON value as text, as a reader does."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def whole(text: str) -> str:
    """Return a text as read back from JSON: a surrogate pair becomes one character."""
    if text.isascii() or not _PAIR.search(text):
        return text
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def sound(text: str) -> str:
    """Return a text that every provider accepts: a lone surrogate becomes U+FFFD."""
    return replace_surrogates(text)


def fit_image(image: Image) -> Image | None:
    """Return an image that providers accept, as bytes or as a web URL."""
    encoded = base64_image(image)
    if encoded is not None:
        if image.url is None:
            return image
        head, data = encoded
        return Image(head, base64.b64decode(data))
    url = web_url(image)
    return None if url is None else Image(url=url)


def fit_object(call: ToolCall, spell: Spell) -> ToolCall:
    """Return a call with a JSON object as arguments, or with its text in one."""
    value = object_of(call)
    return ToolCall(call.id, call.name, spell(value))


def object_of(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object; other arguments as `{"input": text}`."""
    return read_again(call_input(call))


def block_of(part: Opaque, provider: str) -> dict[str, Any] | None:
    """Return the JSON object of a provider's block, or None."""
    block = parse_object(part.data, INNER_DEPTH) if part.provider == provider else None
    return None if block is None else read_again(block)


def read_again(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object as read back: surrogate pairs become one character."""
    again = parse_object(to_bytes(value))
    return value if again is None else again


def only_text(parts: Sequence[Part]) -> str | None:
    """Return the text if the parts have nothing else, else None."""
    part = parts[0] if len(parts) == 1 else None
    return part.text if isinstance(part, Text) else None


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_MAXIMUM_TIMED = (1 << 48) - 1
_UUID_GROUPS = (8, 4, 4, 4, 12)
_HEX = frozenset("0123456789abcdef")


def seed(*words: str) -> bytes:
    """Return a 32-byte hash of the words."""
    return digest("\0".join(words).encode("utf-8", "surrogatepass"))


def place(turn: SessionTurn) -> str:
    """Return the address of a turn's message."""
    return turn.message.address.hex


def beginning(session: ExportSession) -> str:
    """Return a unique key of a session: its name, and its first address."""
    first = place(session.turns[0]) if session.turns else session.commit.hex()
    return f"{session.format}/{session.id}/{session.thread}/{first}"


def uuid(*words: str) -> str:
    """Return an id that looks like a random UUID."""
    return _spelled(seed("uuid", *words), "4")


def timed_uuid(time: int, *words: str) -> str:
    """Return an id that looks like a UUID starting with a time in milliseconds."""
    prefix = min(max(time, 0), _MAXIMUM_TIMED).to_bytes(6, "big")
    return _spelled(prefix + seed("uuid", *words)[6:], "7")


def word(prefix: str, length: int, *words: str) -> str:
    """Return a prefix and `length` letters and digits."""
    number = int.from_bytes(seed(prefix, *words), "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return prefix + "".join(letters)


def is_uuid(text: str) -> bool:
    """Return True if a text is a lower-case UUID."""
    groups = text.split("-")
    return tuple(map(len, groups)) == _UUID_GROUPS and all(_HEX.issuperset(g) for g in groups)


def session_uuid(session: ExportSession, facts: Facts, made: str) -> str:
    """Return the id of a main session if it is a UUID, else a derived one."""
    if session.thread or not is_uuid(facts.session) or session.continues_other_session(facts):
        return made
    return facts.session


def fit_times(drafts: Iterable[DraftMessage]) -> None:
    """Limit times of drafts to the years 1970 to 9999, which every format can write."""
    for draft in drafts:
        draft.time = min(max(draft.time, 0), MAXIMUM_TIME)


def fitted(
    drafts: list[DraftMessage],
    roles: Sequence[str],
    fit: Callable[[DraftMessage, Part], Part | None],
    inside: Fit,
    *,
    beside_results: bool = False,
) -> list[DraftMessage]:
    """Return drafts with the roles and parts of a format, and names and times that readers accept.

    Args:
        drafts: the drafts.
        roles: the roles of the format; other messages are a user's.
        fit: as in `fit_parts`.
        inside: as in `fit_parts`.
        beside_results: as in `apart`.
    """
    fit_times(drafts)
    for draft in drafts:
        draft.name = storable_name(draft.name)
        draft.model = storable_name(draft.model)
        draft.id = storable_name(draft.id)
    drafts = apart(drafts, beside_results=beside_results)
    with_roles(drafts, roles)
    drafts = fit_parts(drafts, fit, inside)
    with_roles(drafts, roles)  # tool messages may have lost their results
    return drafts


def unique_ids(
    drafts: Iterable[DraftMessage], make: str, length: int, session: ExportSession
) -> None:
    """Give each draft a unique id: its own, or one from a prefix and letters."""
    used: set[str] = set()
    for draft in drafts:
        own = draft.id
        number = 0
        while not draft.id or draft.id in used:
            where = place(session.turns[draft.turn])
            draft.id = word(make, length, where, own, str(number))
            number += 1
        used.add(draft.id)


def _spelled(data: bytes, version: str) -> str:
    """Return bytes as a UUID of a version, in the standard variant."""
    digits = data[:16].hex()
    variant = "89ab"[int(digits[16], 16) % 4]
    text = f"{digits[:12]}{version}{digits[13:16]}{variant}{digits[17:]}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
