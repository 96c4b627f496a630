"""The table of jobs, in the order of execution and display."""

from __future__ import annotations

from benchmarks.job import Job
from benchmarks.jobs import (
    appends,
    branches,
    clones,
    compiles,
    decisions,
    events,
    growth,
    history,
    imports,
    searching,
    secret_texts,
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
    *clones.JOBS,
    *imports.JOBS,
    *searching.JOBS,
    *secret_texts.JOBS,
    *sizes.JOBS,
    *tracked.JOBS,
    *startup.JOBS,
)
