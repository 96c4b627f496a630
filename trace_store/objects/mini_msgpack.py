"""msgpack in a few lines, for commands that read or write little: importing msgpack costs as much as such a command.

Rule: where this module answers, it answers as msgpack does, which a property test shows; whatever it is not sure of
(other types, long forms, bytes that are damaged) it leaves to msgpack. It is slower for each value, so it answers only
until a process has handled some of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAXIMUM_BYTES = 4096
"""Longer ones are left to msgpack."""
_DEPTH = 16
_WORTH_BYTES = 28 * 1024
"""After so many bytes the import would have paid: it takes 18 million instructions, and a byte here 620."""


class UnsureError(Exception):
    """msgpack has to be asked."""


class _Handled:
    bytes = 0


def unpack(data: bytes) -> Any:
    """Return the value of msgpack bytes.

    Raises:
        UnsureError: msgpack has to be asked.
    """
    _count(len(data))
    try:
        value, end = _read(data, 0, _DEPTH)
    except (IndexError, UnicodeDecodeError):
        raise UnsureError from None
    if end != len(data):
        raise UnsureError
    return value


def pack(value: Any) -> bytes:
    """Return the msgpack bytes of a value.

    Raises:
        UnsureError: msgpack has to be asked.
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


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    """Return the value that begins at an offset, and where it ends; IndexError beyond the end."""
    code = data[at]
    at += 1
    if code < 0x80:
        return code, at
    if code < 0xC0:
        if code >= 0xA0:
            return _text(data, at, code & 0x1F)
        if not depth:
            raise UnsureError
        return (
            _map(data, at, code & 0xF, depth) if code < 0x90 else _list(data, at, code & 0xF, depth)
        )
    if code in _NUMBERS:
        end = at + _NUMBERS[code]
        return int.from_bytes(_bytes(data, at, end), "big"), end
    if code in (0xC4, 0xC5):
        start = at + code - 0xC3
        end = start + int.from_bytes(_bytes(data, at, start), "big")
        return _bytes(data, start, end), end
    if code in (0xD9, 0xDA):
        start = at + code - 0xD8
        return _text(data, start, int.from_bytes(_bytes(data, at, start), "big"))
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    raise UnsureError


_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _bytes(data: bytes, at: int, end: int) -> bytes:
    if end > len(data):
        raise UnsureError
    return data[at:end]


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    return str(_bytes(data, at, at + size), "utf-8"), at + size


def _list(data: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    found = []
    for _ in range(count):
        value, at = _read(data, at, depth - 1)
        found.append(value)
    return found, at


def _map(data: bytes, at: int, count: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    for _ in range(count):
        key, at = _read(data, at, depth - 1)
        if type(key) is not str:
            raise UnsureError
        found[key], at = _read(data, at, depth - 1)
    return found, at


def _write(value: Any, put: Any, depth: int) -> None:
    if isinstance(value, bytes):
        put(_head(len(value), 0xC4) + value)
    elif isinstance(value, str):
        data = value.encode("utf-8")
        put((bytes((0xA0 | len(data),)) if len(data) < 32 else _head(len(data), 0xD9)) + data)
    elif value is None or value is True or value is False:
        put(b"\xc0" if value is None else b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        put(_number(value))
    elif isinstance(value, list | tuple | dict):
        if len(value) > 15 or not depth:
            raise UnsureError
        if isinstance(value, dict):
            put(bytes((0x80 | len(value),)))
            for key, item in value.items():
                _write(key, put, depth - 1)
                _write(item, put, depth - 1)
        else:
            put(bytes((0x90 | len(value),)))
            for item in value:
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
