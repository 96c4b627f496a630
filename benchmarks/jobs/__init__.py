"""The table of jobs, in the order of execution and display."""

from __future__ import annotations

from benchmarks.job import Job
from benchmarks.jobs import (
    appends,
    branches,
    compiles,
    decisions,
    events,
    growth,
    history,
    imports,
    searching,
    sizes,
    startup,
    tracked,
    writers,
)

JOBS: tuple[Job, ...] = (
    *appends.JOBS,
    *writers.JOBS,
    *events.JOBS,
    *decisions.JOBS,
    *growth.JOBS,
    *compiles.JOBS,
    *history.JOBS,
    *branches.JOBS,
    *imports.JOBS,
    *searching.JOBS,
    *sizes.JOBS,
    *tracked.JOBS,
    *startup.JOBS,
)
