"""Must-keep patterns: parts of a message that must stay in its replacement.

A pattern is an RE2 expression; if it is not valid, it is plain text. All its matches in the message must be in the new
text, literally.
"""

from __future__ import annotations

import re2

MAXIMUM_MATCHES = 1000


def lost(pattern: str, said: str, text: str) -> list[str]:
    """Return the matches of a pattern in a text that the new text lacks, without duplicates."""
    return [found for found in _matches(pattern, said) if found not in text]


def _matches(pattern: str, said: str) -> list[str]:
    try:
        found = re2.compile(pattern, _OPTIONS).finditer(said)
    except re2.error:
        return [pattern] if pattern in said else []
    matches: dict[str, None] = {}
    for match in found:
        if match.group():
            matches[match.group()] = None
        if len(matches) >= MAXIMUM_MATCHES:
            break
    return list(matches)


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
