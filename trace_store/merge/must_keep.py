"""Must-keep patterns: what of a message has to stand in whatever takes its place.

Rule: pure. A pattern is an expression of RE2, and one that is none is a plain text. All that it matches in the message
must stand in the other text, to the letter.
"""

from __future__ import annotations

import re2

MAXIMUM_MATCHES = 1000


def lost(pattern: str, said: str, text: str) -> list[str]:
    """Return what a pattern matches in what was said, and a text has not, each once, in its order."""
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
