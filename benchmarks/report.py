"""Tables of a result file: one of the targets, one for each job and size; and the ratios as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.job import Job, Row
from benchmarks.jobs import JOBS
from benchmarks.results import Key, Line

BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"


def tables(lines: Mapping[Key, Line]) -> str:
    """Return all that was measured as Markdown."""
    parts = [*_targets(lines), *_where(lines)]
    for job in JOBS:
        groups = sorted({(k.variant, k.size) for k in lines if k.job == job.name})
        for variant, size in groups:
            chosen = [
                line
                for key, line in lines.items()
                if (key.job, key.variant, key.size) == (job.name, variant, size)
            ]
            parts += ["", *_table(job, variant, size, chosen)]
    return "\n".join(parts).strip() + "\n"


def ratios(lines: Mapping[Key, Line]) -> list[dict[str, Any]]:
    """Return the targets with what was measured, and every ratio, as plain values."""
    rows = [
        {
            "job": job.name,
            "row": row.text,
            "ours": row.ours,
            "against": row.against,
            "target": row.target,
            "goal": row.goal,
            "at_most": row.at_most,
            "size": key.size,
            "variant": key.variant,
            "ratio": ratio,
            "met": _met(row, ratio),
        }
        for job, row, key, ratio in _answers(lines)
    ]
    others = [
        {**key._asdict(), "ours": ours, "ratio": ratio}
        for key, line in lines.items()
        for ours, ratio in line["ratios"].items()
    ]
    return [*rows, *others]


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


def _answers(
    lines: Mapping[Key, Line],
) -> Iterator[tuple[Job, Row, Key, dict[str, float]]]:
    """Yield each target with each ratio that answers it."""
    for job in JOBS:
        for row in job.rows:
            for key, line in lines.items():
                asked = (job.name, row.size or key.size, row.variant or key.variant)
                if (key.job, key.size, key.variant) != asked or key.contestant != row.against:
                    continue
                ratio = line["ratios"].get(row.ours)
                if ratio:
                    yield job, row, key, ratio


def _met(row: Row, ratio: Mapping[str, float]) -> bool | None:
    if not row.target:
        return None
    if row.at_most:
        return 1 / ratio["median"] <= row.target
    return ratio["median"] >= row.target


def _targets(lines: Mapping[Key, Line]) -> list[str]:
    rows = []
    for _, row, key, ratio in _answers(lines):
        measured = (ratio["median"], ratio["p10"], ratio["p90"])
        if row.at_most:
            measured = (1 / ratio["median"], 1 / ratio["p90"], 1 / ratio["p10"])
        median, low, high = (_digits(each) for each in measured)
        sign = "at most " if row.at_most else ""
        target = f"{sign}{row.target:g}x" if row.target else ""
        goal = f"{sign}{row.goal:g}x" if row.goal else ""
        met = {True: "yes", False: "**no**", None: ""}[_met(row, ratio)]
        data = f"{count(key.size)} {key.variant}"
        cells = [row.text, row.against, data, f"**{median}x** ({low}–{high})", target, goal, met]
        rows.append("| " + " | ".join(cells) + " |")
    if not rows:
        return []
    head = ["job", "against", "messages", "measured (p10–p90)", "target", "later", "met"]
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *rows]


def _where(lines: Mapping[Key, Line]) -> list[str]:
    """Name the machines, versions and dates of the lines."""
    machines = sorted({_machine(line["machine"]) for line in lines.values()})
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


def _machine(told: Mapping[str, Any]) -> str:
    return (
        f"{told['cpu']}, {told['cores']} cores, {told['system']}, {told['file_system']}, "
        f"{told['python']}"
    )


def _table(job: Job, variant: str, size: int, lines: list[Line]) -> list[str]:
    names = [each.name for each in job.contestants]
    lines = sorted(
        (x for x in lines if x["contestant"] in names), key=lambda x: names.index(x["contestant"])
    )
    ours = [x["contestant"] for x in lines if x["peer"].startswith("trace") and x["summary"]]
    head = ["", "median", "p10", "p90", "n", *(f"/ {name}" for name in ours), ""]
    body = []
    for line in lines:
        told = line["summary"]
        cells = [line["contestant"]]
        if told:
            cells += [quantity(told[each], job.unit) for each in ("median", "p10", "p90")]
            cells.append(str(told["n"]))
        else:
            cells += [""] * 4
        for name in ours:
            ratio = line["ratios"].get(name)
            cells.append(
                f"{_digits(ratio['median'])} ({_digits(ratio['p10'])}–{_digits(ratio['p90'])})"
                if ratio
                else ""
            )
        body.append("| " + " | ".join([*cells, line["note"]]) + " |")
    loads = lines[0]["load"] if lines else [0, 0]
    return [
        f"### {job.name}, {count(size)} messages, {variant}",
        "",
        f"{job.title}. Load average {loads[0]} before and {loads[1]} after.",
        "",
        "| " + " | ".join(head) + " |",
        "|---" + "|--:" * (len(head) - 2) + "|---|",
        *body,
    ]


def _digits(value: float) -> str:
    """Write a number with three digits, or whole when it has more."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
