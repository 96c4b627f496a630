"""Helpers of all parsers: typed fields, and errors that name the place.

Invariant: independent of providers.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, NamedTuple

from trace_store.errors import InvalidInputError, InvalidMessageError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part

UNREAD = "unread"
"""Provider of opaque parts with unreadable data; no model is shown them."""

_KEEPS_UNREAD: ContextVar[bool] = ContextVar("keeps_unread", default=False)
# Cache marks are not part of a message.
_CACHE_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


class Placed(NamedTuple):
    """A message, and its range of input elements (`stop` is exclusive)."""

    start: int
    stop: int
    message: Message


@contextmanager
def damage_kept() -> Iterator[None]:
    """Keep unreadable blocks as opaque parts of provider UNREAD instead of raising.

    Used for transcripts: intact parts of a damaged message are still shown.
    """
    token = _KEEPS_UNREAD.set(True)
    try:
        yield
    finally:
        _KEEPS_UNREAD.reset(token)


def keeps_damage() -> bool:
    """Return True inside `damage_kept`."""
    return _KEEPS_UNREAD.get()


def parts_of(read: Callable[[Any, str], Iterable[Part]], form: Any, where: str) -> list[Part]:
    """Return the parts of one form; if damaged, an opaque part inside `damage_kept`.

    Raises:
        InvalidMessageError: the form is damaged.
    """
    try:
        return list(read(form, where))
    except (InvalidInputError, RecursionError):
        if not _KEEPS_UNREAD.get():
            raise
        return [unread(form)]


def parts_of_each(
    read: Callable[[Any, str], Iterable[Part]], forms: Iterable[Any], where: str
) -> list[Part]:
    """Return the parts of each element of a list; errors as in `parts_of`."""
    return [
        part
        for index, form in enumerate(forms)
        for part in parts_of(read, form, f"{where}[{index}]")
    ]


def unread(form: Any) -> Opaque:
    """Return an unreadable form as an opaque part."""
    return Opaque(UNREAD, dump(form).encode("utf-8", "backslashreplace"))


def closest(name: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown name, "; did you mean 'text'?", or ""."""
    found = get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def mapping(value: object, where: str, what: str) -> dict[str, Any]:
    """Return a JSON object; `what` names it in errors, as in "an item"."""
    if not isinstance(value, dict):
        raise wrong(where, f"{what} must be an object")
    return value


def required(form: Mapping[str, Any], name: str, where: str) -> str:
    """Return a field that must be text."""
    value = form.get(name)
    if not isinstance(value, str):
        raise wrong(where, f"{name} must be text")
    return value


def optional(form: Mapping[str, Any], name: str, where: str) -> str:
    """Return an optional text field, or ""."""
    value = form.get(name)
    return "" if value is None else required(form, name, where)


def details(form: Mapping[str, Any], where: str, *names: str) -> dict[str, str]:
    """Return optional text fields; inside `damage_kept`, other types count as missing."""
    skip = _KEEPS_UNREAD.get()
    return {
        name: "" if skip and not isinstance(form.get(name), str) else optional(form, name, where)
        for name in names
    }


def entries(value: object, where: str, what: str) -> list[Any]:
    """Return a list, or an empty one for None; `what` names it in errors."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(where, f"{what} must be a list")
    return value


def message(role: str, parts: list[Part], where: str, **fields: str) -> Message:
    """Return a message; errors as in `Message`, prefixed by the place."""
    try:
        return Message(role, parts, **fields)
    except InvalidMessageError as error:
        raise wrong(where, error.message) from None


def wrong(where: str, what: str) -> InvalidInputError:
    """Return an error with its place."""
    return InvalidMessageError(f"{where}: {what}", where=where)


def dump(value: Any) -> str:
    """Return compact JSON, its keys in the order given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def opaque(provider: str, block: Mapping[str, Any]) -> Opaque:
    """Return a provider's block as an opaque part, verbatim except for cache marks."""
    kept = {key: value for key, value in block.items() if key not in _CACHE_MARKS}
    # Escapes preserve lone surrogates, which UTF-8 cannot encode.
    return Opaque(provider, dump(kept).encode("utf-8", "backslashreplace"))


def decoded(text: str, where: str) -> bytes:
    """Return the bytes of base64 in the standard or the URL-safe alphabet."""
    try:
        if "-" in text or "_" in text:
            text = text.replace("-", "+").replace("_", "/")
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise wrong(where, "the image is not base64") from None


def image_of_url(url: str, where: str) -> Image:
    """Return an image from a web URL or a `data:` URL."""
    head, comma, body = url.removeprefix("data:").partition(";base64,")
    if not url.startswith("data:") or not comma:
        return Image(url=url)
    return Image(head, decoded(body, where))
