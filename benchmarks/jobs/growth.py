"""What an append costs in a long history, measured against the same in a short one."""

from __future__ import annotations

from benchmarks.job import Job, Row
from benchmarks.samplers import appending

SHORT, LONG = "Trace, 100 messages", "Trace, the long history"
STATED = 100_000
SIZES = (10_000, STATED)

JOBS = (
    Job(
        name="growth-append",
        title="One message without a flush, which would hide what else grows",
        unit="s",
        sizes=SIZES,
        rounds=300,
        contestants=(
            appending(LONG, "trace", "fast"),
            appending(SHORT, "trace", "fast", size=100),
        ),
        rows=(Row("append in a long history", LONG, SHORT, 1.10, 1.00, at_most=True, size=STATED),),
    ),
    Job(
        name="growth-compile",
        title="One message without a flush, then compile and look at the last message, in a process that goes on",
        unit="s",
        sizes=SIZES,
        rounds=300,
        contestants=(
            appending(LONG, "trace", "fast, compiled"),
            appending(SHORT, "trace", "fast, compiled", size=100),
        ),
        rows=(Row("append, then compile, warm", LONG, SHORT, 1.2, 1.0, at_most=True, size=STATED),),
    ),
)
