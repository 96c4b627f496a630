"""Word-by-word differences between two texts.

Lines are compared first, and words only within lines that differ. Texts for which that would be slow are compared by
lines only.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from trace_store.base.frozen import value

Run = tuple[bool, Sequence[str], Sequence[str]]
"""Whether both runs are equal, and the run on each side."""


SAME, GONE, NEW = "=", "-", "+"
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
MOST_WORDS = 4000
"""Adjacent changed lines with more words than this are not compared by words."""
MOST_LINES = 20_000
"""If more lines than this lie between the first and last difference, all count as changed."""
MOST_STEPS = 1000
"""Steps per item above which sequences are first split at items that are unique on both sides."""


@value
class Piece:
    """A run of text that is on both sides or on one.

    Attributes:
        sign: SAME, GONE or NEW.
        text: the text.
    """

    sign: str
    text: str


def word_diff(before: str, after: str) -> list[Piece]:
    """Return the word diff of two texts: SAME and GONE form the first, SAME and NEW the second."""
    pieces: list[Piece] = []
    for same, one, other in blocks(_split_lines(before), _split_lines(after)):
        if same:
            _add_piece(pieces, SAME, "".join(one))
            continue
        words = _words("".join(one)), _words("".join(other))
        if not all(words) or sum(map(len, words)) > MOST_WORDS:
            _add_piece(pieces, GONE, "".join(one))
            _add_piece(pieces, NEW, "".join(other))
            continue
        for equal, gone, new in blocks(*words):
            if equal:
                _add_piece(pieces, SAME, "".join(gone))
            else:
                _add_piece(pieces, GONE, "".join(gone))
                _add_piece(pieces, NEW, "".join(new))
    return _merge_spaces(pieces)


def paired_lines(
    before: Sequence[str], after: Sequence[str], around: int
) -> Iterator[tuple[str | None, str | None]]:
    """Yield lines side by side, None where a side has none; (None, None) marks omitted lines."""
    rows: list[tuple[str | None, str | None]] = []
    differs: list[int] = []
    for same, one, other in blocks(before, after):
        if not same:
            differs += range(len(rows), len(rows) + max(len(one), len(other)))
        rows += zip_longest(one, other)
    last, shown = -1, -1
    for at in differs:
        start, end = max(at - around, shown + 1), min(at + around + 1, len(rows))
        if start > last + 1:
            yield None, None
        yield from rows[start:end]
        last = shown = max(end - 1, shown)
    if 0 <= last < len(rows) - 1:
        yield None, None


def blocks(one: Sequence[str], other: Sequence[str]) -> Iterator[Run]:
    """Yield runs of two sequences in order: whether they are equal, and the run on each side."""
    head = 0
    least = min(len(one), len(other))
    while head < least and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < least - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    if head:
        yield True, one[:head], other[:head]
    yield from _diff_blocks(one[head : len(one) - tail], other[head : len(other) - tail])
    if tail:
        yield True, one[len(one) - tail :], other[len(other) - tail :]


def _diff_blocks(left: Sequence[str], right: Sequence[str]) -> Iterator[Run]:
    """Yield the runs of two sequences that differ in their first and last items."""
    if not left or not right or len(left) + len(right) > MOST_LINES:
        if left or right:
            yield False, left, right
    elif _cost(left, right) <= MOST_STEPS * (len(left) + len(right)):
        yield from _match(left, right)
    else:
        i = j = 0
        for at, to, size in (*_unique_runs(left, right), (len(left), len(right), 0)):
            gap = left[i:at], right[j:to]
            if all(gap) and _cost(*gap) <= MOST_STEPS * (at - i + to - j):
                yield from _match(*gap)
            elif any(gap):
                yield False, *gap
            if size:
                yield True, left[at : at + size], right[to : to + size]
            i, j = at + size, to + size


def _match(left: Sequence[str], right: Sequence[str]) -> Iterator[Run]:
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right).get_opcodes():
        yield tag == "equal", left[i1:i2], right[j1:j2]


def _cost(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the maximum number of steps to match two sequences.

    Each search for a run visits all equal pairs; `SequenceMatcher` ignores items that are very frequent on the second
    side.
    """
    counts, most = Counter(right), len(right) // 100 + 1 if len(right) >= 200 else len(right)
    pairs = sum(counts[item] for item in left if counts[item] <= most)
    return (len(left) + len(right) + pairs) * min(len(left), len(right))


def _unique_runs(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (left, right, length) of runs of unique items that have the same order on both sides."""
    once = {item for item, count in Counter(left).items() if count == 1}
    once &= {item for item, count in Counter(right).items() if count == 1}
    places = {item: at for at, item in enumerate(right) if item in once}
    ends: list[int] = []  # the smallest end of an increasing run, by its length
    chain: list[
        tuple[int, int, int]
    ] = []  # index left, index right, index of the previous one here
    last: list[int] = []
    for at, item in enumerate(left):
        if item in places:
            to = places[item]
            length = bisect_left(ends, to)
            chain.append((at, to, last[length - 1] if length else -1))
            ends[length : length + 1] = [to]
            last[length : length + 1] = [len(chain) - 1]
    found: list[tuple[int, int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        place, to, at = chain[at]
        if found and (place + 1, to + 1) == found[-1][:2]:
            found[-1] = (place, to, found[-1][2] + 1)
        else:
            found.append((place, to, 1))
    return found[::-1]


def _merge_spaces(pieces: Sequence[Piece]) -> list[Piece]:
    """Merge words that differ across single spaces that do not."""
    found: list[Piece] = []
    at = 0
    while at < len(pieces):
        gone, new = "", ""
        while at < len(pieces):
            sign, text = pieces[at].sign, pieces[at].text
            if sign == GONE:
                gone += text
            elif sign == NEW:
                new += text
            elif (gone or new) and text.isspace() and "\n" not in text and at + 1 < len(pieces):
                gone, new = gone + text, new + text
            else:
                break
            at += 1
        _add_piece(found, GONE, gone)
        _add_piece(found, NEW, new)
        if at < len(pieces):
            _add_piece(found, SAME, pieces[at].text)
            at += 1
    return found


def _add_piece(pieces: list[Piece], sign: str, text: str) -> None:
    if text:
        pieces.append(Piece(sign, text))


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text with their newlines."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _words(text: str) -> list[str]:
    """Return runs of letters and digits, runs of white space, and other characters one by one."""
    return _WORDS.findall(text)
