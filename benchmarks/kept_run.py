"""The jobs that speed depends on in one run, compared with the last run that was kept.

    python -m benchmarks.kept_run --work FOLDER            compare with benchmarks/kept.jsonl
    python -m benchmarks.kept_run --work FOLDER --keep     and keep this run in its place

Each row is a ratio of Trace to a peer, measured in the same run. A change is the ratio divided by that of the kept run:
below 1, Trace has become slower. The exit code is 1 if a row became worse by more than 15 %, or has no figure now.
Close to the limit, run it again: ratios of appends differ by 10 % between runs of one commit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import results
from benchmarks.ground import Ground, sweep
from benchmarks.job import Job, Row
from benchmarks.jobs import JOBS
from benchmarks.recorder import record
from benchmarks.results import Key, Line

KEPT = Path(__file__).with_name("kept.jsonl")
VARIANT = "repetitive"
WORSE = 0.85


class Part(NamedTuple):
    """A job of the run, at one size.

    Attributes:
        job: its name.
        size: messages in a store.
        rounds: samples of each contestant.
        against: the peers that take part; of their rows with Trace each is compared.
    """

    job: str
    size: int
    rounds: int
    against: tuple[str, ...]


PARTS = (
    Part("append", 10_000, 400, ("SQLite FULL, content-addressed",)),
    Part("append-fast", 10_000, 1000, ("SQLite NORMAL, content-addressed",)),
    Part("append-burst", 10_000, 90, ("SQLite NORMAL, content-addressed",)),
    Part("append-first", 10_000, 9, ("SQLite NORMAL, content-addressed",)),
    Part("secrets", 1_000, 9, ("RE2 alone",)),
    Part("compile", 10_000, 15, ("JSON Lines, orjson",)),
    Part("tail", 10_000, 15, ("JSON Lines, orjson",)),
    Part("pipe", 10_000, 15, ("floor: the file read at once",)),
    Part("log", 10_000, 15, ("git log",)),
    Part("log-50", 10_000, 30, ("git log",)),
    Part("verify", 10_000, 5, ("git fsck",)),
    Part("import", 2_000, 9, ("json.loads of each line",)),
    Part("pack", 10_000, 3, ("git gc, of loose objects",)),
    Part("status", 10_000, 15, ("git",)),
    Part("edit", 10_000, 15, ("git",)),
    Part("merge", 10_000, 15, ("git",)),
    Part("rebase", 10_000, 9, ("git",)),
    Part("clone", 10_000, 5, ("Python, a bare start",)),
)


class Change(NamedTuple):
    """A row of this run beside that of the kept run.

    Attributes:
        row: the row.
        key: where its figure is.
        now, before: how many times as fast as the peer Trace is; None if it was not measured.
    """

    row: Row
    key: Key
    now: float | None
    before: float | None

    @property
    def is_worse(self) -> bool:
        """Whether the row lost more than 15 %, or its figure."""
        if self.before is None:
            return False
        return self.now is None or self.now < self.before * WORSE


def measure(parts: Sequence[Part], work: Path, output: Path) -> None:
    """Run the parts that have no result yet, and add their lines to the result file."""
    done = results.read(output)
    for part in parts:
        job = _job(part)
        if all(_key(part, each.name) in done for each in job.contestants):
            continue
        print(f"{part.job}, {part.size:,} messages", file=sys.stderr, flush=True)
        ground = Ground(work, VARIANT, part.size)
        record(job, ground, part.rounds, output, "python -m benchmarks.kept_run")


def changes(
    parts: Sequence[Part], now: Mapping[Key, Line], before: Mapping[Key, Line]
) -> list[Change]:
    """Return each row of the parts with its ratio now and in another run."""
    found = []
    for part in parts:
        for row in _job(part).rows:
            key = _key(part, row.against)
            found.append(Change(row, key, _ratio(now, key, row), _ratio(before, key, row)))
    return found


def table(rows: Sequence[Change]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| row | against | messages | now | kept | change | |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for each in rows:
        change = f"{each.now / each.before:.2f}" if each.now and each.before else ""
        lines.append(
            f"| {each.row.text} | {each.row.against} | {each.key.size:,} | {_shown(each.row, each.now)} "
            f"| {_shown(each.row, each.before)} | {change} | {'**worse**' if each.is_worse else ''} |"
        )
    return "\n".join(lines)


def _job(part: Part) -> Job:
    """Return the job with Trace and the peers of a part, and the rows about them."""
    job = next(each for each in JOBS if each.name == part.job)
    rows = tuple(row for row in job.rows if row.against in part.against)
    names = {name for row in rows for name in (row.ours, row.against)}
    chosen = tuple(each for each in job.contestants if each.name in names)
    return job._replace(contestants=chosen, rows=rows)


def _key(part: Part, contestant: str) -> Key:
    return Key(part.job, part.size, VARIANT, contestant)


def _ratio(lines: Mapping[Key, Line], key: Key, row: Row) -> float | None:
    """Return the peer's time divided by Trace's."""
    found = lines[key]["ratios"].get(row.ours) if key in lines else None
    return None if found is None else float(found["median"])


def _shown(row: Row, ratio: float | None) -> str:
    if ratio is None:
        return "–"
    return f"{1 / ratio:.1f} times as long" if row.at_most else f"{ratio:.2f}x"


def main(arguments: list[str]) -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kept_run", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("--work", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--keep", action="store_true", help="keep this run for later ones")
    parser.add_argument("--resume", action="store_true", help="run only the jobs without a result")
    parser.add_argument("--job", action="append", help="this job only; may be given again")
    options = parser.parse_args(arguments)
    parts = [part for part in PARTS if not options.job or part.job in options.job]
    output = options.work / "kept_run.jsonl"
    if not options.resume:
        output.unlink(missing_ok=True)
    sweep(options.work)
    measure(parts, options.work, output)
    now, before = results.read(output), results.read(KEPT)
    rows = changes(parts, now, before)
    commits = {line["versions"].get("commit", "") for line in before.values()} - {""}
    print(table(rows))
    print(f"\nThe kept run is of {', '.join(sorted(commits)) or 'no commit'}.")
    if options.keep:
        KEPT.unlink(missing_ok=True)
        results.add(KEPT, list({**before, **now}.values()))
    return 1 if any(each.is_worse for each in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
