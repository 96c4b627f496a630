"""Clocks, authors and random ids.

Rule: only a Clock reads the time. Times are milliseconds since the epoch, written and shown in UTC. Random values that
are stored come from a Randomness. With both injected, a repository is a function of its inputs.
"""

from __future__ import annotations

import os
import time

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Time: TypeAlias = int
    """Milliseconds since the epoch, UTC; 0 if unknown."""

MAXIMUM_AUTHOR_BYTES = 1024
_TIMES_KEPT = 1024
"""A clock remembers at least this many of the times that it gave."""
_MOST_DIGITS = 15
_UNITS = {
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
    "month": 30 * 86_400_000,
    "year": 365 * 86_400_000,
}
_SHORT_UNITS = {"h": _UNITS["hour"], "d": _UNITS["day"], "w": _UNITS["week"]}


_NAME_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME_LENGTH = 12


class Clock:
    """The clock; a caller can inject another one."""

    __slots__ = ()

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


class SystemClock(Clock):
    """The machine's clock."""

    __slots__ = ()


class FixedClock(Clock):
    """A clock for tests and examples: advances by a fixed step on each call."""

    __slots__ = ("_next", "_step")

    def __init__(self, start: int = 1_700_000_000_000, step: int = 1000) -> None:
        self._next = start
        self._step = step

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        now = self._next
        self._next += self._step
        return now


class MonotonicClock(Clock):
    """A clock that never repeats a time, nor returns one before the latest logged.

    Log entries thus stay in order, even within a millisecond or if the system clock is set back.

    Attributes:
        first: the latest logged time when the clock was first read; None before that.
    """

    __slots__ = ("_clock", "_last", "_latest_logged", "_opened", "_told", "first")

    def __init__(self, clock: Clock, latest_logged: Callable[[bool], int]) -> None:
        """Wrap a clock.

        Args:
            clock: the clock to read.
            latest_logged: returns the latest time in the logs, or 0. The first call gets True, and may be slower.
        """
        self._clock = clock
        self._latest_logged = latest_logged
        self._last = 0
        self._told: list[int] = []
        # The logs that are read at first may lack moves of other branches. A fixed clock does not tell when it began.
        self._opened = clock.now() if isinstance(clock, SystemClock) else 0
        self.first: int | None = None

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC, adjusted if the clock did not advance."""
        now = self._clock.now()
        last = max(self._last, self._latest_logged(not self._last))
        if self.first is None:
            self.first = last
        self._last = now if now > last else last + 1
        told = self._told
        told.append(self._last)
        if len(told) > 2 * _TIMES_KEPT:
            del told[:_TIMES_KEPT]
        return self._last

    def is_from_elsewhere(self, time: int) -> bool:
        """Return True if another clock gave a time since this one was first read."""
        began = None if self.first is None else max(self.first, self._opened)
        return began is not None and time > began and time not in self._told


class Randomness:
    """The source of random bytes; a caller can inject another one."""

    __slots__ = ()

    def take(self, size: int) -> bytes:
        """Return `size` random bytes."""
        return os.urandom(size)


class FixedRandomness(Randomness):
    """For tests and examples: every byte of the n-th result is n."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def take(self, size: int) -> bytes:
        """Return `size` bytes that all hold the number of this call, from 1."""
        self._taken += 1
        return bytes([self._taken % 256]) * size


def new_name() -> str:
    """Return twelve random characters that are not mistaken for each other, for an id."""
    digits = int.from_bytes(Randomness().take(8), "big")
    return "".join(_NAME_CHARACTERS[digits >> 5 * n & 31] for n in range(_NAME_LENGTH))


def check_author(author: str) -> str:
    """Return the author unchanged if it is valid in a commit.

    Raises:
        InvalidInputError: it is empty, over 1,024 bytes, not valid UTF-8, or has control characters.
    """
    plain = author.isascii() and author.isprintable()
    if plain and len(author) <= MAXIMUM_AUTHOR_BYTES and author.strip():
        return author  # the usual case
    try:
        size = len(author.encode())
    except UnicodeEncodeError:
        raise errors.InvalidInputError("the author is not valid UTF-8", author=author) from None
    if not author.strip() or size > MAXIMUM_AUTHOR_BYTES:
        raise errors.InvalidInputError("the author is empty or too long", author=author)
    if any(ord(c) < 32 or ord(c) == 127 for c in author):
        raise errors.InvalidInputError("the author has control characters", author=author)
    return author


def format_time(milliseconds: int) -> str:
    """Return a time as `2026-11-21T07:10:02.123Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    try:
        parts = time.gmtime(seconds)
    except (OverflowError, ValueError, OSError):
        return f"@{milliseconds}"
    return (
        f"{parts.tm_year:04d}-{parts.tm_mon:02d}-{parts.tm_mday:02d}T"
        f"{parts.tm_hour:02d}:{parts.tm_min:02d}:{parts.tm_sec:02d}.{rest:03d}Z"
    )


def known_time(milliseconds: int) -> str | None:
    """Return a commit's time like `format_time`, or None for 0 (no time known)."""
    return format_time(milliseconds) if milliseconds else None


def is_count(text: str) -> bool:
    """Return True if the text is a non-negative integer in ASCII digits."""
    return text.isascii() and text.isdigit()


def count_of(digits: str) -> int:
    """Return the value of digits, capped at 10**15."""
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def parse_moment(text: str, now: int, *, is_end: bool = False) -> int | None:
    """Return the milliseconds of a time such as `2 hours ago`, or None if invalid.

    Args:
        text: the time.
        now: the present time in milliseconds.
        is_end: whether it ends a range; a date then includes all of its day.
    """
    words = text.strip().lower().replace(".", " ").split()
    if words == ["now"]:
        return now
    if words == ["today"]:
        text = format_time(now)[:10]
    if words == ["yesterday"]:
        return now - _UNITS["day"]
    if len(words) == 2 and words[0] == "last" and words[1] in _UNITS:
        return now - _UNITS[words[1]]
    if len(words) == 3 and words[2] == "ago" and is_count(words[0]):
        unit = _UNITS.get(words[1].removesuffix("s"))
        return None if unit is None else now - count_of(words[0]) * unit
    try:
        moment = parse_time(text)
    except errors.InvalidInputError:
        return None
    return moment + _UNITS["day"] - 1 if is_end and _is_date(text) else moment


def _is_date(text: str) -> bool:
    """Return True for an ISO 8601 date without a time."""
    from datetime import date

    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def parse_duration(text: str) -> int | None:
    """Return the milliseconds of a duration such as `30 days`, `72h` or `2w`, or None if invalid."""
    words = text.strip().lower()
    digits = words[: len(words) - len(words.lstrip("0123456789"))]
    unit = words[len(digits) :].strip()
    scale = _SHORT_UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    return count_of(digits) * scale if is_count(digits) and scale is not None else None


def parse_time(text: str) -> int:
    """Return the milliseconds of an ISO 8601 time or date; UTC if it has no offset.

    Raises:
        InvalidInputError: the text is not such a time.
    """
    # datetime takes as long to import as a plumbing command runs.
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise errors.InvalidInputError(f"not a time: {text[:80]!r}", text=text) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
