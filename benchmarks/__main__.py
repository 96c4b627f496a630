"""`python -m benchmarks`: choose jobs, run them, print tables; see `--help`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import machine, profile_page, results, stacks
from benchmarks.ground import Ground, sweep
from benchmarks.job import Job
from benchmarks.jobs import JOBS
from benchmarks.messages import REAL, VARIANTS
from benchmarks.profiling import STACKS, Profiling, top
from benchmarks.recorder import record
from benchmarks.report import machine_line, ratios, tables, write_page

QUICK_SIZE = 60
QUICK_ROUNDS = 3


def main(arguments: list[str]) -> int:
    """Run the program and return its exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        for job in JOBS:
            print(f"{job.name:14} {', '.join(_short(each) for each in job.sizes):14} {job.title}")
            print(" " * 29 + "; ".join(each.name for each in job.contestants))
        return 0
    if options.profile:
        _profile(options)
        return 0
    if options.report is None:
        output = options.resume or options.output or options.work / "results.jsonl"
        measured = _measure(options, output, shlex.join(["python", "-m", "benchmarks", *arguments]))
        lines = results.read(output)
        if options.resume is None:
            lines = {key: line for key, line in lines.items() if key[:3] in measured}
    else:
        lines = results.read(options.report)
    if options.json:
        print(json.dumps(ratios(lines), indent=1, ensure_ascii=False))
    else:
        print(tables(lines), end="")
    if options.page is not None:
        write_page(options.page, tables(lines))
    return 0


def _measure(options: argparse.Namespace, output: Path, command: str) -> set[tuple[str, int, str]]:
    """Run the chosen jobs, add to the result file and return which they were."""
    done = results.read(options.resume) if options.resume else {}
    chosen: set[tuple[str, int, str]] = set()
    for job, ground in _chosen(options):
        group = (job.name, ground.size, ground.variant)
        chosen.add(group)
        if not all(results.Key(*group, each.name) in done for each in job.contestants):
            few = min(QUICK_ROUNDS, job.rounds) if options.quick else job.rounds
            record(job, ground, options.rounds or few, output, command)
    return chosen


def _profile(options: argparse.Namespace) -> None:
    """Profile Trace in the chosen jobs: print all calls, or write a page of samples."""
    seen = []
    for job, ground in _chosen(options):
        for each in job.contestants:
            if not each.peer.startswith("trace"):
                continue
            sampler = each.start(ground, each.peer)
            if isinstance(sampler, Profiling):
                file = ground.work / ("profile" if options.page is None else f"profile{STACKS}")
                sampler.profile(file)
                if options.page is None:
                    print(f"{job.name}: {each.name}\n{top(file)}")
                else:
                    told = (job.name, each.name, sampler.reached, ground.variant, stacks.read(file))
                    seen.append(profile_page.Profile(*told))
            sampler.close()
    if options.page is not None:
        profile_page.write(options.page, seen, _here(options.work))


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Job, Ground]]:
    """Yield the chosen jobs, with the chosen contestants, at each size and variant."""
    sweep(options.work)
    for job in JOBS:
        if options.job and job.name not in options.job:
            continue
        kept = tuple(
            x for x in job.contestants if not options.peer or _wanted(x.peer, options.peer)
        )
        if not kept:
            continue
        sizes = [QUICK_SIZE] if options.quick else options.size or job.sizes
        for variant, size in _grounds(options, job, sizes):
            ground = Ground(
                options.work,
                variant,
                size,
                seed=options.seed,
                limit=options.limit,
                real=tuple(options.transcripts),
            )
            _say(f"{job.name}, {ground.size} messages, {variant}")
            yield job._replace(contestants=kept), ground


def _grounds(
    options: argparse.Namespace, job: Job, sizes: Sequence[int]
) -> Iterator[tuple[str, int]]:
    """Yield variants and sizes; real transcripts are as many as they are, and only if they were given."""
    for variant in options.variant or job.variants:
        if variant != REAL:
            yield from ((variant, size) for size in sizes)
        elif options.transcripts:
            yield REAL, sys.maxsize


def _wanted(peer: str, names: list[str]) -> bool:
    return peer.startswith("trace") or any(peer.startswith(name) for name in names)


def _here(work: Path) -> str:
    """Print machine, time and version of a measurement."""
    versions = " ".join(machine.versions("trace").values())
    return f"{machine_line(machine.machine(work))}, {machine.now()[:10]}, {versions}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _size(text: str) -> int:
    """Read 100, 10k or 1m."""
    steps = {"k": 1000, "m": 1_000_000}
    step = steps.get(text[-1:].lower(), 1)
    try:
        size = int(text[: -1 if step > 1 else None]) * step
    except ValueError:
        size = 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"not a number of messages: {text!r}")
    return size


def _short(size: int) -> str:
    return f"{size // 1000}k" if size % 1000 == 0 else str(size)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Trace beside its peers, in one run."
    )
    add = parser.add_argument
    add("--list", action="store_true", help="name the jobs, their sizes and contestants")
    add(
        "--job",
        action="append",
        choices=[job.name for job in JOBS],
        metavar="NAME",
        help="run this job only; may be given again",
    )
    add(
        "--size",
        action="append",
        type=_size,
        help="messages in a store, as 10k; may be given again",
    )
    add("--variant", action="append", choices=VARIANTS, help="the kind of transcripts")
    add(
        "--transcripts",
        action="append",
        default=[],
        metavar="PATH",
        help=f"real transcripts, for the variant {REAL}; may be given again",
    )
    add("--peer", action="append", metavar="NAME", help="beside Trace, run only peers of this name")
    add("--rounds", type=int, metavar="N", help="samples of each contestant")
    add(
        "--quick",
        action="store_true",
        help=f"{QUICK_ROUNDS} samples of {QUICK_SIZE} messages: a smoke test",
    )
    add(
        "--limit",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="what building a store, and sampling a contestant, may take (300)",
    )
    add("--seed", type=int, default=1, help="makes the messages and the order of samples (1)")
    add(
        "--work",
        type=Path,
        default=Path(".benchmarks"),
        metavar="FOLDER",
        help="where messages and stores are kept for the next run (.benchmarks)",
    )
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="add results here (results.jsonl in the work folder)",
    )
    add("--resume", type=Path, metavar="FILE", help="add results here, and skip what it has")
    add(
        "--report",
        type=Path,
        metavar="FILE",
        help="measure nothing; print the tables of a result file",
    )
    add("--profile", action="store_true", help="measure nothing; print where Trace spends its time")
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write the tables, or with --profile pictures, between the markers of a page",
    )
    add("--json", action="store_true", help="print ratios as JSON instead of tables")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
