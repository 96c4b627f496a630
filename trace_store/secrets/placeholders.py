"""What stands for a secret that was taken out: `[redacted:github-token:k3v9x2m4wq7a]`.

Rule: a placeholder tells of what kind the secret was, and whether two were the same, and nothing else: its id is a
keyed hash, under a key that no repository holds, and its length does not depend on the secret's. It has only
characters that mean nothing in JSON, in SQL and in the user part of a URL.
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
    """Return by what a secret is known again: the same for the same secret and key."""
    made = base64.b32encode(keyed_digest(key, secret)[:_ID_BYTES])
    return made[:ID_CHARACTERS].decode("ascii").lower()


def placeholder(rule: str, id_: str) -> bytes:
    """Return what stands for a secret."""
    return b"[redacted:%b:%b]" % (rule.encode("ascii"), id_.encode("ascii"))


def is_within(data: bytes, start: int, end: int) -> bool:
    """Tell whether a span lies within a placeholder, as what was filtered before has them."""
    at = data.rfind(b"[redacted:", max(0, start - _MOST_BYTES), end)
    found = _FORM.match(data, at) if at >= 0 else None
    return found is not None and found.end() >= end


def kinds_in(data: bytes) -> list[str]:
    """Return the kind of each placeholder in a text, in order."""
    return [found.group(1).decode("ascii") for found in _FORM.finditer(data)]


class PlaceholderCount:
    """Counts the placeholders in a text that comes in pieces.

    Attributes:
        found: how many there were so far.
    """

    __slots__ = ("_rest", "found")

    def __init__(self) -> None:
        self.found = 0
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Look through the next piece; one that goes over its border counts when its end has come."""
        data = self._rest + piece if self._rest else piece
        end = 0
        for found in _FORM.finditer(data):
            self.found += 1
            end = found.end()
        start = data.rfind(b"[", max(end, len(data) - _MOST_BYTES))
        self._rest = data[start:] if start >= 0 else b""
