"""The templates of `--format`.

Rule: `%(name)` is a field, `%%` a percent sign, `%xx` the byte with these two hex digits; anything else is an error.
"""

from __future__ import annotations

from trace_cli.failures import usage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    Row = TypeVar("Row")


def filler(template: str, fields: Mapping[str, Callable[[Row], str]]) -> Callable[[Row], bytes]:
    """Compile a template into a function that formats a row as bytes.

    Raises:
        InvalidInputError: the template has an unknown field or an invalid % sequence.
    """
    pieces = _parsed(template, fields)

    def fill(row: Row) -> bytes:
        parts = [each if isinstance(each, bytes) else each(row).encode() for each in pieces]
        return b"".join(parts)

    return fill


def _parsed(
    template: str, fields: Mapping[str, Callable[[Row], str]]
) -> list[bytes | Callable[[Row], str]]:
    pieces: list[bytes | Callable[[Row], str]] = []
    rest = template
    while rest:
        text, percent, rest = rest.partition("%")
        pieces.append(text.encode())
        if not percent:
            break
        if rest.startswith("%"):
            pieces.append(b"%")
            rest = rest[1:]
        elif rest.startswith("("):
            name, closing, rest = rest[1:].partition(")")
            if not closing or name not in fields:
                raise usage_error(
                    f"unknown field %({name[:40]}) in --format", f"fields: {', '.join(fields)}"
                )
            pieces.append(fields[name])
        else:
            try:
                pieces.append(bytes.fromhex(rest[:2]))
            except ValueError:
                raise usage_error(f"invalid % sequence in --format: %{rest[:2]}") from None
            rest = rest[2:]
    return pieces
