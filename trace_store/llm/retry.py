"""Retries: how often, and how long to wait.

An error says whether a retry may help (`retryable`) and the minimum wait in seconds (`wait`). Waiting is injected, so
that tests need not wait.
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
    """The clock of a model client.

    Attributes:
        now: returns monotonic seconds.
        sleep: waits for a number of seconds; None waits unless cancelled.
        jitter: returns a factor from 0 to 1 for waits.
        clock: the wall clock, for answers that name a time.
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
        """Call a function after a number of seconds; return a function that cancels this."""
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
    """Return the result of the first attempt that succeeds.

    Args:
        attempt: called again while its error is `retryable`.
        attempts: maximum number of calls.
        seconds: time limit for everything; a longer wait is not started.
        timing: the clock.
        sleep: waits.

    Raises:
        ModelError: the last error, with the number of `attempts`.
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
    """Return the wait in seconds that a server requests as a number or date, or None."""
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
