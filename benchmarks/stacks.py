"""A sampling profiler, which does not slow down the measured calls."""

from __future__ import annotations

import linecache
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

INTERVAL = 0.0002
"""Seconds between two samples."""

Stack = tuple[str, ...]
Place = tuple[CodeType, int | None]


class Samples(NamedTuple):
    """How often each stack, and each line that was at work, was seen.

    Attributes:
        stacks: functions from the outermost inwards, each as `module.function`.
        lines: places as `module:  source of the line`; what a call into C took stands with the line that called it.
    """

    stacks: Counter[Stack]
    lines: Counter[str]

    @property
    def total(self) -> int:
        """Return the number of samples."""
        return self.stacks.total()


def sampled(file: Path, work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function, write samples of its stack to a file, and return the result.

    The clock is that of the wall, so a flush is seen too. Python runs a signal's handler between two instructions, so
    the time of a call into C is counted with the line that made it.
    """
    seen: Counter[tuple[Place, ...]] = Counter()
    modules: dict[CodeType, str] = {}

    def look(_number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is look.__code__:
            return  # it came while the one before was looked at
        places = []
        while frame is not None and frame.f_code is not sampled.__code__:
            places.append((frame.f_code, frame.f_lineno))
            modules.setdefault(frame.f_code, frame.f_globals.get("__name__", ""))
            frame = frame.f_back
        seen[tuple(places)] += 1

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
    try:
        return work(*arguments, **options)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _write(file, seen, modules)


def read(file: Path) -> Samples:
    """Return the samples that `sampled` wrote."""
    stacks: Counter[Stack] = Counter()
    lines: Counter[str] = Counter()
    for line in file.read_text("utf-8").splitlines():
        kind, count, rest = line.split(" ", 2)
        if kind == "stack":
            stacks[tuple(rest.split(";"))] += int(count)
        else:
            lines[rest] += int(count)
    return Samples(stacks, lines)


def _write(file: Path, seen: Counter[tuple[Place, ...]], modules: dict[CodeType, str]) -> None:
    """Write two lines for each stack: its functions, the outermost first, and the line that was at work."""
    told = []
    for places, count in seen.items():
        if places:
            functions = [f"{modules[code]}.{_short(code.co_qualname)}" for code, _ in places]
            code, number = places[0]
            source = linecache.getline(code.co_filename, number or 0).strip()
            told.append(f"stack {count} {';'.join(reversed(functions))}")
            told.append(f"line {count} {modules[code]}: {source or code.co_name}")
    file.write_text("\n".join(told), encoding="utf-8")


def _short(name: str) -> str:
    return name.replace(".<locals>", "")
