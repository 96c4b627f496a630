"""Similar texts: near duplicates by MinHash, and topics by shared paths and identifiers."""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_HASHES = 64
_BANDS = 16
_PRIME = (1 << 61) - 1
_COMPARED = 20
"""Number of newest texts of a band that each older one is compared with."""
_SEQUENCE_WORDS = 4
_FACTORS = [(2 * n + 1) * 0x9E3779B97F4A7C15 % _PRIME for n in range(1, _HASHES + 1)]
_NEAR_DUPLICATE = 0.8
"""Minimum share of common word sequences of two near duplicates."""
_SAME_TOPIC = 0.2
_OPEN_TOPICS = 30
"""A set may join one of this many topics that were used last."""


def near_duplicates(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield (index, index of its last near duplicate, similarity).

    Texts without a near duplicate are omitted. The similarity of two texts is the Jaccard index of their sequences of
    four words. It is estimated by MinHash (A. Broder, 1997) over 64 hashes; only texts that agree in one of 16 bands
    are compared.
    """
    signatures = [_signature(text) for text in texts]
    bands: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    size = _HASHES // _BANDS
    for number, signature in enumerate(signatures):
        for band in range(_BANDS if signature else 0):
            key = band, tuple(signature[band * size : (band + 1) * size])
            bands.setdefault(key, []).append(number)
    candidates: dict[int, set[int]] = {}
    for numbers in bands.values():
        for place, number in enumerate(numbers):
            newest = numbers[max(place + 1, len(numbers) - _COMPARED) :]
            candidates.setdefault(number, set()).update(newest)
    for number in sorted(candidates):
        for later in sorted(candidates[number], reverse=True):
            same = sum(map(int.__eq__, signatures[number], signatures[later])) / _HASHES
            if same >= _NEAR_DUPLICATE:
                yield number, later, same
                break


def _signature(text: str) -> list[int]:
    words = text.split()
    if len(words) < 2 * _SEQUENCE_WORDS:
        return []
    hashes = {
        crc32(" ".join(words[at : at + _SEQUENCE_WORDS]).encode("utf-8", "surrogatepass")) + 1
        for at in range(len(words) - _SEQUENCE_WORDS + 1)
    }
    return [min(value * factor % _PRIME for value in hashes) for factor in _FACTORS]


def topics(names: Iterable[set[str]]) -> list[list[int]]:
    """Group sets of names, such as the paths in each turn, into topics.

    Each set, in order, joins the topic with the largest overlap (the common names, divided by the size of the smaller
    set), or starts a topic if the overlap is too small.

    Returns:
        The indexes of the sets of each topic.
    """
    found: list[list[int]] = []
    open_topics: list[tuple[set[str], list[int]]] = []  # the topic used last is last
    for index, own in enumerate(names):
        best, largest = None, 0.0
        for at, (topic, _) in enumerate(open_topics):
            overlap = len(own & topic) / (min(len(own), len(topic)) or 1)
            if overlap > largest:
                best, largest = at, overlap
        if best is None or largest < _SAME_TOPIC:
            found.append([index])
            open_topics.append((set(own), found[-1]))
            del open_topics[:-_OPEN_TOPICS]
        else:
            used = open_topics.pop(best)
            used[0].update(own)
            used[1].append(index)
            open_topics.append(used)
    return found
