"""Tables of a result file: one of the targets, one for each job and size; and the ratios as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.job import Job, Row
from benchmarks.jobs import JOBS
from benchmarks.messages import VARIANTS
from benchmarks.results import Key, Line

BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"

Ratio = dict[str, float]


class Answer(NamedTuple):
    """A target, and the ratio that was measured for it: other / ours, or None."""

    row: Row
    key: Key
    ratio: Ratio | None


def tables(lines: Mapping[Key, Line]) -> str:
    """Return all that was measured as Markdown."""
    parts = [*_targets(lines), *_where(lines)]
    for job in JOBS:
        for variant, size in _groups(job, lines):
            parts += _table(job, variant, size, lines)
    return "\n".join(parts).strip() + "\n"


def ratios(lines: Mapping[Key, Line]) -> dict[str, list[dict[str, Any]]]:
    """Return targets, measurements and ratios as plain values.

    A ratio is the other's sample divided by Trace's of the same round: above 1 Trace is faster or smaller.
    """
    targets = [
        {**row._asdict(), **key._asdict(), "ratio": ratio, "met": _met(row, key.size, ratio)}
        for row, key, ratio in _answers(lines)
    ]
    others = [
        {**key._asdict(), "ours": ours, "ratio": ratio}
        for key, line in lines.items()
        for ours, ratio in line["ratios"].items()
    ]
    return {"targets": targets, "ratios": others}


def write_page(page: Path, text: str) -> None:
    """Put the tables between the markers of a page."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} lacks the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


