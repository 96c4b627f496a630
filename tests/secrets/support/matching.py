"""Random texts that a pattern matches."""

from __future__ import annotations

import functools
import random
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

MOST_REPEATS = 40
_PLAIN = [chr(code) for code in range(0x21, 0x7F)]
_CLASSES: dict[Any, Any] = {
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
}
_OPPOSITES = {
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}


def text_of(pattern: str, source: random.Random) -> str:
    """Return a text that a pattern of RE2 mostly matches: places of no width are passed over."""
    return _of(_parsed(pattern), source)


@functools.cache
def _parsed(pattern: str) -> Any:
    return parser.parse(pattern.replace(r"\z", r"\Z"))


def _of(items: Any, source: random.Random) -> str:
    return "".join(_one(code, value, source) for code, value in items)


def _one(code: Any, value: Any, source: random.Random) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.NOT_LITERAL:
        return source.choice([c for c in _PLAIN if ord(c) != value])
    if code is codes.ANY:
        return source.choice(_PLAIN)
    if code is codes.IN:
        return source.choice(_members(tuple(value)))
    if code is codes.BRANCH:
        return _of(source.choice(value[1]), source)
    if code is codes.SUBPATTERN:
        return _of(value[-1], source)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, most, inner = value
        most = min(int(most), least + (MOST_REPEATS if least > 3 else 3))
        return "".join(_of(inner, source) for _ in range(source.randint(least, most)))
    return ""  # \b, \A and their like


@functools.cache
def _members(items: tuple[Any, ...]) -> list[str]:
    wanted = [c for c in [" ", *_PLAIN] if any(_has(item, c) for item in items)]
    if items[0][0] is codes.NEGATE:
        return [c for c in _PLAIN if not any(_has(item, c) for item in items[1:])]
    return wanted


def _has(item: Any, character: str) -> bool:
    code, value = item
    if code is codes.LITERAL:
        return bool(ord(character) == value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if code is codes.CATEGORY:
        if value in _OPPOSITES:
            return not _is(_OPPOSITES[value], character)
        return _is(value, character)
    return False


def spans(pattern: str, text: str) -> list[tuple[int, int]]:
    """Return all positions of a pattern's secret in a text."""
    compiled = re.compile(pattern.replace(r"\z", r"\Z"))
    return [match.span(min(compiled.groups, 1)) for match in compiled.finditer(text)]


def _is(category: Any, character: str) -> bool:
    return bool(_CLASSES[category](character))
