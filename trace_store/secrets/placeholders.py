"""Placeholders for redacted secrets, such as `[redacted:github-token:k3v9x2m4wq7a]`.

A placeholder tells the kind of a secret, and whether two secrets are equal, but nothing else: its id is a keyed hash,
    no repository has the key, and its length is fixed. Its characters have no special meaning in JSON, SQL or the user
    part of a URL.
"""

from __future__ import annotations

import base64
import re

from trace_store.oid import keyed_digest

_FORM = re.compile(rb"\[redacted:([a-z0-9-]{1,40}):[a-z2-7]{12}\]")
_MOST_BYTES = 64
KEY_BYTES = 32
ID_CHARACTERS = 12
_ID_BYTES = 8


def finding_id(key: bytes, secret: bytes) -> str:
    """Return the id of a secret, the same for the same secret and key."""
    made = base64.b32encode(keyed_digest(key, secret)[:_ID_BYTES])
    return made[:ID_CHARACTERS].decode("ascii").lower()


def placeholder(rule: str, id_: str) -> bytes:
    """Return the placeholder for a secret."""
    return b"[redacted:%b:%b]" % (rule.encode("ascii"), id_.encode("ascii"))


def is_within(data: bytes, start: int, end: int) -> bool:
    """Return True if a span lies within a placeholder."""
    at = data.rfind(b"[redacted:", max(0, start - _MOST_BYTES), end)
    found = _FORM.match(data, at) if at >= 0 else None
    return found is not None and found.end() >= end


def kinds_in(data: bytes) -> list[str]:
    """Return the kind of each placeholder in a text, in order."""
    return [found.group(1).decode("ascii") for found in _FORM.finditer(data)]


class PlaceholderCount:
    """Counts placeholders in a text that comes in pieces.

    Attributes:
        found: the number so far.
    """

    __slots__ = ("_rest", "found")

    def __init__(self) -> None:
        self.found = 0
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Search the next piece; a placeholder across two pieces counts with the second."""
        data = self._rest + piece if self._rest else piece
        end = 0
        for found in _FORM.finditer(data):
            self.found += 1
            end = found.end()
        start = data.rfind(b"[", max(end, len(data) - _MOST_BYTES))
        self._rest = data[start:] if start >= 0 else b""
