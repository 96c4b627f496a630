"""Asking once more: after how long, how often, and when no more.

Rule: an error says whether asking again may help (`retryable`) and how long to wait at least (`wait`, in seconds). What
waits is injected, so that nobody waits in a test.
"""

from __future__ import annotations

import random
import threading
import time

from trace_store.errors import ModelError
from trace_store.ident import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    T = TypeVar("T")

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
_DIGITS = 9


class Timing:
    """How time passes for a model client, in seconds.

    Attributes:
        now: tells how much time has passed since whenever.
        sleep: waits; None: as long as nothing is cancelled.
        jitter: gives a number from 0 to 1 by which waits differ.
        clock: tells the time, for answers that name one.
    """

    __slots__ = ("clock", "jitter", "now", "sleep")

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        jitter: Callable[[], float] = random.random,
        clock: Clock | None = None,
    ) -> None:
        self.now = now
        self.sleep = sleep
        self.jitter = jitter
        self.clock = clock or Clock()

    def alarm(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        """Have something done after so many seconds, and return what calls that off."""
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()
        return timer.cancel


def with_retries(
    attempt: Callable[[], T],
    *,
    attempts: int,
    seconds: float,
    timing: Timing,
    sleep: Callable[[float], None],
) -> T:
    """Return what an attempt returns, the first that succeeds.

    Args:
        attempt: is called again as long as its error is `retryable`.
        attempts: how often at most.
        seconds: how much time all of it may take; a wait that would end later is not begun.
        timing: tells the time.
        sleep: waits.

    Raises:
        ModelError: the last attempt's, with the number of `attempts` that were made.
    """
    end = timing.now() + seconds
    number = 1
    while True:
        try:
            return attempt()
        except ModelError as error:
            failure = error
        failure.data["attempts"] = number
        if number >= attempts or not failure.data.get("retryable"):
            break
        wait = _wait(failure, number, timing)
        if timing.now() + wait > end:
            break
        sleep(wait)
        number += 1
    raise failure


def _wait(failure: ModelError, number: int, timing: Timing) -> float:
    asked = failure.data.get("wait")
    if isinstance(asked, float):
        return asked
    return timing.jitter() * min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(number - 1, 16))


def retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return how many seconds a server asks to wait, by a number or by a date; None when it does not."""
    told = headers.get("retry-after", "").strip()
    whole, _, part = told.partition(".")
    if whole.isascii() and whole.isdecimal() and len(whole) <= _DIGITS:
        return float(f"{whole}.{part}" if part.isascii() and part.isdecimal() else whole)
    if not told:
        return None
    from email.utils import parsedate_to_datetime  # which few servers ask for

    try:
        moment = parsedate_to_datetime(told).timestamp()
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return None
    return max(0.0, moment - clock.now() / 1000)
