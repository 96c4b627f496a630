"""Who did it and when, and what tells one repository from another.

Rule: only a Clock tells the time, and times are whole milliseconds since 1970-01-01T00:00:00Z. They are written
and shown in UTC, so nothing depends on the time zone or the locale of a machine. What is random and kept comes from
a Randomness, so that a repository is a function of its inputs.
"""

from __future__ import annotations

import os
import time

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAXIMUM_AUTHOR_BYTES = 1024
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


class Clock:
    """Tells the time. A caller may inject another, so that a repository is a function of its inputs."""

    __slots__ = ()

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


class SystemClock(Clock):
    """The machine's clock."""

    __slots__ = ()


class FixedClock(Clock):
    """A clock for tests and examples: starts where told and moves by a fixed step at each look."""

    __slots__ = ("_next", "_step")

    def __init__(self, start: int = 1_700_000_000_000, step: int = 1000) -> None:
        self._next = start
        self._step = step

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        now = self._next
        self._next += self._step
        return now


class RisingClock(Clock):
    """A clock that never tells the same time twice, and none before one that was told elsewhere.

    What came first is read from the times in the logs. So they go up though several things are done in a millisecond,
    and though somebody has set the clock back.
    """

    __slots__ = ("_clock", "_last", "_told")

    def __init__(self, clock: Clock, told: Callable[[bool], int]) -> None:
        """Make one.

        Args:
            clock: tells the time otherwise.
            told: returns the last time that was told elsewhere, or 0; the first look is with True, and may cost more.
        """
        self._clock = clock
        self._told = told
        self._last = 0

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC, or a little more where the clock has not gone on."""
        now = self._clock.now()
        last = max(self._last, self._told(not self._last))
        self._last = now if now > last else last + 1
        return self._last


class Randomness:
    """Gives bytes that nobody has had before. A caller may inject another, as with the clock."""

    __slots__ = ()

    def take(self, size: int) -> bytes:
        """Return `size` random bytes."""
        return os.urandom(size)


class FixedRandomness(Randomness):
    """For tests and examples: all bytes of the n-th answer are n, so they are known again in a file."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def take(self, size: int) -> bytes:
        """Return `size` bytes of the number of this answer, counted from 1."""
        self._taken += 1
        return bytes([self._taken % 256]) * size


def check_author(author: str) -> str:
    """Return the author unchanged when it may stand in a commit.

    Raises:
        InvalidInputError: empty, over 1,024 bytes, not strict UTF-8, or holding control characters.
    """
    plain = author.isascii() and author.isprintable()
    if plain and len(author) <= MAXIMUM_AUTHOR_BYTES and author.strip():
        return author  # as nearly always
    try:
        size = len(author.encode())
    except UnicodeEncodeError:
        raise errors.InvalidInputError("the author is not valid UTF-8", author=author) from None
    if not author.strip() or size > MAXIMUM_AUTHOR_BYTES:
        raise errors.InvalidInputError("the author is empty or too long", author=author)
    if any(ord(c) < 32 or ord(c) == 127 for c in author):
        raise errors.InvalidInputError("the author holds control characters", author=author)
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
    """Return the time of a commit like `format_time`, or None for 0: what it was made from had no time."""
    return format_time(milliseconds) if milliseconds else None


def is_count(text: str) -> bool:
    """Tell whether a text is a number from 0, in ASCII digits."""
    return text.isascii() and text.isdigit()


def count_of(digits: str) -> int:
    """Return the number that digits say; of very many one that is greater than there can be of anything."""
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def parse_moment(text: str, now: int) -> int | None:
    """Return the milliseconds of a time as people write it, given what the clock says; None when it is not one."""
    words = text.strip().lower().replace(".", " ").split()
    if words == ["now"]:
        return now
    if words == ["yesterday"]:
        return now - _UNITS["day"]
    if len(words) == 3 and words[2] == "ago" and is_count(words[0]):
        unit = _UNITS.get(words[1].removesuffix("s"))
        return None if unit is None else now - count_of(words[0]) * unit
    try:
        return parse_time(text)
    except errors.InvalidInputError:
        return None


def parse_time(text: str) -> int:
    """Return the milliseconds of an ISO 8601 time or date; without an offset it is UTC.

    Raises:
        InvalidInputError: the text is not such a time.
    """
    # datetime costs as much as a plumbing command; only those that are given a time pay for it.
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise errors.InvalidInputError(f"not a time: {text[:80]!r}", text=text) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
