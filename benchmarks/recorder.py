"""A job's run, written to a result file with the machine, the load and the versions it was taken with."""

from __future__ import annotations

from pathlib import Path

from benchmarks import machine, results
from benchmarks.ground import Ground
from benchmarks.job import Job
from benchmarks.runner import run


def record(job: Job, ground: Ground, rounds: int, output: Path, command: str) -> None:
    """Run a job at one size and add its lines to a result file."""
    before = machine.load_average()
    outcomes = run(job, ground, rounds)
    common = {
        "job": job.name,
        "size": ground.size,
        "variant": ground.variant,
        "unit": job.unit,
        "load": [before, machine.load_average()],
        "machine": machine.machine(ground.work),
        "command": command,
        "date": machine.now(),
        "seed": ground.seed,
    }
    results.add(
        output,
        [
            {**common, **each._asdict(), "versions": machine.versions(each.peer)}
            for each in outcomes
        ],
    )
