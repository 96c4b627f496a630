"""Placeholders for redacted secrets, such as `[redacted:github-token:k3v9x2m4wq7a]`.

A placeholder reveals only the kind of a secret, and whether two secrets are equal. Its id is a keyed hash of fixed
length, and the key is never stored in a repository. Its characters have no special meaning in JSON, SQL or the user
part of a URL.
"""

from __future__ import annotations

import base64
import re

from trace_store.base.oid import keyed_digest

_PLACEHOLDER = re.compile(rb"\[redacted:([a-z0-9-]{1,40}):[a-z2-7]{12}\]")
_MAXIMUM_BYTES = 64
KEY_BYTES = 32
ID_CHARACTERS = 12
_ID_BYTES = 8


def finding_id(key: bytes, secret: bytes) -> str:
    """Return the id of a finding: a keyed hash of the secret."""
    encoded = base64.b32encode(keyed_digest(key, secret)[:_ID_BYTES])
    return encoded[:ID_CHARACTERS].decode("ascii").lower()


def placeholder(rule: str, id_: str) -> bytes:
    """Return the placeholder for a secret."""
    return b"[redacted:%b:%b]" % (rule.encode("ascii"), id_.encode("ascii"))


PLACEHOLDER_START = b"[redacted:"


def is_within(data: bytes, start: int, end: int) -> bool:
    """Return True if a span lies within a placeholder."""
    at = data.rfind(PLACEHOLDER_START, max(0, start - _MAXIMUM_BYTES), end)
    match = _PLACEHOLDER.match(data, at) if at >= 0 else None
    return match is not None and match.end() >= end


def kinds_in(data: bytes) -> list[str]:
    """Return the kind of each placeholder in a text, in order."""
    return [match.group(1).decode("ascii") for match in _PLACEHOLDER.finditer(data)]


class PlaceholderCount:
    """Counts placeholders in a text that comes in pieces.

    Attributes:
        number: the number so far.
    """

    __slots__ = ("_rest", "number")

    def __init__(self) -> None:
        self.number = 0
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Search the next piece; a placeholder across two pieces counts with the second."""
        data = self._rest + piece if self._rest else piece
        end = 0
        for match in _PLACEHOLDER.finditer(data):
            self.number += 1
            end = match.end()
        start = data.rfind(b"[", max(end, len(data) - _MAXIMUM_BYTES))
        self._rest = data[start:] if start >= 0 else b""
