"""JSON output, one value per line; `trace help json` describes the shapes.

Rule: keys are snake_case and only ever added; ids are 64 hex characters, addresses 32, a dot and a number, times are
ISO 8601 in UTC with milliseconds, sizes in bytes. Output is UTF-8; on a terminal non-ASCII characters are escaped.
"""

from __future__ import annotations

import trace_store
from trace_cli.render.escape import bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.objects.address import Address


def write_result(invocation: Invocation, result: Any) -> None:
    """Write what a command yielded as JSON: each value on a line.

    A result is a value, a dictionary or an iterable of these, or a function that returns one.
    """
    result = result() if callable(result) else result
    is_one = isinstance(result, dict) or hasattr(result, "__match_args__")
    for each in (result,) if is_one or hasattr(result, "JSON") else result:
        write_record(invocation, trace_store.record(each))


def write_record(invocation: Invocation, record: Mapping[str, Any]) -> None:
    """Write one JSON object on a line."""
    invocation.write(json_bytes(record, ascii_only=invocation.terminal) + b"\n")


def json_bytes(value: Any, *, ascii_only: bool = False, indent: int | None = None) -> bytes:
    """Return a value as JSON bytes; lone surrogates, which UTF-8 cannot carry, as escapes."""
    import json  # its import takes as long as a command, and few commands print JSON

    separators = (",", ": ") if indent else (", ", ": ")
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, separators=separators)
    try:
        return text.replace("\x7f", "\\u007f").encode("utf-8")
    except UnicodeEncodeError:
        return json_bytes(value, ascii_only=True, indent=indent)


def write_data(invocation: Invocation, data: bytes) -> None:
    """Write data unchanged, or escaped on a terminal."""
    if invocation.terminal:
        data = bounded(data).encode("utf-8")
    invocation.write(data)


def address_text(address: Address) -> str:
    """Return an address in full: `<32 hex characters>.<n>`."""
    return address.hex


def short_address(address: Address) -> str:
    """Return an address for people: 12 hex characters, a dot and the number."""
    return str(address)
