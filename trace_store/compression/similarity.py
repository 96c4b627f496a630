"""Similar texts: near duplicates by MinHash, and topics by shared marks."""

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
_WORDS = 4
_FACTORS = [(2 * n + 1) * 0x9E3779B97F4A7C15 % _PRIME for n in range(1, _HASHES + 1)]
SIMILAR = 0.8
"""The share of common word sequences from which two texts are near duplicates."""
_SAME_TOPIC = 0.2
_OPEN_TOPICS = 30
"""A set may join one of this many topics that were used last."""


def near_duplicates(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield (number, number of the newest similar text after it, similarity) for each text that has one.

    The similarity is the Jaccard index of their sequences of four words, estimated by MinHash (A. Broder, 1997) over 64
    hashes; only texts that agree in one of 16 bands are compared.
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
            if same >= SIMILAR:
                yield number, later, same
                break


def _signature(text: str) -> list[int]:
    words = text.split()
    if len(words) < 2 * _WORDS:
        return []
    hashes = {
        crc32(" ".join(words[at : at + _WORDS]).encode("utf-8", "surrogatepass")) + 1
        for at in range(len(words) - _WORDS + 1)
    }
    return [min(value * factor % _PRIME for value in hashes) for factor in _FACTORS]


def topics(marks: Iterable[set[str]]) -> list[list[int]]:
    """Group sets of marks, in order, into topics: a set joins the topic that shares the most with it.

    Returns:
        The numbers of the sets of each topic.
    """
    found: list[list[int]] = []
    recent: list[tuple[set[str], list[int]]] = []  # the topic used last is last
    for number, these in enumerate(marks):
        best, shared = None, 0.0
        for at, (words, _) in enumerate(recent):
            common = len(these & words) / (min(len(these), len(words)) or 1)
            if common > shared:
                best, shared = at, common
        if best is None or shared < _SAME_TOPIC:
            found.append([number])
            recent.append((set(these), found[-1]))
            del recent[:-_OPEN_TOPICS]
        else:
            topic = recent.pop(best)
            topic[0].update(these)
            topic[1].append(number)
            recent.append(topic)
    return found
