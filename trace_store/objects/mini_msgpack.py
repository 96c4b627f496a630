"""A small msgpack codec, for commands too short to be worth importing msgpack.

Rule: its results equal msgpack's, as a property test shows. It leaves other types, long forms and damaged bytes to
msgpack. It is slower per byte, so it refuses work once a process has handled enough bytes to pay for the import.
"""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAXIMUM_BYTES = 4096
"""Longer data is left to msgpack."""
_DEPTH = 16
_WORTH_BYTES = 39 * 1024
"""After this many bytes the import pays: it takes 18 million instructions, a byte here 460."""


class UnsureError(Exception):
    """The value needs msgpack."""


class _Handled:
    bytes = 0


def unpack(data: bytes) -> Any:
    """Decode msgpack bytes.

    Raises:
        UnsureError: they need msgpack.
    """
    _count(len(data))
    try:
        [value], end = _items(data, 0, 1, _DEPTH + 1)
    except (IndexError, UnicodeDecodeError):
        raise UnsureError from None
    if end != len(data):  # truncated data ends after the end of the data
        raise UnsureError
    return value


def pack(value: Any) -> bytes:
    """Encode a value.

    Raises:
        UnsureError: it needs msgpack.
    """
    pieces: list[bytes] = []
    try:
        _write(value, pieces.append, _DEPTH)
    except UnicodeEncodeError:
        raise UnsureError from None
    data = b"".join(pieces)
    _count(len(data))
    return data


def _count(size: int) -> None:
    _Handled.bytes += size
    if size > MAXIMUM_BYTES or _Handled.bytes > _WORTH_BYTES:
        raise UnsureError


def _items(data: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    """Return `count` values and the end of the last one; IndexError beyond the end of the data."""
    if not depth:
        raise UnsureError
    found: list[Any] = []
    for _ in range(count):
        code = data[at]
        at += 1
        if code < 0x80:
            found.append(code)
        elif code < 0x90:
            value: dict[str, Any] = {}
            for _ in range(code & 0xF):
                size = data[at] - 0xA0
                if not 0 <= size < 0x20:
                    raise UnsureError
                start, at = at + 1, at + 1 + size
                key = data[start:at].decode()
                code = data[at]
                # Most values are short texts, lists and ids, which need no call of their own.
                if 0xA0 <= code < 0xC0:
                    start, at = at + 1, at + 1 + (code & 0x1F)
                    value[key] = data[start:at].decode()
                elif 0x90 <= code < 0xA0:
                    value[key], at = _items(data, at + 1, code & 0xF, depth - 1)
                elif code == 0xC4:
                    start, at = at + 2, at + 2 + data[at + 1]
                    value[key] = data[start:at]
                else:
                    [value[key]], at = _items(data, at, 1, depth - 1)
            found.append(value)
        elif code < 0xA0:
            items, at = _items(data, at, code & 0xF, depth - 1)
            found.append(items)
        elif code < 0xC0:
            start, at = at, at + (code & 0x1F)
            found.append(data[start:at].decode())
        elif code in _LENGTHS:
            start = at + _LENGTHS[code]
            at = start + int.from_bytes(data[at:start], "big")
            content = data[start:at]
            found.append(content.decode() if code > 0xC5 else content)
        elif code in _NUMBERS:
            start, at = at, at + _NUMBERS[code]
            found.append(int.from_bytes(data[start:at], "big"))
        elif code in _CONSTANTS:
            found.append(_CONSTANTS[code])
        else:
            raise UnsureError
    return found, at


_LENGTHS = {0xC4: 1, 0xC5: 2, 0xD9: 1, 0xDA: 2}
"""Size of the length field of bytes and texts, by their first byte."""
_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _write(value: Any, put: Any, depth: int) -> None:
    if isinstance(value, str):
        data = value.encode("utf-8")
        put((bytes((0xA0 | len(data),)) if len(data) < 32 else _head(len(data), 0xD9)) + data)
    elif isinstance(value, bytes):
        put(_head(len(value), 0xC4) + value)
    elif value is None or value is True or value is False:
        put(b"\xc0" if value is None else b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        put(_number(value))
    elif isinstance(value, list | tuple | dict):
        if len(value) > 15 or not depth:
            raise UnsureError
        if isinstance(value, dict):
            put(bytes((0x80 | len(value),)))
            value = chain.from_iterable(value.items())
        else:
            put(bytes((0x90 | len(value),)))
        for item in value:
            if type(item) is str and item.isascii() and len(item) < 32:
                put(bytes((0xA0 | len(item),)) + item.encode())
            else:
                _write(item, put, depth - 1)
    else:
        raise UnsureError


def _head(size: int, code: int) -> bytes:
    if size < 0x100:
        return bytes((code, size))
    if size < 0x10000:
        return bytes((code + 1,)) + size.to_bytes(2, "big")
    raise UnsureError


def _number(value: int) -> bytes:
    if not 0 <= value < 1 << 64:
        raise UnsureError
    if value < 0x80:
        return bytes((value,))
    for code, width in _NUMBERS.items():
        if value < 1 << 8 * width:
            return bytes((code,)) + value.to_bytes(width, "big")
    raise UnsureError
