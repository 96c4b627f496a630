"""Where the time of Trace goes, as a page: a picture and a table for each contestant that was looked at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.flame import picture
from benchmarks.report import count, write_page
from benchmarks.stacks import Samples

LINES = 2
"""How many lines of code a table has."""
LEAST = 0.03
"""The share of the time under which a line or a package is left out."""


class Profile(NamedTuple):
    """What was seen of one contestant.

    Attributes:
        job, contestant: their names.
        size, variant: of the store.
        samples: its stacks.
    """

    job: str
    contestant: str
    size: int
    variant: str
    samples: Samples

    @property
    def name(self) -> str:
        """Return the name of its picture, without a suffix."""
        words = re.findall(r"[a-z0-9]+", f"{self.job} {self.contestant} {self.variant}".lower())
        return "-".join(word for word in words if word != "trace")


def write(page: Path, profiles: Sequence[Profile], machine: str) -> None:
    """Write the pictures into a folder beside the page, which has its name, and the tables between its markers."""
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    parts = [f"Sampled on {machine}."]
    for each in profiles:
        title = f"{each.job}: {each.contestant}, {count(each.size)} messages, {each.variant}"
        (folder / f"{each.name}.svg").write_text(picture(each.samples, title), encoding="utf-8")
        parts += ["", f"### {title}", "", *_section(each, f"{folder.name}/{each.name}.svg")]
    write_page(page, "\n".join(parts) + "\n")


def _section(profile: Profile, image: str) -> Iterator[str]:
    samples = profile.samples
    packages: Counter[str] = Counter()
    for stack, seen in samples.stacks.items():
        packages[_package(stack[-1])] += seen
    yield f"![The stacks of {profile.job}]({image})"
    yield ""
    shares = (f"{name} {share}" for name, share in _most(packages, len(packages)))
    yield f"{count(samples.total)} samples. By package: {', '.join(shares)}."
    yield ""
    yield "| of the time | line at work |"
    yield "|--:|---|"
    for line, share in _most(samples.lines, LINES):
        module, _, source = line.partition(": ")
        code = source.replace("`", "'").replace("|", "\\|")
        yield f"| {share} | {module.removeprefix('trace_store.')}: `{code}` |"


def _most(seen: Counter[str], limit: int) -> Iterator[tuple[str, str]]:
    """Yield the most frequent entries, with their share of the time."""
    total = seen.total()
    for name, times in seen.most_common(limit):
        if times >= LEAST * total:
            yield name, f"{times / total:.0%}"


def _package(function: str) -> str:
    """Return the package of a function of Trace, or of another the first name."""
    first, second, *_ = [*function.split("."), ""]
    return second if first == "trace_store" else first