def quantity(value: float, unit: str) -> str:
    """Write a number of seconds or bytes with three digits."""
    steps = (
        (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
        if unit == "s"
        else (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
    )
    for name, step in steps:
        if value >= step:
            return f"{_digits(value / step)} {name}"
    return f"{_digits(value / steps[-1][1])} {steps[-1][0]}"


def count(size: int) -> str:
    """Write a number of messages."""
    return f"{size:,}"


def _answers(lines: Mapping[Key, Line]) -> Iterator[Answer]:
    """Yield each target of each job that ran, at each size that it is stated for."""
    for job in JOBS:
        groups = _groups(job, lines)
        for row in job.rows:
            for variant, size in groups:
                if row.variant in ("", variant):
                    key = Key(job.name, size, variant, row.against)
                    ratio = lines[key]["ratios"].get(row.ours) if key in lines else None
                    yield Answer(row, key, ratio)


def _groups(job: Job, lines: Mapping[Key, Line]) -> list[tuple[str, int]]:
    """Return the variants and sizes that a job ran at."""
    variants = {name: place for place, name in enumerate(VARIANTS)}
    found = {(key.variant, key.size) for key in lines if key.job == job.name}
    return sorted(found, key=lambda each: (variants[each[0]], each[1]))


def _met(row: Row, size: int, ratio: Ratio | None) -> bool | None:
    """Return True if a target is met; None without a target for this size."""
    if not row.target or ratio is None or row.size not in (0, size):
        return None
    if row.at_most:
        return 1 / ratio["median"] <= row.target
    return ratio["median"] >= row.target


def _targets(lines: Mapping[Key, Line]) -> list[str]:
    rows = []
    for row, key, ratio in _answers(lines):
        sign = "at most " if row.at_most else ""
        rows.append(
            [
                row.text,
                row.against,
                f"{count(key.size)} {key.variant}",
                _measured(row, ratio) if ratio else _reason(row, key, lines),
                _quickest(row, ratio) if ratio else "",
                (f"{sign}{row.target:g}x" if row.target else "")
                + (f" at {count(row.size)}" if row.size not in (0, key.size) else ""),
                f"{sign}{row.goal:g}x" if row.goal else "",
                {True: "yes", False: "**no**", None: ""}[_met(row, key.size, ratio)],
            ]
        )
    if not rows:
        return []
    head = ["job", "against", "messages", "measured (p10–p90)", "at p10", "target", "later", "met"]
    return [_row(head), "|---" * len(head) + "|", *map(_row, rows)]


def _measured(row: Row, ratio: Ratio) -> str:
    """Write a ratio: how many times better, or, against a ceiling, how many times as much."""
    median, low, high = ratio["median"], ratio["p10"], ratio["p90"]
    if row.at_most:
        median, low, high = 1 / median, 1 / high, 1 / low
    return f"**{_digits(median)}x** ({_digits(low)}–{_digits(high)})"


def _quickest(row: Row, ratio: Ratio) -> str:
    """Write the ratio of the p10 of both, as `_measured` does."""
    return f"{_digits(1 / ratio['of_p10'] if row.at_most else ratio['of_p10'])}x"


def _reason(row: Row, key: Key, lines: Mapping[Key, Line]) -> str:
    """Say why a target has no figure."""
    for name in (row.ours, row.against):
        line = lines.get(key._replace(contestant=name))
        if line and line["note"]:
            return f"{name}: {line['note']}"
    return "not measured"


def _where(lines: Mapping[Key, Line]) -> list[str]:
    """Name the machines, versions and dates of the lines."""
    machines = sorted({machine_line(line["machine"]) for line in lines.values()})
    versions = sorted({f"{k} {v}" for line in lines.values() for k, v in line["versions"].items()})
    dates = sorted(line["date"] for line in lines.values())
    loads = sorted(each for line in lines.values() for each in line["load"])
    if not dates:
        return ["Nothing was measured yet."]
    days = (
        dates[0][:10] if dates[0][:10] == dates[-1][:10] else f"{dates[0][:10]} to {dates[-1][:10]}"
    )
    return [
        "",
        f"Measured {days} on {'; '.join(machines)}; load average {loads[0]} to {loads[-1]}.",
        f"Versions: {', '.join(versions)}.",
    ]


def machine_line(told: Mapping[str, Any]) -> str:
    """Name a machine as a result file describes it."""
    return (
        f"{told['cpu']}, {told['cores']} cores, {told['system']}, {told['file_system']}, "
        f"{told['python']}"
    )


def _table(job: Job, variant: str, size: int, lines: Mapping[Key, Line]) -> list[str]:
    keys = [Key(job.name, size, variant, each.name) for each in job.contestants]
    chosen = [lines[key] for key in keys if key in lines]
    ours = [x["contestant"] for x in chosen if x["peer"].startswith("trace") and x["summary"]]
    if job.base:
        ours = [job.base]
        chosen = _turned(chosen, job.base)
    head = ["", "median", "p10", "p90", "n", *(f"÷ {name}" for name in ours), ""]
    before, after = chosen[0]["load"]
    return [
        "",
        f"### {job.name}: {count(size)} messages, {variant}",
        "",
        f"{job.title}. Load average {before} before and {after} after.",
        "",
        _row(head),
        "|---" + "|--:" * (len(head) - 2) + "|---|",
        *(_row(_cells(line, job.unit, ours)) for line in chosen),
    ]


def _turned(chosen: list[Line], base: str) -> list[Line]:
    """Give each line its ratio to the base, which the base's own line has the other way round."""
    against = {
        name: r for x in chosen if x["contestant"] == base for name, r in x["ratios"].items()
    }
    turned = {
        name: {"median": 1 / r["median"], "p10": 1 / r["p90"], "p90": 1 / r["p10"]}
        for name, r in against.items()
    }
    return [
        {**x, "ratios": {base: turned[x["contestant"]]} if x["contestant"] in turned else {}}
        for x in chosen
    ]


def _cells(line: Line, unit: str, ours: list[str]) -> list[str]:
    told = line["summary"]
    cells = [line["contestant"], *[""] * 4]
    if told:
        values = [quantity(told[each], unit) for each in ("median", "p10", "p90")]
        cells[1:] = [*values, str(told["n"])]
    for name in ours:
        ratio: Ratio | None = line["ratios"].get(name)
        told_ratio = ratio and [_digits(ratio[each]) for each in ("median", "p10", "p90")]
        cells.append("{} ({}–{})".format(*told_ratio) if told_ratio else "")
    return [*cells, line["note"]]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(each.replace("|", "/") for each in cells) + " |"


def _digits(value: float) -> str:
    """Write a number with three digits, or whole when it has more."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
