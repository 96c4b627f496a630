"""Words of texts in Chinese, Japanese and Korean, which have no spaces between them.

Every character of these scripts is a word of its own. So a name in Latin letters between them ends where the script
changes, and a run of characters is found as a phrase, wherever it stands.
"""

from __future__ import annotations

import re

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c"
    "\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc\U00020000-\U000323af"
)
_EACH = re.compile(f"[{_CJK}]")
_TOKEN = re.compile(r"\w+")


def segmented(text: str) -> str:
    """Return a text with spaces around each character of these scripts."""
    if text.isascii():
        return text
    return _EACH.sub(r" \g<0> ", text)


def has_own_words(text: str) -> bool:
    """Return True if a text has a character that is a word of its own."""
    return not text.isascii() and _EACH.search(text) is not None


def phrase_pattern(text: str, *, prefix: bool) -> str:
    """Return a regular expression for the words of a text in a row; "" without a word.

    Args:
        text: the words.
        prefix: whether the last may be the start of a longer one.
    """
    words = _TOKEN.findall(segmented(text))
    if not words:
        return ""
    pattern = ""
    for before, word in zip(["", *words], words, strict=False):
        own = has_own_words(word)
        if before:
            pattern += r"\W*" if own or has_own_words(before) else r"\W+"
        elif not own:
            pattern += rf"(?:\b|(?<=[{_CJK}]))"
        pattern += re.escape(word)
    if not prefix and not has_own_words(words[-1]):
        pattern += rf"(?:\b|(?=[{_CJK}]))"
    return pattern
