"""Forecast errors against real usage reports: `python -m benchmarks.forecast_errors TRANSCRIPT…`.

For each reply with a usage report, the context before it is compiled and forecast, and the report is compared. The
first report of a branch has no forecast. The table has a row for each model: the number of forecasts, the relative
error of the total (median, 90th percentile), the relative error of the growth since the last report (median), and the
number of reports over the bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

from trace_store import Repo
from trace_store.base.frozen import value
from trace_store.importers.import_paths import import_paths
from trace_store.sessions.forecast import Forecast
from trace_store.sessions.requests import RequestShape
from trace_store.writer import Writer

SMALLEST_GROWTH = 100
"""Minimum growth for a relative error of the growth."""


@value
class Error:
    """Errors of one forecast.

    Attributes:
        model: the model of the reply.
        total, growth: relative errors; the growth is None if it is too small.
        over: whether the report exceeds the bound.
    """

    model: str
    total: float
    growth: float | None
    over: bool


def errors_of(path: Path) -> Iterator[Error]:
    """Yield the errors of each forecast of a transcript."""
    repo = Repo.memory()
    import_paths(Writer(repo.store), [str(path)])
    for branch in repo.branches.list():
        forecast, last = Forecast(), 0
        seen: set[str] = set()
        for turn in repo.sessions.read(branch.name, hidden=True).turns:
            usage = turn.usage
            if usage is None or not usage.input_total or turn.message.role != "assistant":
                continue
            key = f"{usage}"
            if key in seen:  # the same reply in several records
                continue
            seen.add(key)
            parents = repo.writer.contexts.read_commit(turn.commit).parents
            if not parents:
                continue  # the transcript begins with a reply
            shape = RequestShape(repo.compile(parents[0]))
            if forecast.has_report:
                told, most = forecast.tokens(shape.sizes), forecast.bound(shape.sizes)
                real, grew = usage.input_total, usage.input_total - last
                share = abs(told - real) / grew if grew >= SMALLEST_GROWTH else None
                yield Error(turn.message.model or "", abs(told - real) / real, share, real > most)
            forecast.report(shape.sizes, usage.input_total)
            last = usage.input_total


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecast_errors", description=__doc__
    )
    parser.add_argument("transcripts", nargs="+", type=Path)
    found: dict[str, list[Error]] = {}
    for path in parser.parse_args(arguments).transcripts:
        for error in errors_of(path):
            found.setdefault(error.model, []).append(error)
    print("model | forecasts | total, median | total, 90th | growth, median | over the bound")
    for model, each in sorted(found.items()):
        totals = [one.total for one in each]
        growths = [one.growth for one in each if one.growth is not None]
        high = quantiles(totals, n=10)[-1] if len(totals) > 1 else totals[0]
        growth = f"{median(growths):.1%}" if growths else "-"
        over = sum(one.over for one in each)
        print(f"{model} | {len(each)} | {median(totals):.2%} | {high:.2%} | {growth} | {over}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
