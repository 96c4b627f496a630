r"""Structured objects as JSON text, without loss, and back.

JSON has no bytes, so: an object id is its 64 hex characters; other bytes are `{"$bin": "hex"}`; a text that is
itself 64 hex characters is `{"$text": "…"}`; a map whose only key is one of these is wrapped in `{"$map": …}`.

Rule: two spaces of indentation, keys in their stored (sorted) order, control characters as \u escapes. It is
hand-written because importing json takes as long as the command.
"""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId, is_full_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WRAPPERS = ("$bin", "$map", "$text")
_SHORT = {
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}


MAXIMUM_INDENT = 32
"""Deeper levels get no further indentation, which would multiply the size."""


def to_json(value: Any, indent: str = "") -> str:
    """Return a value of a structured object as JSON text."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f'"{value.hex()}"' if len(value) == OID_BYTES else f'{{"$bin": "{value.hex()}"}}'
    if isinstance(value, str):
        return f'{{"$text": "{value}"}}' if is_full_id(value) else quoted(value)
    deeper = indent + "  " if len(indent) < MAXIMUM_INDENT else indent
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in _WRAPPERS:
            key = next(iter(value))
            return f'{{"$map": {{{quoted(key)}: {to_json(value[key], indent)}}}}}'
        items = [f"{quoted(key)}: {to_json(item, deeper)}" for key, item in value.items()]
        opening, closing = "{", "}"
    else:
        items = [to_json(item, deeper) for item in value]
        opening, closing = "[", "]"
    if not items:
        return opening + closing
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(items) + f"\n{indent}{closing}"


def json_value(value: Any) -> Any:
    """Return the value that `to_json` writes, as input for a JSON library."""
    if isinstance(value, bytes):
        return value.hex() if len(value) == OID_BYTES else {"$bin": value.hex()}
    if isinstance(value, str):
        return {"$text": value} if is_full_id(value) else value
    if isinstance(value, dict):
        plain = {key: json_value(item) for key, item in value.items()}
        return {"$map": plain} if len(value) == 1 and next(iter(value)) in _WRAPPERS else plain
    return [json_value(item) for item in value] if isinstance(value, list) else value


def from_json(value: Any) -> Any:
    """Convert parsed JSON back to a stored value.

    Raises:
        InvalidInputError: the value contains a float, or a wrapper with a wrong type in it.
    """
    if isinstance(value, str):
        return ObjectId.parse(value) if is_full_id(value) else value
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, float):
        raise errors.InvalidInputError(f"a commit cannot contain fractions: {value}")
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key == "$map" and isinstance(inner, dict):
            return {name: from_json(item) for name, item in inner.items()}
        if key == "$text" and isinstance(inner, str):
            return inner
        if key == "$bin" and isinstance(inner, str):
            try:
                return bytes.fromhex(inner)
            except ValueError:
                raise errors.InvalidInputError(f"not hexadecimal: {inner[:40]!r}") from None
        if key in _WRAPPERS:
            raise errors.InvalidInputError(f"{key} cannot wrap a {type(inner).__name__}")
    return {name: from_json(item) for name, item in value.items()}


def quoted(text: str) -> str:
    """Return text as a JSON string with control characters escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    code = ord(character)
    if code in _SHORT:
        return _SHORT[code]
    if safe(character) == character:
        return character
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"
