"""Numbers about numbers: median, p10 and p90 of samples and of paired ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of sorted values, between neighbours in proportion."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return n, median, p10 and p90 of at least one value."""
    ordered = sorted(values)
    return {
        "n": len(ordered),
        "median": quantile(ordered, 0.5),
        "p10": quantile(ordered, 0.1),
        "p90": quantile(ordered, 0.9),
    }


def paired(others: Mapping[int, float], ours: Mapping[int, float]) -> dict[str, float] | None:
    """Return the summary of other / ours over the rounds that have both, or None.

    A round's samples were taken within moments of each other, so what slowed the machine slowed both. Where it is so
    busy that a single sample is mostly waiting, `of_p10` says more: the ratio of the two p10.
    """
    rounds = [each for each in others if ours.get(each)]
    if not rounds:
        return None
    fast = [quantile(sorted(side[each] for each in rounds), 0.1) for side in (others, ours)]
    ratios = [others[each] / ours[each] for each in rounds]
    return {**summary(ratios), "of_p10": fast[0] / fast[1]}
