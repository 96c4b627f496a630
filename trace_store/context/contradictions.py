"""Statements that a later one contradicts, judged by their wording.

Two statements contradict each other if they speak of the same with another number, or with a "not" in only one of them.
A later one also contradicts what it rejects by name, as in "we use PostgreSQL instead of SQLite". The rules look at
words, so they miss contradictions in other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\d[\d.,]*\d|\d|[^\W\d_][\w./-]*(?:'t\b)?")
_NOT = frozenset(
    ("not", "never", "no", "don't", "mustn't", "shouldn't", "can't", "cannot", "without", "avoid")
)
_FILLERS = frozenset(
    (
        *(
            "a",
            "an",
            "the",
            "i",
            "we",
            "you",
            "it",
            "they",
            "us",
            "our",
            "your",
            "to",
            "of",
        ),
        *(
            "in",
            "on",
            "for",
            "with",
            "and",
            "but",
            "so",
            "is",
            "are",
            "be",
            "will",
            "would",
        ),
        *(
            "should",
            "must",
            "always",
            "only",
            "please",
            "now",
            "then",
            "do",
            "does",
            "did",
        ),
        *(
            "that",
            "this",
            "there",
            "again",
            "instead",
            "any",
            "more",
            "longer",
            "let's",
            "have",
        ),
        *(
            "has",
            "decided",
            "decide",
            "can",
            "may",
            "from",
            "here",
            "also",
            "all",
        ),
    )
)
_SAME = 0.75
"""Least share of common words of two statements about the same."""
_FEWEST = 2
"""Least number of words that say what a statement is about."""
_REJECTS = re.compile(
    r"\b(?:instead of|rather than|no longer(?: use)?|not|moved? (?:away )?from|switch(?:ed|ing)? from"
    r"|replac(?:e|ed|ing))\s+(?:the |a |an |using )?([\w.+#-]+(?: [A-Z][\w.+#-]*)?)"
)
_CHOOSES = (
    r"\b(?:use|uses|using|go(?:ing)? with|chose|choose|keep|switch(?:ed)? to|settled on|opted for|decided on|picked)"
    r"\s+(?:the |a |an )?{}\b"
)


def contradicted(statements: Sequence[str]) -> dict[int, int]:
    """Return the places of statements that a later one contradicts, each with the place of the newest that does.

    Args:
        statements: sentences, oldest first.
    """
    known = [_Statement(each.replace("’", "'")) for each in statements]
    found: dict[int, int] = {}
    for later, new in enumerate(known):
        for earlier, old in enumerate(known[:later]):
            if new.contradicts(old):
                found[earlier] = later
    return found


class _Statement:
    """One statement: the words that say what it is about, its numbers, and whether it denies."""

    def __init__(self, text: str) -> None:
        self._text = text
        words = [word.rstrip(".") for word in _WORD.findall(text.casefold())]
        self._numbers = [word for word in words if word[0].isdigit()]
        self._denies = sum(word in _NOT for word in words) % 2 == 1
        self._about = {
            _stem(word)
            for word in words
            if not word[0].isdigit() and word not in _NOT and word not in _FILLERS
        }
        self._rejected = [each.rstrip(".") for each in _REJECTS.findall(text)]

    def contradicts(self, old: _Statement) -> bool:
        return self._speaks_of_the_same(old) or any(map(old._chose, self._rejected))

    def _speaks_of_the_same(self, old: _Statement) -> bool:
        one, other = self._about, old._about
        if len(one & other) < _FEWEST or not (one <= other or other <= one):
            return False
        if len(one & other) < _SAME * len(one | other):
            return False
        if self._denies != old._denies:
            return True
        return len(self._numbers) == len(old._numbers) and self._numbers != old._numbers

    def _chose(self, name: str) -> bool:
        """Return True if this statement chose something by its name."""
        return (
            name not in self._rejected
            and re.search(_CHOOSES.format(re.escape(name)), self._text) is not None
        )


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
