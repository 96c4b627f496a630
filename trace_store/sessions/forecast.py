"""The forecast of a request's input tokens, as its provider will count them.

A provider is taken to count a fixed prompt, and for each message its estimated tokens times a factor, give or take a
share. So the forecast is what was last reported, plus the factor times what came since, minus the same of what went.
Each report after messages were only added bounds the factor. The bound of the forecast takes what came at its largest,
and what went at its smallest. What nobody reported, such as a provider's own prompt, is unknown until the first report
or refusal.

Sizes are the estimated tokens of the messages of a request by their address, and of what is beside them by "".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import TypeAlias

Sizes: TypeAlias = Mapping[str, int]

STEPS = 20
"""Number of reports that the factor is taken from."""
_PRIOR = 2_000
"""The first factor, 1, weighs as much as so many tokens."""
_SMALLEST_STEP = 100
"""Fewer new tokens say nothing about the factor."""
_FACTORS = 0.9, 1.8
"""The smallest and largest factor before reports bound it; estimates have the model's own factor already."""
_PLAUSIBLE = 0.5, 4.0
"""A step outside these was not about the same request."""
_SPREAD = 0.15
"""By which share a message may differ at least; more if reports do."""
_HIDDEN = 0.01
"""The share of a report by which the next may grow beside its messages, by hidden reasoning or a program's reminders.

Without it 9% of 1,195 reports in transcripts of Claude Code and Codex are over the bound, with it 0.5%
(`python -m benchmarks.forecast_errors`).
"""
_UNREPORTED = 1.3
"""The factor of the bound before the first report."""


class Forecast:
    """Forecasts the input tokens of the next requests of one session."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, int]] = deque(maxlen=STEPS)
        self._sizes: Sizes = {}
        self._reported = 0

    @property
    def has_report(self) -> bool:
        """Whether a provider has reported the size of a request."""
        return self._reported > 0

    def learn(self, came: int, reported: int) -> None:
        """Take what was reported for messages that came, without others that went, as a step.

        Args:
            came: their estimated tokens.
            reported: by how much the report grew.
        """
        if came >= _SMALLEST_STEP:
            low, high = _PLAUSIBLE
            if low < reported / came < high:
                self._steps.append((came, reported))

    def report(self, sizes: Sizes, reported: int) -> None:
        """Take what a provider reported for a request.

        Args:
            sizes: what the request held.
            reported: its input tokens.
        """
        came, went = self._change(sizes)
        if self._reported and not went:
            self.learn(came, reported - self._reported)
        self._sizes, self._reported = dict(sizes), reported

    @property
    def factor(self) -> float:
        """The provider's tokens for an estimated token."""
        came = _PRIOR + sum(each for each, _ in self._steps)
        return (_PRIOR + sum(each for _, each in self._steps)) / came

    @property
    def largest(self) -> float:
        """The most tokens of the provider for an estimated token that came."""
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
        """The fewest tokens of the provider for an estimated token that went."""
        ratios, spread = self._ratios()
        return (1 - spread) * max([_FACTORS[0], *(each / (1 + spread) for each in ratios)])

    def _ratios(self) -> tuple[list[float], float]:
        """Return the factor of each step, and the share by which messages differ at least, to explain them all."""
        ratios = [reported / came for came, reported in self._steps]
        if not ratios:
            return [], _SPREAD
        low, high = min(ratios), max(ratios)
        return ratios, max(_SPREAD, (high - low) / (high + low))

    def tokens(self, sizes: Sizes) -> int:
        """Return the most likely input tokens of a request."""
        came, went = self._change(sizes)
        return max(0, self._reported + round(self.factor * (came - went)))

    def bound(self, sizes: Sizes) -> int:
        """Return the input tokens that a request has at most, as far as can be known."""
        came, went = self._change(sizes)
        if not (came or went):
            return self._reported
        messages = self.largest * came - self.smallest * went
        # Reports are whole numbers, so that each of the two may be off by one.
        return max(0, self._reported + ceil(messages + _HIDDEN * self._reported) + 2)

    def room_for(self, sizes: Sizes, goal: int, room: int) -> int:
        """Return how large a request may stay, so that it likely has `goal` tokens, and `room` at most.

        Args:
            sizes: what the request holds; of that, something will go.
            goal: its most likely input tokens.
            room: the input tokens that it may have at most.

        Returns:
            Estimated tokens; as few as 0, or less if it cannot be reached.
        """
        came, _ = self._change(sizes)
        total, then = sum(sizes.values()), sum(self._sizes.values())
        smallest = self.smallest if self._reported else self.largest
        likely = total - (self.tokens(sizes) - goal) / self.factor
        most = total - (self.bound(sizes) - room) / smallest
        if most < came:
            # Not all that came can stay, and what goes is no longer uncertain.
            beside = self._reported * (1 + _HIDDEN) + 2 - smallest * then
            most = (room - beside) / self.largest
        return int(min(likely, most))

    def _change(self, sizes: Sizes) -> tuple[int, int]:
        """Return the estimated tokens that came and went since the last report."""
        then = self._sizes
        came = sum(size for key, size in sizes.items() if then.get(key) != size)
        went = sum(size for key, size in then.items() if sizes.get(key) != size)
        return came, went
