"""Forecast of a request's input tokens, as its provider will count them.

Model: a provider counts its own prompt, plus each message's estimated tokens times a factor, within a tolerance. The
forecast starts at the last report. It adds the factor times the tokens that were added since, and subtracts the factor
times the tokens that were removed. A report that follows only additions gives a sample of the factor. The upper bound
assumes the largest factor for additions and the smallest for removals. The provider's own prompt is unknown until the
first report or refusal.

`sizes` maps each message's address to its estimated tokens. The key "" is everything that is not a message: tools and
overhead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import TypeAlias

Sizes: TypeAlias = Mapping[str, int]

STEPS = 20
"""Number of factor samples to keep."""
_PRIOR = 2_000
"""Weight of the initial factor 1, in tokens."""
_SMALLEST_STEP = 100
"""Minimum new tokens for a factor sample."""
_FACTORS = 0.9, 1.8
"""Smallest and largest factor until samples narrow it. Estimates include the model's known factor."""
_PLAUSIBLE = 0.5, 4.0
"""Samples outside this range are ignored: the report was about another request."""
_SPREAD = 0.15
"""Minimum tolerance per message, as a share; it grows if samples differ more."""
_HIDDEN = 0.01
"""Allowance for hidden reasoning and reminders that are not messages, as a share of the last report.

Without it, 9% of 1,195 reports in transcripts of Claude Code and Codex exceed the bound; with it, 0.5%
(`python -m benchmarks.forecast_errors`).
"""
_UNREPORTED = 1.3
"""Factor of the bound before the first report."""


class Forecast:
    """Forecasts input tokens for one session."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, int]] = deque(maxlen=STEPS)
        self._sizes: Sizes = {}
        self._reported = 0

    @property
    def has_report(self) -> bool:
        """Whether a provider has reported the size of a request."""
        return self._reported > 0

    def learn(self, added: int, reported: int) -> None:
        """Add a factor sample from a step in which messages were only added.

        Args:
            added: their estimated tokens.
            reported: the growth of the reported tokens.
        """
        if added >= _SMALLEST_STEP:
            low, high = _PLAUSIBLE
            if low < reported / added < high:
                self._steps.append((added, reported))

    def report(self, sizes: Sizes, reported: int) -> None:
        """Record a provider's report for a request.

        Args:
            sizes: the request's sizes.
            reported: its input tokens.
        """
        added, removed = self._change(sizes)
        if self._reported and not removed:
            self.learn(added, reported - self._reported)
        self._sizes, self._reported = dict(sizes), reported

    @property
    def factor(self) -> float:
        """Most likely provider tokens per estimated token."""
        added = _PRIOR + sum(each for each, _ in self._steps)
        return (_PRIOR + sum(each for _, each in self._steps)) / added

    @property
    def largest(self) -> float:
        """Largest plausible provider tokens per estimated token that was added."""
        if not self._reported:
            return _UNREPORTED
        ratios, spread = self._ratios()
        # A request has at least its messages' tokens.
        total = max(1, sum(self._sizes.values()))
        factors = [
            _FACTORS[1],
            *(each / (1 - spread) for each in (*ratios, self._reported / total)),
        ]
        return (1 + spread) * min(factors)

    @property
    def smallest(self) -> float:
        """Smallest plausible provider tokens per estimated token that was removed."""
        ratios, spread = self._ratios()
        return (1 - spread) * max([_FACTORS[0], *(each / (1 + spread) for each in ratios)])

    def _ratios(self) -> tuple[list[float], float]:
        """Return the factor samples, and the smallest tolerance that is consistent with all of them."""
        ratios = [reported / added for added, reported in self._steps]
        if not ratios:
            return [], _SPREAD
        low, high = min(ratios), max(ratios)
        return ratios, max(_SPREAD, (high - low) / (high + low))

    def tokens(self, sizes: Sizes) -> int:
        """Return the most likely input tokens of a request."""
        added, removed = self._change(sizes)
        return max(0, self._reported + round(self.factor * (added - removed)))

    def bound(self, sizes: Sizes) -> int:
        """Return the upper bound of a request's input tokens."""
        added, removed = self._change(sizes)
        if not (added or removed):
            return self._reported
        messages = self.largest * added - self.smallest * removed
        # Reports are whole numbers, so that each of the two may be off by one.
        return max(0, self._reported + ceil(messages + _HIDDEN * self._reported) + 2)

    def room_for(self, sizes: Sizes, goal: int, room: int) -> int:
        """Return the size to shrink a request to.

        Args:
            sizes: the request's sizes before it shrinks.
            goal: the target for its most likely input tokens.
            room: the limit for the upper bound of its input tokens.

        Returns:
            Estimated tokens; 0 or less if the target cannot be reached.
        """
        added, _ = self._change(sizes)
        total, then = sum(sizes.values()), sum(self._sizes.values())
        smallest = self.smallest if self._reported else self.largest
        likely = total - (self.tokens(sizes) - goal) / self.factor
        most = total - (self.bound(sizes) - room) / smallest
        if most < added:
            # Some additions must be removed again, so their size no longer adds to the bound.
            beside = self._reported * (1 + _HIDDEN) + 2 - smallest * then
            most = (room - beside) / self.largest
        return int(min(likely, most))

    def _change(self, sizes: Sizes) -> tuple[int, int]:
        """Return the estimated tokens that were added and removed since the last report."""
        then = self._sizes
        added = sum(size for key, size in sizes.items() if then.get(key) != size)
        removed = sum(size for key, size in then.items() if sizes.get(key) != size)
        return added, removed
