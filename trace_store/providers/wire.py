"""Bytes of requests: deterministic JSON, and valid UTF-8.

Invariant: the same request gives the same bytes on every machine, or a provider's cache would miss.
"""

from __future__ import annotations

import sys

from trace_store.base.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

MAXIMUM_DEPTH = 200
INNER_DEPTH = 100
"""Maximum depth of an object inside a request; readers reject deeper ones."""
_MARK_CHARACTERS = 8
WORTH_CHARACTERS = 1 << 20
"""Text for which it pays to import orjson, which takes as long as a short command."""
_SIMPLE = frozenset((int, bool, type(None)))


def to_bytes(request: Any) -> bytes:
    """Return the UTF-8 bytes of a request: JSON without spaces, or the text itself.

    Lone surrogates, which only occur in lossless JSON, stay escaped.

    Raises:
        ValueError: the request has a number that JSON cannot express.
    """
    if isinstance(request, str):
        return replace_surrogates(request).encode()
    import json  # slow to load, and text does not need it

    text = json.dumps(request, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def document_to_bytes(document: Any) -> bytes:
    """Return what `to_bytes` does, faster for what may be large; raises as it."""
    return _write(document, with_orjson=_is_for_orjson(document))


def to_lines(records: Iterable[Any]) -> bytes:
    """Return the UTF-8 bytes of JSON Lines; raises as `to_bytes`."""
    values = list(records)
    with_orjson = _is_for_orjson(values)
    return b"".join([_write(each, with_orjson=with_orjson) + b"\n" for each in values])


def _write(value: Any, *, with_orjson: bool) -> bytes:
    if with_orjson and not isinstance(value, str):
        try:
            import orjson

            return orjson.dumps(value)
        except (ImportError, TypeError):
            pass  # no wheel, a lone surrogate, a key that is not text, a large number, or too many levels
    return to_bytes(value)


def _is_for_orjson(value: Any) -> bool:
    """Return True if orjson writes what json does, and has so much to write that its import pays off."""
    characters = 0
    containers: list[Any] = [[value]]
    for each in containers:  # grows while it is walked
        for item in each.values() if type(each) is dict else each:
            kind = type(item)
            if kind is str:
                characters += len(item)
            elif kind is dict or kind is list:
                containers.append(item)
            elif kind is float:
                if item and not 1e-4 <= abs(item) < 1e16:
                    return False  # written with an exponent, in another way
            elif kind not in _SIMPLE:
                return False
    return characters >= WORTH_CHARACTERS or "orjson" in sys.modules


def parse_json(text: str, levels: int = MAXIMUM_DEPTH) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, is nested deeper than `levels`, or has a number out of range.
    """
    import json

    try:
        value = json.loads(text, parse_constant=refuse_constant, parse_float=finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # Text with fewer brackets cannot be too deep.
    if text.count("{") + text.count("[") > levels and _deeper_than(value, levels):
        raise ValueError("nested too deeply")
    return value


def parse_object(data: str | bytes, levels: int = MAXIMUM_DEPTH) -> dict[str, Any] | None:
    """Return the JSON object in data; None for other data or one deeper than `levels`."""
    try:
        value = parse_json(data if isinstance(data, str) else data.decode(), levels)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, and surrogate pairs by their character."""
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrub(value: Any) -> tuple[Any, bool]:
    """Replace lone surrogates in every string; also return whether there were any."""
    return (_scrubbed(value), True) if _has_some_within(value) else (value, False)


def word(text: str, limit: int, fallback: str) -> str:
    """Return a text of 1 to `limit` of `a-z A-Z 0-9 _ -`, or a stable replacement.

    The replacement ends in a hash of the text, so different texts get different ones.
    """
    if 0 < len(text) <= limit and _in_word(text):
        return text
    return marked(text, limit, fallback)


def marked(text: str, limit: int, fallback: str) -> str:
    """Return a replacement of up to `limit` characters, ending in a hash of the text."""
    mark = digest(text.encode("utf-8", "surrogatepass")).hex()[:_MARK_CHARACTERS]
    beginning = text[: limit - _MARK_CHARACTERS - 1]
    readable = "".join([each if _in_word(each) else "_" for each in beginning])
    return f"{readable or fallback}_{mark}"


def _in_word(text: str) -> bool:
    """Return True if a word may have these characters."""
    others = text.replace("_", "").replace("-", "")
    return text.isascii() and (not others or others.isalnum())


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    return value


def _has_some_within(value: Any) -> bool:
    """Return True if a string in the value has lone surrogates."""
    values = [value]
    for each in values:  # which grows as it is walked
        if isinstance(each, str):
            if has_surrogates(each):
                return True
        elif isinstance(each, dict):
            values += each
            values += each.values()
        elif isinstance(each, list):
            values += each
    return False


def has_surrogates(text: str) -> bool:
    """Return True if UTF-8 cannot hold a text."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity, which Python's decoder accepts."""
    raise ValueError(f"{name} is not JSON")


def finite(text: str) -> float:
    """Return a number; raise ValueError if it is too large for a float."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is out of range")
    return value


def _deeper_than(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return False
    return True
