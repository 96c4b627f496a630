"""Where the time of Trace's contestants goes, function by function."""

from __future__ import annotations

import cProfile
import io
import pstats
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from benchmarks.stacks import sampled

SHOWN = 40
STACKS = ".stacks"
"""How a file is named that takes samples of the stack instead of every call."""


@runtime_checkable
class Profiling(Protocol):
    """A sampler that can profile its sample."""

    def profile(self, file: Path) -> None:
        """Write a profile of one sample, or of several when one is short."""
        ...


def profiled(file: Path, work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Profile a function call, write the profile to a file, and return the result."""
    if file.suffix == STACKS:
        return sampled(file, work, *arguments, **options)
    profile = cProfile.Profile()
    found = profile.runcall(work, *arguments, **options)
    profile.dump_stats(file)
    return found


def top(file: Path) -> str:
    """Return the most expensive functions of a profile."""
    text = io.StringIO()
    pstats.Stats(str(file), stream=text).strip_dirs().sort_stats("tottime").print_stats(SHOWN)
    return text.getvalue()
